// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// disk is a store that waits: what it has is what a crash would leave.
type disk struct {
	under  session.Memory
	mu     sync.Mutex
	count  int
	before func(n int) error // of the append of a number, from 1
}

func (d *disk) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	d.mu.Lock()
	d.count++
	n := d.count
	d.mu.Unlock()
	if d.before != nil {
		if err := d.before(n); err != nil {
			return err
		}
	}
	return d.under.Append(ctx, id, after, entries)
}

func (d *disk) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return d.under.Load(ctx, id, after)
}

// has reports whether the store has an entry like this.
func (d *disk) has(like func(session.Body) bool) bool {
	for e := range d.under.Load(context.Background(), "s", 0) {
		if like(e.Body) {
			return true
		}
	}
	return false
}

func (d *disk) kinds() string {
	var kinds []string
	for e := range d.under.Load(context.Background(), "s", 0) {
		kinds = append(kinds, session.Kind(e.Body))
	}
	return strings.Join(kinds, " ")
}

func is[B session.Body](like func(B) bool) func(session.Body) bool {
	return func(b session.Body) bool {
		body, ok := b.(B)
		return ok && like(body)
	}
}

func started(id string) func(session.Body) bool {
	return is(func(b session.CallStarted) bool { return b.CallID == id })
}

// announced reports an event whose entry the store does not have.
func (d *disk) announced(t *testing.T, ev agent.Event) {
	t.Helper()
	told, ok := ev.(agent.Recorded)
	if !ok {
		return
	}
	for e := range d.under.Load(context.Background(), "s", told.Seq-1) {
		if e.Seq == told.Seq && session.Kind(e.Body) == session.Kind(told.Body) {
			return
		}
	}
	t.Errorf("entry %d, %s, is told, and the store has only %s", told.Seq, session.Kind(told.Body), d.kinds())
}

// barrierAgent calls two tools side by side, one of them while the reply comes, then
// one more, and checks at each point what the store has.
func barrierAgent(t *testing.T, d *disk, ran *[]string) *agent.Agent {
	reply := func(items ...item.Item) listen {
		return func(_ context.Context, yield func(api.Event, error) bool) {
			for e := range d.under.Load(context.Background(), "s", 0) {
				if b, ok := e.Body.(session.CallStarted); ok && !d.has(is(func(a session.CallOutput) bool { return a.CallID == b.CallID })) {
					t.Errorf("a request is sent, and the output of %s is not durable", b.CallID)
				}
			}
			if kinds := d.kinds(); !strings.HasSuffix(kinds, "turn_started") {
				t.Errorf("a request is sent behind %s", kinds)
			}
			speak(yield, fmt.Sprintf("resp_%d", d.count), items...)
		}
	}
	var mu sync.Mutex
	work := func(name string, opts ...tool.Option) tool.Tool {
		return textTool(name, func(_ context.Context, id string) (string, error) {
			if !d.has(started(id)) || !d.has(is(func(b session.OutputItem) bool { return b.Item.CallID() == id })) ||
				!d.has(is(func(b session.Approval) bool { return b.CallID == id && b.Allowed })) {
				t.Errorf("the tool of %s runs, and the store has only %s", id, d.kinds())
			}
			mu.Lock()
			defer mu.Unlock()
			*ran = append(*ran, id)
			return "ok", nil
		}, opts...)
	}
	return &agent.Agent{
		Model: &memory{replies: []any{
			reply(item.Assistant("I look."), call("c1", "early", "c1"), call("c2", "work", "c2"), call("c3", "work", "c3")),
			reply(call("c4", "work", "c4")),
			reply(item.Assistant("Done.")),
		}},
		Tools:  []tool.Tool{work("early", tool.EarlyStart()), work("work")},
		Policy: agent.Policy{Allow: []string{"*"}},
	}
}

// J15: nothing starts, is sent or is told before what it rests on is durable, whether
// the store is whole or fails at any append; and a store that failed ends the run with
// its error.
func TestBarriers(t *testing.T) {
	for crash := 1; ; crash++ {
		over := false
		synctest.Test(t, func(t *testing.T) {
			failed := errors.New("the disk failed")
			d := &disk{before: func(n int) error {
				if n >= crash {
					return failed
				}
				return nil
			}}
			s, err := session.Open(t.Context(), d, "s")
			if err != nil {
				t.Fatal(err)
			}
			var ran []string
			a := barrierAgent(t, d, &ran)
			for ev, err := range a.Stream(t.Context(), s, item.User("go")) {
				if err != nil {
					if !errors.Is(err, failed) {
						t.Errorf("crash at append %d: %v", crash, err)
					}
					return
				}
				d.announced(t, ev)
			}
			over = true
			if len(ran) != 4 {
				t.Errorf("ran %v", ran)
			}
			// The run and its turn; the early call; the others; their outputs, together or
			// one by one, and the turn; a call; its output and the turn; the end.
			if d.count > 9 {
				t.Errorf("%d appends for three turns", d.count)
			}
		})
		if over {
			if crash < 5 {
				t.Errorf("only %d appends", crash-1)
			}
			return
		}
	}
}

// J15: a turn with one call costs two appends.
func TestAppendsOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		s, err := session.Open(t.Context(), d, "s")
		if err != nil {
			t.Fatal(err)
		}
		var replies []any
		for n := range 10 {
			replies = append(replies, []item.Item{call(fmt.Sprintf("c%d", n), "echo", "x")})
		}
		a := &agent.Agent{Model: &memory{replies: append(replies, []item.Item{item.Assistant("Done.")})}, Tools: []tool.Tool{echo()}, Policy: agent.Policy{Allow: []string{"*"}}}
		a.Limits.MaxRepeats = -1
		if res, err := a.Run(t.Context(), s, item.User("go")); err != nil || res.Why != agent.StopEndTurn {
			t.Fatalf("%+v, %v", res, err)
		}
		if d.count != 22 {
			t.Errorf("%d appends for 10 turns with a call and one without, want 22", d.count)
		}
	})
}

// J15: a store that is blocked holds up neither the reading of a reply nor more than
// what rests on it.
func TestReadingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		d := &disk{before: func(n int) error {
			if n > 1 { // the run and its turn are there
				<-open
			}
			return nil
		}}
		s, err := session.Open(t.Context(), d, "s")
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		a := &agent.Agent{Model: &memory{replies: []any{listen(func(_ context.Context, yield func(api.Event, error) bool) {
			var items []item.Item
			for n := range 100 {
				items = append(items, item.Assistant(fmt.Sprintf("Item %d.", n)))
			}
			speak(func(ev api.Event, err error) bool {
				synctest.Wait() // the writer has begun, and is blocked
				read++
				return yield(ev, err)
			}, "resp_0", items...)
			close(open)
		})}}}
		var done []item.Item
		for ev, err := range a.Stream(t.Context(), s, item.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			d.announced(t, ev)
			if ev, ok := ev.(agent.Recorded); ok {
				if b, ok := ev.Body.(session.OutputItem); ok {
					done = append(done, b.Item)
				}
			}
		}
		if read != 101 || len(done) != 100 {
			t.Errorf("%d events were read, %d items told", read, len(done))
		}
	})
}

// J15: what is durable is told while the model says nothing more. When the loop over the
// events ends there, by a break or a panic, or the model panics, the run ends, too.
func TestToldInSilence(t *testing.T) {
	const silence = time.Hour
	talk := func(t *testing.T, after func(context.Context), heard func()) (err error) {
		d := &disk{before: func(int) error { time.Sleep(time.Second); return nil }}
		s, err := session.Open(t.Context(), d, "s")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a := &agent.Agent{Model: &memory{replies: []any{listen(func(ctx context.Context, yield func(api.Event, error) bool) {
			began = time.Now()
			speak(func(ev api.Event, err error) bool {
				if err != nil || ev.Terminal() {
					after(ctx)
				}
				return yield(ev, err)
			}, "resp_0", item.Assistant("I think."))
		})}}}
		for ev, err := range a.Stream(t.Context(), s, item.User("go")) {
			if err != nil {
				return err
			}
			d.announced(t, ev)
			if ev, ok := ev.(agent.Recorded); ok && session.Kind(ev.Body) == "received" {
				if late := time.Since(began); late > 5*time.Second {
					t.Errorf("it was told after %v", late)
				}
				if heard == nil {
					break
				}
				heard()
			}
		}
		return nil
	}
	wait := func(ctx context.Context) {
		select {
		case <-time.After(silence):
		case <-ctx.Done():
		}
	}
	panics := func(f func()) (what any) {
		defer func() { what = recover() }()
		f()
		return nil
	}
	for name, test := range map[string]func(t *testing.T){
		"told":  func(t *testing.T) { _ = talk(t, wait, func() {}) },
		"break": func(t *testing.T) { _ = talk(t, wait, nil) },
		"the loop panics": func(t *testing.T) {
			if what := panics(func() { _ = talk(t, wait, func() { panic("loop") }) }); what != "loop" {
				t.Errorf("it ends by %v", what)
			}
		},
		"the model panics": func(t *testing.T) {
			if what := panics(func() {
				_ = talk(t, func(ctx context.Context) { time.Sleep(time.Minute); panic("model") }, func() {})
			}); what != "model" {
				t.Errorf("it ends by %v", what)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}
