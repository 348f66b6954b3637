// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A notice is recorded, then emitted, then shown to hooks; of one kind about one
// item or call, once. It is never sent.
func TestNotice(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	a := session.Noticed{Turn: 1, Kind: "k", ItemID: "msg_1", Text: "first"}
	b := session.Noticed{Turn: 1, Kind: "k", ItemID: "msg_2", Text: "of another item"}
	again := session.Noticed{Turn: 2, Kind: "k", ItemID: "msg_1", Text: "again"}
	var run *agent.Run
	var hooked []session.Noticed
	r.agent.Hooks = []agent.Hooks{{
		BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) {
			var err error
			for _, n := range []session.Noticed{a, b, again} {
				err = errors.Join(err, agent.Notice(run, ctx, n))
			}
			return ctx, err
		},
		Noticed: func(_ context.Context, n *session.Noticed) error {
			if logged := bodies[session.Noticed](r.session); len(logged) != len(hooked)+1 {
				t.Errorf("the hook is called before the notice is recorded: %v", logged)
			}
			hooked = append(hooked, *n)
			return nil
		},
	}}
	run = r.agent.Start(r.session, item.User("go"))
	var events []agent.Event
	for ev, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	want := []session.Noticed{a, b}
	if diff := cmp.Diff(want, told[session.Noticed](events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, hooked); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]session.Noticed{a, b}, bodies[session.Noticed](r.session)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if sent := r.last(); len(sent) != 1 {
		t.Errorf("sent %d items, want the user's alone", len(sent))
	}
}

// A hook that objects to a notice ends the run.
func TestNoticeVetoed(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	var run *agent.Run
	no := errors.New("no")
	r.agent.Hooks = []agent.Hooks{{
		BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) {
			return ctx, agent.Notice(run, ctx, session.Noticed{Kind: "k", Text: "t"})
		},
		Noticed: func(context.Context, *session.Noticed) error { return no },
	}}
	run = r.agent.Start(r.session, item.User("go"))
	var last error
	for _, err := range run.Events(t.Context()) {
		last = err
	}
	if !errors.Is(last, no) {
		t.Errorf("the run ended with %v", last)
	}
}

// G2: of a reply that is held back, a notice that quotes it is told if hooks agree
// with the reply, and not if they object.
func TestNoticeOfAReplyHeldBack(t *testing.T) {
	for _, objects := range []bool{false, true} {
		r := newRig(t, agenttest.Events(
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"a secret"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"another secret","annotations":[]}]}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`))
		r.agent.HoldOutput = true
		r.agent.Hooks = []agent.Hooks{{AfterModel: func(context.Context, *agent.ModelCall) error {
			if objects {
				return errors.New("no")
			}
			return nil
		}}}
		events, _ := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
		if noticed := told[session.Noticed](events); (len(noticed) == 0) != objects {
			t.Errorf("objects %v: told %+v", objects, noticed)
		}
		if logged := bodies[session.Noticed](r.session); len(logged) != 1 || logged[0].Kind != session.NoticeTextDiffers {
			t.Errorf("objects %v: logged %+v", objects, logged)
		}
	}
}
