// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// searcher is an upstream that searches the web, thinks, and says something or calls a function.
func searcher(t *testing.T) *agenttest.Server {
	up := agenttest.NewServer(t)
	up.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		n++
		parse := func(format string, args ...any) item.Item {
			it, err := item.ParseString(fmt.Sprintf(format, args...))
			if err != nil {
				t.Error(err)
			}
			return it
		}
		return agenttest.Completed(
			parse(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"thought %[1]d"}`, n),
			parse(`{"type":"web_search_call","id":"ws_%d","status":"completed","action":{"type":"search","query":"weather %[1]d"}}`, n),
			parse(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Rain %[1]d.","annotations":[]}]}`, n),
			parse(`{"type":"function_call","id":"fc_%d","call_id":"call_%[1]d","name":"look","arguments":"{\"a\":1}","status":"completed"}`, n),
		)
	})
	return up
}

// recalling serves a gateway over a store.
func recalling(t *testing.T, up *agenttest.Server, in store.Store) *world {
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	keep := &gateway.Store{In: in, Log: func(err error) { w.logged.WriteString(err.Error()) }}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	t.Cleanup(func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// What a client leaves out of a history that it sends back is put back from the stored response: found by the ids of
// items, or of calls, also by another server and after further turns. What differs is left as it is, and logged.
func TestRecall(t *testing.T) {
	const (
		asked  = `{"role":"user","content":"How is it?"}`
		said   = `{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"Rain 1."}]}`
		called = `{"type":"function_call","call_id":"call_1","name":"look","arguments":"{ \"a\": 1 }"}`
		output = `{"type":"function_call_output","call_id":"call_1","output":"wet"}`
	)
	for name, test := range map[string]struct {
		input  string
		put    bool
		logged bool
	}{
		"by the id of an item":     {asked + "," + said + "," + called + "," + output, true, false},
		"by the id of a call":      {asked + `,{"role":"assistant","content":"Rain 1."},` + called + "," + output, true, false},
		"by references":            {asked + `,{"type":"item_reference","id":"msg_1"},` + called + "," + output, true, false},
		"another question":         {`{"role":"user","content":"How was it?"},` + said + "," + called + "," + output, false, true},
		"another text":             {asked + `,{"role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"Sun."}]},` + called + "," + output, false, true},
		"nothing that it knows":    {asked + `,{"role":"assistant","content":"Rain 1."},{"role":"user","content":"Sure?"}`, false, false},
		"a question of its own":    {`{"role":"user","content":"Sure?"}`, false, false},
		"the ids of somebody else": {asked + `,{"type":"message","role":"assistant","id":"msg_x","content":[{"type":"output_text","text":"Rain 1."}]},{"role":"user","content":"Sure?"}`, false, false},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				up, in := searcher(t), opened(t)
				w := recalling(t, up, in)
				w.create(`{"model":"m","input":"How is it?"}`)
				if elsewhere {
					w = recalling(t, up, in)
				}
				r := w.create(`{"model":"m","input":[` + test.input + `]}`)
				sent := string(up.Requests()[1].Body)
				for _, hidden := range []string{"thought 1", "weather 1"} {
					if n := strings.Count(sent, hidden); (n == 1) != test.put {
						t.Errorf("%q is %d times in %s", hidden, n, sent)
					}
				}
				if (w.logged.Len() > 0) != test.logged || r.PreviousResponseID != "" {
					t.Errorf("logged %q, after %q", w.logged.String(), r.PreviousResponseID)
				}
				if !test.put {
					return
				}
				if strings.Count(sent, "How is it?") != 1 || strings.Count(sent, "Rain 1.") != 1 || strings.Count(sent, "wet") != 1 || strings.Index(sent, "weather 1") > strings.Index(sent, "Rain 1.") {
					t.Errorf("sent %s", sent)
				}
				again := test.input + `,{"type":"message","role":"assistant","id":"msg_2","content":[{"type":"output_text","text":"Rain 2."}]},` +
					`{"type":"function_call","call_id":"call_2","name":"look","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"call_2","output":"dry"}`
				w.create(`{"model":"m","input":[` + again + `]}`)
				sent = string(up.Requests()[2].Body)
				for _, once := range []string{"thought 1", "weather 1", "Rain 1.", "wet", "thought 2", "weather 2", "Rain 2.", "dry"} {
					if n := strings.Count(sent, once); n != 1 {
						t.Errorf("%q is %d times in %s", once, n, sent)
					}
				}
			})
		}
	}
}

// A history that has all that the stored one has is used as it is.
func TestRecallNothing(t *testing.T) {
	up, in := searcher(t), opened(t)
	w := recalling(t, up, in)
	first := w.create(`{"model":"m","input":"How is it?"}`)
	var all []string
	for _, it := range first.Output {
		all = append(all, it.JSON())
	}
	r := w.create(`{"model":"m","input":[{"role":"user","content":"How is it?"},` + strings.Join(all, ",") + `,{"type":"function_call_output","call_id":"call_1","output":"wet"}]}`)
	if sent := string(up.Requests()[1].Body); strings.Count(sent, "weather 1") != 1 || w.logged.Len() > 0 {
		t.Errorf("sent %s, logged %q", sent, w.logged.String())
	}
	_, _, text := w.ask("GET", "/responses/"+r.ID+"/input_items", "")
	if strings.Count(text, `"web_search_call"`) != 1 {
		t.Error(text)
	}
}

// unlisted is a store that cannot be searched, and counts the logs that are read.
type unlisted struct {
	store.Store
	fails bool
	loads atomic.Int64
}

func (u *unlisted) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	if u.fails {
		return func(yield func(session.Info, error) bool) { yield(session.Info{}, errors.New("the store is down")) }
	}
	return u.Store.List(ctx, q)
}

func (u *unlisted) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	u.loads.Add(1)
	return u.Store.Load(ctx, id, after)
}

const foreign = `{"role":"user","content":"How is it?"},{"type":"message","role":"assistant","id":"msg_other","content":[{"type":"output_text","text":"Rain."}]},{"role":"user","content":"Sure?"}`

// A history with ids that no response has is used as it is while the store cannot be searched.
func TestRecallWithoutStore(t *testing.T) {
	up, in := searcher(t), &unlisted{Store: opened(t), fails: true}
	w := recalling(t, up, in)
	status, _, text := w.ask("POST", "/responses", `{"model":"m","store":false,"input":[`+foreign+`]}`)
	if status != http.StatusOK || len(up.Requests()) != 1 || strings.Count(string(up.Requests()[0].Body), "Rain.") != 1 {
		t.Errorf("%d %s", status, text)
	}
}

// The responses that this server made itself are not read to find who made an item.
func TestRecallReadsNoneOfItsOwn(t *testing.T) {
	up, in := searcher(t), &unlisted{Store: opened(t)}
	w := recalling(t, up, in)
	for range 3 {
		w.create(`{"model":"m","input":"How is it?"}`)
	}
	before := in.loads.Load()
	w.create(`{"model":"m","store":false,"input":[` + foreign + `]}`)
	if n := in.loads.Load() - before; n != 0 {
		t.Errorf("it read %d logs", n)
	}
}
