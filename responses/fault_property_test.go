// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// dice lets rapid draw, and shrink, what agenttest wants drawn.
type dice struct{ *rapid.T }

func (d dice) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "") }

// replyOf is what the server answers when it is not hindered.
func replyOf() agenttest.Reply {
	return agenttest.Completed(
		item.Must(&item.Reasoning{Summary: []item.Part{&item.SummaryText{Text: "First, think."}}, EncryptedContent: "gAAA"}),
		item.Assistant("Hello, you"),
		item.Call("call_1", "read_file", `{"path":"a"}`),
		item.Call("call_2", "read_file", `{"path":"b"}`),
	)
}

// texts are the items without the white space that a server may put in them.
func texts(items []item.Item) []string {
	var list []string
	for _, it := range items {
		v := jsontext.Value(it.JSON())
		_ = v.Compact()
		list = append(list, string(v))
	}
	return list
}

// quiet keeps net/http from logging what a server says unasked.
func quiet(t *testing.T) {
	out := log.Writer()
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(out) })
}

// streamer is what is asked: a client, or a chain over one of the transports.
type streamer interface {
	Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error]
}

// faultyRun is a server with a schedule of faults, and a client of it.
type faultyRun struct {
	schedule []agenttest.Reply
	srv      *agenttest.Server
	client   *responses.Client
	model    streamer
	end      func()
}

const scheduled = 3 // answers before the right one

func newFaultyRun(t *testing.T, rt *rapid.T) *faultyRun {
	f := &faultyRun{schedule: agenttest.Schedule(dice{rt}, scheduled, replyOf())}
	f.srv = agenttest.NewServer(t, f.schedule...)
	f.client = f.srv.Client()
	f.client.IdleTimeout = 50 * time.Millisecond
	f.model, f.end = f.client, func() {}
	return f
}

func (f *faultyRun) String() string {
	var b strings.Builder
	for i, a := range f.schedule[:min(len(f.schedule), len(f.srv.Requests()))] {
		fmt.Fprintf(&b, "  %d: %v\n", i, a)
	}
	return b.String()
}

// check holds for every run that has ended: each attempt sent the same bytes,
// and none was sent when output had come.
func (f *faultyRun) check(rt *rapid.T, requestsAtOutput int) {
	reqs := f.srv.Requests()
	first := map[bool][]byte{} // by whether it came on a socket
	for _, r := range reqs {
		over := r.Socket > 0
		if first[over] == nil {
			first[over] = r.Body
		}
		if !bytes.Equal(r.Body, first[over]) {
			rt.Errorf("request bodies differ:\n%s\n%s", first[over], r.Body)
		}
	}
	if len(reqs) > 1+endpoint.DefaultRetries {
		rt.Errorf("%d requests", len(reqs))
	}
	if requestsAtOutput > 0 && len(reqs) != requestsAtOutput {
		rt.Errorf("%d requests when output came, %d in the end", requestsAtOutput, len(reqs))
	}
}

// typed checks that an error is one that a caller can tell apart.
func typed(rt *rapid.T, err error) {
	var e *endpoint.Error
	switch {
	case !errors.As(err, &e):
		rt.Errorf("an untyped error: %v", err)
	case e.Class == "" || e.Class == endpoint.Canceled && e.Message == "":
		rt.Errorf("class %q: %v", e.Class, e)
	}
}

// S2 S5 E1 E4: whatever a server does, a stream yields the whole reply, once,
// or a typed error with every item that was complete.
func TestStreamSurvivesFaults(t *testing.T) {
	survives(t, func(*testing.T, *faultyRun) {})
}

// S10: a chain too, over a WebSocket with what can go wrong there, and over
// HTTP.
func TestChainSurvivesFaults(t *testing.T) {
	for name, over := range transports {
		t.Run(name, func(t *testing.T) {
			survives(t, func(t *testing.T, f *faultyRun) {
				th := &responses.Chain{Client: f.client, Transport: over}
				f.client.Profile = openAI(t)
				f.model, f.end = th, func() { _ = th.Close() }
			})
		})
	}
}

func survives(t *testing.T, setUp func(*testing.T, *faultyRun)) {
	quiet(t)
	want := make([][]string, scheduled+1)
	for n := range want {
		want[n] = itemsOfReply(n)
	}
	ends := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFaultyRun(t, rt)
		setUp(t, f)
		defer f.srv.Close()
		defer f.end()
		r := f.stream(t.Context(), rt)
		f.check(rt, r.requestsAtOutput)
		whole := want[max(r.attempt, 0)]
		if r.err == nil {
			ends["whole"]++
			if d := cmp.Diff(whole, texts(r.resp.Output)); d != "" || r.resp.Status != item.StatusCompleted {
				rt.Errorf("taken for whole: %s (-want +got):\n%s", r.resp.Status, d)
			}
			// An item whose own event was lost is told when the last one tells it.
			if d := cmp.Diff(slices.Sorted(slices.Values(whole)), slices.Sorted(slices.Values(r.told))); d != "" {
				rt.Errorf("items that were told (-want +got):\n%s", d)
			}
		} else {
			ends[describeClass(r.err)]++
			typed(rt, r.err)
			r.checkPartial(rt, whole)
		}
		if rt.Failed() {
			rt.Logf("schedule:\n%s%v", f, r.err)
		}
	})
	t.Logf("ends: %v", ends)
}

func describeClass(err error) string {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return string(e.Class)
	}
	return "untyped"
}

// seen is what a consumer saw of a stream.
type seen struct {
	told             []string // items, as the accumulator gave them
	attempt          int      // that output came from, -1 if none did
	requestsAtOutput int
	resp             *api.Response
	err              error
}

func (f *faultyRun) stream(ctx context.Context, rt *rapid.T) seen { return f.ask(ctx, rt, hello()) }

func (f *faultyRun) ask(ctx context.Context, rt *rapid.T, req *api.Request) seen {
	r := seen{attempt: -1}
	var acc api.Accumulator
	for ev, err := range f.model.Stream(ctx, req) {
		if r.err != nil {
			rt.Errorf("%q after the error", ev.Type)
		}
		if r.err = err; err != nil {
			continue
		}
		if r.requestsAtOutput == 0 && !promises(ev.Type) {
			r.requestsAtOutput = len(f.srv.Requests())
			r.attempt = r.requestsAtOutput - 1
		}
		items, err := acc.Add(ev)
		if err != nil {
			rt.Errorf("event %s: %v", ev.Type, err)
		}
		r.told = append(r.told, texts(items)...)
	}
	var whole bool
	if r.resp, whole = acc.Response(); whole != (r.err == nil) && r.err == nil {
		rt.Errorf("no error, and no last event")
	}
	return r
}

// promises reports an event that is not an output: a chain may ask again behind
// it.
func promises(t api.EventType) bool {
	switch t {
	case api.EventCreated, api.EventInProgress, api.EventQueued, api.EventError, api.EventFailed:
		return true
	}
	return false
}

// S10 E6 I12: over several turns, whatever happens in them, a chain sends the
// whole history, or what is new behind the last answer that came to its end.
func TestChainTurnsSurviveFaults(t *testing.T) {
	quiet(t)
	const turns, most = 3, scheduled + 20
	var want [most][]string
	for n := range want {
		want[n] = itemsOfReply(n)
	}
	for name, over := range transports {
		ends := map[string]int{}
		rapid.Check(t, func(rt *rapid.T) {
			f := newFaultyRun(t, rt)
			defer f.srv.Close()
			if over == responses.WebSocket && strings.Contains(fmt.Sprint(f.schedule), ".Move(") {
				// A response that goes on behind its last event, and begins
				// again, cannot be told from the next one.
				rt.Skip("moved events")
			}
			f.srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return replyOf() })
			f.client.Profile = openAI(t)
			th := &responses.Chain{Client: f.client, Transport: over}
			defer th.Close()
			f.model = th
			req := hello()
			var totals []int            // items of the history in each turn
			covered := map[string]int{} // items of the history up to an answer that came to its end
			for range turns {
				totals = append(totals, req.Input.Len())
				r := f.ask(t.Context(), rt, req)
				if r.err != nil {
					ends[describeClass(r.err)]++
					typed(rt, r.err)
				} else {
					ends["whole"]++
					// By its own number: a request that was given up may be recorded
					// behind a later one.
					n := r.attempt
					if _, err := fmt.Sscanf(r.resp.ID, "resp_%d", &n); err != nil || n >= most {
						rt.Fatalf("the answer %q", r.resp.ID)
					}
					if d := cmp.Diff(want[n], texts(r.resp.Output)); d != "" {
						rt.Errorf("taken for whole (-want +got):\n%s", d)
					}
				}
				if r.err == nil {
					req.Input.Append(r.resp.Output...)
					covered[r.resp.ID] = req.Input.Len()
				}
				req.Input.Append(item.User("go on"))
			}
			for _, sent := range f.srv.Requests() {
				checkSent(t, rt, sent, totals, covered)
			}
			if rt.Failed() {
				rt.Logf("schedule:\n%s", f)
			}
		})
		t.Logf("%s, ends of turns: %v", name, ends)
	}
}

// S10: what a server sends behind the last event of a response is not taken for
// a part of the next one.
func TestLeftoversOnSocket(t *testing.T) {
	for name, a := range map[string]agenttest.Reply{
		"the last event twice": replyOf().Twice(-1),
		"an event too many":    replyOf().WithEvent(99, `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":"no"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				srv := agenttest.NewServer(t, a)
				srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return replyOf() })
				c := srv.Client()
				c.Profile = openAI(t)
				th := &responses.Chain{Client: c, Transport: responses.WebSocket}
				for range 2 {
					// A question that was given up may arrive behind its repetition.
					before := len(srv.Requests())
					d := drainModel(t.Context(), t, th, hello())
					if d.err != nil || !d.whole {
						t.Errorf("%v", d.err)
						continue
					}
					var n int
					if _, err := fmt.Sscanf(d.resp.ID, "resp_%d", &n); err != nil || n < before {
						t.Errorf("the answer to request %d or later is %s", before, d.resp.ID)
					}
					if diff := cmp.Diff(itemsOfReply(n), texts(d.resp.Output)); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				_ = th.Close()
				srv.Close()
			}
		})
	}
}

// checkSent holds for a request of a chain: all of a turn's history, or the id
// of an answer that came to its end, and the items behind it.
func checkSent(t *testing.T, rt *rapid.T, sent agenttest.Request, totals []int, covered map[string]int) {
	got := sent.Parse(t)
	id, items := got.PreviousResponseID, got.Input.Len()
	if before, ok := covered[id]; (id == "" || ok) && slices.Contains(totals, before+items) {
		return
	}
	rt.Errorf("sent %d items behind %q; histories have %v, answers that ended %v", items, id, totals, covered)
}

// itemsOfReply are the items of the reply to request n.
func itemsOfReply(n int) []string {
	id := fmt.Sprintf("resp_%d", n)
	return []string{
		`{"id":"rs_` + id + `_0","type":"reasoning","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"First, think."}]}`,
		`{"id":"msg_` + id + `_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hello, you"}],"role":"assistant"}`,
		`{"id":"fc_` + id + `_2","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"call_1","name":"read_file"}`,
		`{"id":"fc_` + id + `_3","type":"function_call","status":"completed","arguments":"{\"path\":\"b\"}","call_id":"call_2","name":"read_file"}`,
	}
}

// checkPartial holds for what a broken reply left: items as they would have
// been in the whole one, each once, and all of them in the error.
func (r seen) checkPartial(rt *rapid.T, whole []string) {
	next := map[string]bool{}
	for _, one := range whole {
		next[one] = true
	}
	for _, one := range r.told {
		if !next[one] {
			rt.Errorf("told twice, or never said: %s", one)
		}
		next[one] = false
	}
	var partial *responses.PartialError
	var inError []string
	if errors.As(r.err, &partial) {
		inError = texts(partial.Items)
	}
	if d := cmp.Diff(r.told, inError); d != "" {
		rt.Errorf("items told and items of the error (-told +error):\n%s", d)
	}
}

// S2 E1: the same without streaming.
func TestCreateSurvivesFaults(t *testing.T) {
	quiet(t)
	want := make([][]string, scheduled+1)
	for n := range want {
		want[n] = itemsOfReply(n)
	}
	ends := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFaultyRun(t, rt)
		defer f.srv.Close()
		resp, err := f.client.Create(t.Context(), hello())
		f.check(rt, 0)
		if err == nil {
			ends["whole"]++
			whole := want[len(f.srv.Requests())-1]
			if d := cmp.Diff(whole, texts(resp.Output)); d != "" || resp.Status != item.StatusCompleted {
				rt.Errorf("taken for whole: %s (-want +got):\n%s", resp.Status, d)
			}
		} else {
			ends[describeClass(err)]++
			typed(rt, err)
		}
		if rt.Failed() {
			rt.Logf("schedule:\n%s%v", f, err)
		}
	})
	t.Logf("ends: %v", ends)
}

// S2: cut at any byte, with and without a sign of the cut, and with each event
// missing, doubled or out of place, half a reply is never taken for a whole.
func TestEveryPlaceOfAFault(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: breaks a stream at every place")
	}
	quiet(t)
	whole := itemsOfReply(0)
	srv := agenttest.NewServer(t, replyOf())
	drain(t, srv.Client(), hello())
	stream := srv.Sent(0)
	events := strings.Count(stream, "\n\n")
	reply := replyOf()
	var answers []agenttest.Reply
	for n := 0; n < len(stream); n++ {
		if n%11 == 0 || n > len(stream)-100 {
			answers = append(answers, reply.CutAfter(n), reply.CutAfter(n).UntilClose(), reply.CutAfter(n).UntilClose().LineEnds("\r\n"))
		}
	}
	for n := range events {
		answers = append(answers,
			reply.Without(n), reply.Twice(n), reply.Twice(n).WithoutLast(), reply.Without(n).WithoutLast(), reply.Without(n).WithDone(),
			reply.WithEvent(n, "garbage"), reply.WithEvent(n, "{"), reply.WithEvent(n, "[]"), reply.WithEvent(n, ""), reply.WithEvent(n, "null"))
		for m := range events {
			answers = append(answers, reply.Move(n, m), reply.Move(n, m).WithoutLast())
		}
	}
	outcomes := map[string]int{}
	for _, a := range answers {
		outcomes[onePlace(t, a, whole)]++
	}
	t.Logf("%d answers, by outcome: %v", len(answers), outcomes)
}

// onePlace asks for the answer, with no retry, and names the outcome.
func onePlace(t *testing.T, a agenttest.Reply, whole []string) string {
	srv := agenttest.NewServer(t, a)
	defer srv.Close()
	c := srv.Client()
	c.Retry.Max = -1
	d := drain(t, c, hello())
	var told []string
	for _, it := range texts(d.items) {
		if !slices.Contains(whole, it) || slices.Contains(told, it) {
			t.Errorf("%v: told twice, or never said: %s", a, it)
		}
		told = append(told, it)
	}
	if d.err != nil {
		var partial *responses.PartialError
		var inError []string
		if errors.As(d.err, &partial) {
			inError = texts(partial.Items)
		}
		if diff := cmp.Diff(told, inError); diff != "" {
			t.Errorf("%v: items told and items of the error (-told +error):\n%s", a, diff)
		}
		done := slices.Collect(completeItems(srv.Sent(0)))
		for _, it := range whole {
			if strings.Contains(strings.Join(done, "\n"), it) && !slices.Contains(told, it) && describeClass(d.err) == string(endpoint.Truncated) {
				t.Errorf("%v: %v: lost: %s", a, d.err, it)
			}
		}
		return describeClass(d.err)
	}
	if diff := cmp.Diff(whole, texts(d.resp.Output)); diff != "" || !d.whole {
		t.Errorf("%v: taken for whole (-want +got):\n%s", a, diff)
	}
	return "whole"
}

// An item that is said to be complete twice is one item of the error.
func TestPartialItemsOnce(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("hi")).Twice(-2).WithoutLast())
	d := drain(t, srv.Client(), hello())
	var partial *responses.PartialError
	if !errors.As(d.err, &partial) || len(partial.Items) != 1 {
		t.Errorf("%v", d.err)
	}
}

// E1: net/http repeats a request by itself, past the budget, on a connection
// that was used before, when the request has an Idempotency-Key.
func TestRetriesAreCounted(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("hi")))
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Reset() })
	c := srv.Client()
	c.Profile = openAI(t)
	for range 2 {
		_ = drain(t, c, hello())
	}
	sent := srv.Requests()
	if n := len(sent) - 1; n != 1+endpoint.DefaultRetries {
		t.Errorf("%d requests", n)
	}
	first := sent[0].Header.Get("Idempotency-Key")
	for _, again := range sent[1:] {
		if key := again.Header.Get("Idempotency-Key"); key == "" || key == first || key != sent[1].Header.Get("Idempotency-Key") {
			t.Errorf("the key is %q: want one for the request and its repeats, and another for the one before, which has %q", key, first)
		}
	}
}

// completeItems are the data of the events of a stream that say that an item is
// complete, of those that were sent to their end.
func completeItems(stream string) iter.Seq[string] {
	return func(yield func(string) bool) {
		stream = strings.ReplaceAll(stream, "\r\n", "\n")
		for end := strings.Index(stream, "\n\n"); end >= 0; end = strings.Index(stream, "\n\n") {
			if event := stream[:end]; strings.Contains(event, "response.output_item.done") && !yield(event) {
				return
			}
			stream = stream[end+2:]
		}
	}
}

// S8: nothing is left running, whatever happened.
func TestFaultsLeaveNothing(t *testing.T) {
	quiet(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := goleak.IgnoreCurrent()
		f := newFaultyRun(t, rt)
		stop := rapid.IntRange(0, 30).Draw(rt, "stop")
		for _, err := range f.client.Stream(t.Context(), hello()) {
			if stop--; stop < 0 || err != nil {
				break
			}
		}
		f.srv.Close()
		if err := goleak.Find(before); err != nil {
			rt.Errorf("%v\nschedule:\n%s", err, f)
		}
	})
}
