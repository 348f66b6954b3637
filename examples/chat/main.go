// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program is the backend of a chat page. Each conversation has an agent, whose
// events are sent as server-sent events. Nothing is lost if the page loses its
// connection or the server restarts: the page names the last event that it received,
// and gets the following ones. Start it with
//
//	go run ./examples/chat
//
// and open the address that it prints.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Chat serves conversations. The store holds everything that was said; a Chat adds
// the text that a run in this process is writing at the moment.
type Chat struct {
	Agent *agent.Agent
	Store session.Store // must implement session.Watcher

	mu    sync.Mutex
	tails map[string]*tail
}

// tail holds the events of a conversation since its last entry: text as it arrives,
// and progress. They are not stored, because the next entries repeat them.
type tail struct {
	seq    int64 // the number of the last entry
	events [][]byte
	moved  chan struct{} // closed, and replaced, with each event
}

//go:embed page.html
var page []byte

// Handler returns the handler of these routes:
//
//	GET  /{name}         the page of a conversation
//	POST /{name}         the body is what the user says; the answer comes when the run has stopped
//	GET  /{name}/events  the events, from the one after the header Last-Event-ID
func (c *Chat) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // a browser that is gone does not need the page
	})
	mux.HandleFunc("POST /{name}", c.say)
	mux.HandleFunc("GET /{name}/events", c.events)
	// A page of another site must not speak on behalf of the person whose browser
	// shows it. It also must not read the conversation through its own host name
	// that points to this address.
	safe := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil || !net.ParseIP(host).IsLoopback() {
			http.Error(w, "open the page by the server's address, http://127.0.0.1 and its port", http.StatusForbidden)
			return
		}
		safe.ServeHTTP(w, r)
	})
}

// say runs the agent. The run continues if the page is closed.
func (c *Chat) say(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, name := context.WithoutCancel(r.Context()), r.PathValue("name")
	s, err := session.Open(ctx, c.Store, name)
	if err == nil {
		for ev, failed := range c.Agent.Stream(ctx, s, item.User(string(text))) {
			if failed == nil {
				failed = c.tell(name, ev)
			}
			err = errors.Join(err, failed)
		}
	}
	switch {
	case errors.Is(err, session.ErrBusy):
		http.Error(w, "an answer is being written: wait for its end", http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// tell adds an event to the conversation's tail. An entry ends the tail before it.
func (c *Chat) tell(name string, ev agent.Event) error {
	line, err := agent.AppendEvent(nil, ev)
	if err != nil {
		return err
	}
	t := c.tail(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := ev.(agent.Recorded); ok {
		t.seq, t.events = max(t.seq, e.Seq), nil
	} else {
		t.events = append(t.events, line)
	}
	close(t.moved)
	t.moved = make(chan struct{})
	return nil
}

func (c *Chat) tail(name string) *tail {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tails == nil {
		c.tails = map[string]*tail{}
	}
	if c.tails[name] == nil {
		c.tails[name] = &tail{moved: make(chan struct{})}
	}
	return c.tails[name]
}

// events streams a conversation. The id of an event consists of the number of the
// last entry and the number of tail events sent after it: "7.3" is the third event
// after entry 7. Entries come from the store, no matter which process writes them.
// Tail events follow the entry after which they occurred; they are left out if the
// reader is already past it.
func (c *Chat) events(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var seq int64
	var sent int
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if _, err := fmt.Sscanf(last, "%d.%d", &seq, &sent); err != nil || seq < 0 || sent < 0 {
			http.Error(w, "Last-Event-ID: want the id of an event, such as 7.3", http.StatusBadRequest)
			return
		}
	}
	s, err := session.Open(ctx, c.Store, r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	entries := make(chan agent.Event)
	go func() {
		defer close(entries)
		for ev, err := range agent.Watch(ctx, s, seq) {
			if err != nil {
				return // the page connects again
			}
			select {
			case entries <- ev:
			case <-ctx.Done():
				return
			}
		}
	}()
	for t := c.tail(s.ID()); out.Flush() == nil; {
		c.mu.Lock()
		moved, rest := t.moved, [][]byte(nil)
		if t.seq == seq && sent < len(t.events) {
			rest = t.events[sent:]
		}
		c.mu.Unlock()
		for _, line := range rest {
			sent++
			fmt.Fprintf(w, "id: %d.%d\ndata: %s\n\n", seq, sent, line)
		}
		if len(rest) > 0 {
			continue // flush before waiting
		}
		select {
		case ev, ok := <-entries:
			line, err := agent.AppendEvent(nil, ev)
			if !ok || err != nil {
				return
			}
			seq, sent = ev.(agent.Recorded).Seq, 0
			fmt.Fprintf(w, "id: %d.0\ndata: %s\n\n", seq, line)
		case <-moved:
		}
	}
}

// script is the script of the mock model.
const script = `
pace 40ms
again
turn
  call clock {"city":"Bergen"}
turn
  say You said “{{question}}”. In Bergen it is {{output "clock" -1}}, and the ferry leaves in ten minutes.
`

// open returns a chat with a mock model. If pace is 0, the model writes at the speed
// in the script; if pace is negative, without delays.
func open(pace time.Duration) (c *Chat, stop func(), err error) {
	play, err := rehearsal.Parse("chat.script", []byte(script))
	if err != nil {
		return nil, nil, err
	}
	url, stop, err := (&rehearsal.Server{Script: play, Pace: pace}).Start()
	if err != nil {
		return nil, nil, err
	}
	clock := tool.Must("clock", "Tells the time in a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "half past nine", nil
	}, tool.ReadOnly())
	return &Chat{
		Agent: &agent.Agent{
			Model:   &responses.Client{BaseURL: url},
			Request: api.Request{Model: "rehearsal"},
			Tools:   []tool.Tool{clock},
		},
		Store: new(session.Memory), // or session/sqlstore, which survives a restart
	}, stop, nil
}

func main() {
	log.SetFlags(0)
	c, stop, err := open(0)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	const at = "127.0.0.1:8098"
	fmt.Printf("open http://%s/ann\n", at)
	log.Fatal(http.ListenAndServe(at, c.Handler()))
}
