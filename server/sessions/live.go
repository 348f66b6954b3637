// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
)

// Live passes the texts that models write to the streams of a [Handler], before the entry of
// the message is in the log. It knows the runs of this process alone. The zero value is ready
// for use, and it is safe for concurrent use. What is being written is in memory once.
type Live struct {
	mu       sync.Mutex
	sessions map[string]*writing
}

// Text is what a model has written of a message whose entry is not in the log yet. The entry
// has the whole text, which may differ if the reply broke off.
type Text struct {
	Object string `json:"object"` // "session.text"
	// After is the number of the entry that the text follows.
	After int64 `json:"after"`
	// At is how many bytes of the text came before.
	At int `json:"at"`
	// Text continues the text.
	Text string `json:"text"`
}

// batch is how long a stream waits for more of a text.
const batch = 50 * time.Millisecond

// writing is the text of a session's message.
type writing struct {
	after   int64
	part    int
	text    []byte
	readers map[chan struct{}]bool
}

// Event takes an event of a run of the session id. A nil event says that the run has ended.
func (l *Live) Event(id string, ev agent.Event) {
	for {
		inner, nested := ev.(agent.SubagentEvent)
		if !nested {
			break
		}
		id, ev = inner.Session, inner.Event
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch ev := ev.(type) {
	case nil:
		l.reset(id, 0)
		for nested := range l.sessions {
			if strings.HasPrefix(nested, id+"/") {
				l.reset(nested, 0)
			}
		}
	case agent.Recorded:
		switch ev.Body.(type) {
		case session.RunStarted, session.TurnStarted, session.OutputItem, session.TurnEnded:
			l.reset(id, ev.Seq)
		case session.Stopped:
			l.reset(id, 0)
		}
	case agent.Delta:
		w := l.sessions[id]
		if w == nil || w.after == 0 || ev.Kind != agent.DeltaText && ev.Kind != agent.DeltaRefusal {
			return
		}
		if len(w.text) > 0 && ev.Part != w.part {
			w.text = append(w.text, '\n')
		}
		w.part, w.text = ev.Part, append(w.text, ev.Text...)
		for c := range w.readers {
			select {
			case c <- struct{}{}:
			default: // it knows
			}
		}
	}
}

// reset ends the text of a session. after is the entry that the next one follows, or 0 if
// there is none. The lock is held.
func (l *Live) reset(id string, after int64) {
	w := l.sessions[id]
	if w == nil {
		if after == 0 {
			return
		}
		w = l.add(id)
	}
	w.after, w.part, w.text = after, 0, nil
	l.drop(id, w)
}

func (l *Live) add(id string) *writing {
	if l.sessions == nil {
		l.sessions = map[string]*writing{}
	}
	w := &writing{readers: map[chan struct{}]bool{}}
	l.sessions[id] = w
	return w
}

// drop forgets a session that nobody runs or reads.
func (l *Live) drop(id string, w *writing) {
	if w.after == 0 && len(w.readers) == 0 {
		delete(l.sessions, id)
	}
}

// read returns a channel that receives when there is more of a text of a session, until end is
// called. A nil Live never has any.
func (l *Live) read(id string) (more <-chan struct{}, end func()) {
	if l == nil {
		return nil, func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.sessions[id]
	if w == nil {
		w = l.add(id)
	}
	c := make(chan struct{}, 1)
	w.readers[c] = true
	if len(w.text) > 0 {
		c <- struct{}{}
	}
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(w.readers, c)
		l.drop(id, w)
	}
}

// next returns what follows what a reader has of a text. sent is the last entry that it has:
// a text that follows a later one waits.
func (l *Live) next(id string, had Text, sent int64) (t Text, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.sessions[id]
	if w == nil || w.after == 0 || w.after > sent || len(w.text) == 0 {
		return t, false
	}
	t = Text{Object: "session.text", After: w.after}
	if had.After == w.after {
		t.At = had.At + len(had.Text)
	}
	t.Text = string(w.text[t.At:])
	return t, t.Text != ""
}
