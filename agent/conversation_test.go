// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// talkServer keeps conversations and responses, and holds what a model reads of
// them against what the log says that it should read.
type talkServer struct {
	mu     sync.Mutex
	talks  map[string][]string // by the id of a conversation
	kept   map[string][]string // by the id of a response
	made   int
	mood   []mood   // of the answers to come
	want   []string // the history that the loop means to send
	wrong  []string // what was not so
	items  []int    // that each request carried
	from   []string // what each went on from
	before []string // of a response that was there before the session
	// ignores says that the server knows of no conversations, and takes no notice.
	ignores bool
}

type mood int

const (
	says mood = iota
	calls
	stopsShort      // and keeps what it said
	hangsUp         // in the middle of a reply, and keeps it all
	resets          // without a word, and keeps it all
	fails           // with 500, and keeps it all
	failsLate       // with an event, and keeps it all
	isBusy          // with 429, and keeps nothing
	refusesItem     // with 400 about the last item
	forgets         // everything
	nothingToForget // the number of moods
)

func (k *talkServer) plan(moods ...mood) { k.locked(func() { k.mood = moods }) }

// locked is for tests, which look at what the server's goroutines write.
func (k *talkServer) locked(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// check fails the test if requests went on from something else than wanted, or a
// model read what it should not.
func (k *talkServer) check(t *testing.T, from ...string) {
	t.Helper()
	k.locked(func() {
		if from != nil && !slices.Equal(k.from, from) || len(k.wrong) > 0 {
			t.Errorf("requests went on from %q, want %q; %v", k.from, from, k.wrong)
		}
	})
}

func (k *talkServer) means(list *item.List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.want = k.want[:0]
	for _, it := range list.All() {
		k.want = append(k.want, it.JSON())
	}
}

// known is what the model reads before the request's own input.
func (k *talkServer) known(req *api.Request) ([]string, *agenttest.Reply) {
	if id, ok := api.ConversationID(req.Conversation); ok {
		held, ok := k.talks[id]
		if !ok {
			no := agenttest.Failure(http.StatusNotFound, "", "Conversation with id '"+id+"' not found.")
			return nil, &no
		}
		return held, nil
	}
	id := req.PreviousResponseID
	held, ok := k.kept[id]
	if id != "" && !ok {
		no := agenttest.PreviousResponseNotFound(id)
		return nil, &no
	}
	return held, nil
}

func (k *talkServer) answer(t *testing.T) func(int, agenttest.Request) agenttest.Reply {
	return func(_ int, r agenttest.Request) agenttest.Reply {
		k.mu.Lock()
		defer k.mu.Unlock()
		req := r.Parse(t)
		now := says
		if len(k.mood) > 0 {
			now, k.mood = k.mood[0], k.mood[1:]
		}
		if now == forgets {
			clear(k.talks)
			clear(k.kept)
		}
		talk, _ := api.ConversationID(req.Conversation)
		k.items, k.from = append(k.items, req.Input.Len()), append(k.from, talk+req.PreviousResponseID)
		if k.ignores {
			req.Conversation = ""
		}
		known, no := k.known(req)
		switch {
		case no != nil:
			return *no
		case now == isBusy:
			return agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down")
		}
		reads := slices.Clone(known)
		for _, it := range req.Input.All() {
			reads = append(reads, it.JSON())
		}
		if diff := cmp.Diff(k.want, reads[min(len(k.before), len(reads)):]); diff != "" {
			k.wrong = append(k.wrong, fmt.Sprintf("from %q (-the log +what the model reads):\n%s", talk+req.PreviousResponseID, diff))
		}
		if now == refusesItem {
			place := fmt.Sprintf(`"param":"input[%d]"`, req.Input.Len()-1)
			return agenttest.Raw(http.StatusBadRequest, "application/json", `{"error":{"message":"bad item","type":"invalid_request_error",`+place+`}}`)
		}
		return k.reply(talk, reads, now)
	}
}

func (k *talkServer) reply(talk string, reads []string, now mood) agenttest.Reply {
	k.made++
	id := fmt.Sprintf("resp_%d", k.made)
	it := fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"answer %[1]d","annotations":[]}]}`, k.made)
	if now == calls {
		it = fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%[1]d","name":"echo","arguments":"{\"text\":\"x\"}"}`, k.made)
	}
	reads = append(reads, it)
	k.kept[id] = reads
	if talk != "" && !k.ignores {
		k.talks[talk] = reads
	}
	if now == fails {
		return agenttest.Failure(http.StatusInternalServerError, "server_error", "it broke")
	}
	if now == resets {
		return agenttest.Reset()
	}
	status, named := item.StatusCompleted, "null"
	if talk != "" && !k.ignores {
		named = `{"id":"` + talk + `"}`
	}
	switch now {
	case stopsShort:
		status = item.StatusIncomplete
	case failsLate:
		status = item.StatusFailed
	}
	a := agenttest.Events(
		`{"type":"response.created","response":{"id":"`+id+`","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+it+`}`,
		`{"type":"response.`+status+`","response":{"id":"`+id+`","status":"`+status+`","conversation":`+named+`,"output":[`+it+`],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`,
	)
	if now == hangsUp {
		return a.CutAfter(1)
	}
	return a
}

// talkRig is an agent on such a server.
func talkRig(t *testing.T) (*agent.Agent, *talkServer) {
	srv := agenttest.NewServer(t)
	k := &talkServer{talks: map[string][]string{"conv_1": nil}, kept: map[string][]string{}}
	srv.Otherwise(k.answer(t))
	c := srv.Client()
	openai, err := endpoint.ByName("openai")
	if err != nil {
		t.Fatal(err)
	}
	c.Profile, c.Key = &openai, endpoint.NewKey("sk-key")
	return &agent.Agent{
		Model: c, Tools: []tool.Tool{echo()}, Policy: agent.Policy{Allow: []string{"*"}}, Retry: c.Retry,
		Request: api.Request{Model: "m", Conversation: api.ConversationByID("conv_1")},
		Hooks: []agent.Hooks{{
			BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
				k.means(c.Request.Input)
				return ctx, nil
			},
			BeforeInput: func(_ context.Context, c *agent.InputCall) error {
				for _, it := range c.Input {
					if strings.Contains(it.JSON(), "forbidden") {
						return errors.New("no")
					}
				}
				return nil
			},
		}},
	}, k
}

// G5: with a conversation each request carries what is new alone, over several
// turns and over processes, and everything once.
func TestConversationSendsWhatIsNew(t *testing.T) {
	a, k := talkRig(t)
	store := new(session.Memory)
	for i := range 3 {
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		k.plan(calls)
		if _, err := a.Run(t.Context(), s, item.User(fmt.Sprintf("question %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	k.check(t)
	k.locked(func() {
		if want := []int{1, 1, 1, 1, 1, 1}; !slices.Equal(k.items, want) {
			t.Errorf("requests carried %v items, want %v", k.items, want)
		}
		if n := len(k.talks["conv_1"]); n != 12 {
			t.Errorf("the conversation holds %d items, want 12", n)
		}
	})
}

// G5: whatever the server answers or keeps in silence, and whatever becomes of
// the session meanwhile, the model reads the history of the log: no item twice,
// none missing.
func TestConversationProperty(t *testing.T) {
	a, k := talkRig(t)
	a.Compaction.By = session.ByDropping
	rapid.Check(t, func(rt *rapid.T) {
		ignores := rapid.IntRange(0, 9).Draw(rt, "ignores") == 0
		k.locked(func() {
			k.talks, k.kept, k.wrong, k.ignores = map[string][]string{"conv_1": nil}, map[string][]string{}, nil, ignores
		})
		a.Request.Conversation = api.ConversationByID("conv_1")
		store := new(session.Memory)
		id, forks, born := "s", 0, map[string]bool{}
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			s, err := session.Open(t.Context(), store, id)
			if err != nil {
				rt.Fatal(err)
			}
			var moods []mood
			for range rapid.IntRange(0, 3).Draw(rt, "moods") {
				moods = append(moods, mood(rapid.IntRange(0, int(nothingToForget)-1).Draw(rt, "mood")))
			}
			k.plan(moods...)
			said := item.User(fmt.Sprintf("question %d", step))
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				said = item.User("forbidden")
			case 1: // what another program did goes with the rest
				if _, err := s.Append(t.Context(), session.InputItem{Item: item.Assistant("said elsewhere")}); err != nil {
					rt.Fatal(err)
				}
			case 2:
				_, _ = a.Compact(t.Context(), s)
			case 3:
				log := s.Log()
				first := slices.IndexFunc(log, func(e session.Entry) bool { _, ok := e.Body.(session.RunStarted); return ok })
				if first < 0 {
					break
				}
				forks++
				id = fmt.Sprintf("fork%d", forks)
				a.Request.Conversation = api.ConversationByID("conv_1")
				if s, err = s.Fork(t.Context(), int64(rapid.IntRange(first+1, len(log)).Draw(rt, "at")), id); err != nil {
					rt.Fatal(err)
				}
			case 4:
				own := "conv_of_" + id // others have none of their own in it
				if !born[own] {
					born[own] = true
					k.locked(func() { k.talks[own] = nil })
				}
				a.Request.Conversation = api.ConversationByID([]string{"conv_1", own}[step%2])
			case 5:
				id, a.Request.Conversation = "s", api.ConversationByID("conv_1") // which others may have been copied from
				if s, err = session.Open(t.Context(), store, id); err != nil {
					rt.Fatal(err)
				}
			}
			_, _ = a.Run(t.Context(), s, said)
			var wrong []string
			k.locked(func() { wrong = slices.Clone(k.wrong) })
			if len(wrong) > 0 {
				rt.Fatalf("%s", strings.Join(wrong, "\n"))
			}
		}
	})
}

// G5: a conversation that the endpoint does not know is left with a word, and the
// whole history is sent, in the same run; the log says so, so that later runs do
// not ask for it again.
func TestConversationForgotten(t *testing.T) {
	a, k := talkRig(t)
	store := new(session.Memory)
	for i, moods := range [][]mood{{says}, {forgets}, {says}} {
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		k.plan(moods...)
		events, err := drain(a.Start(s, item.User("hi")).Events(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		noticed := told[session.Noticed](events)
		if len(noticed) != min(i, 1) { // once in a run
			t.Errorf("run %d: %v", i, noticed)
		}
		for _, n := range noticed {
			contains(t, n.Text, "conv_1", "the whole history")
		}
	}
	k.check(t, "conv_1", "conv_1", "", "")
}

// G5: a previous_response_id of the agent stands before the history, with each
// request, and one of the session itself is refused before anything is sent.
func TestPreviousResponseBeforeTheSession(t *testing.T) {
	a, k := talkRig(t)
	k.locked(func() {
		k.before = []string{`{"type":"message","role":"user","content":"before"}`}
		k.kept["resp_x"] = k.before
	})
	a.Request.Conversation, a.Request.PreviousResponseID = "", "resp_x"
	client := a.Model.(*responses.Client)
	for name, model := range map[string]agent.Model{"client": client, "chain": &responses.Chain{Client: client}} {
		k.locked(func() { k.items, k.from = nil, nil })
		a.Model = model
		s := session.New()
		for range 2 {
			k.plan(calls)
			if _, err := a.Run(t.Context(), s, item.User("hi")); err != nil {
				t.Fatal(name, err)
			}
		}
		own := *a
		k.locked(func() {
			if len(k.wrong) > 0 || k.from[0] != "resp_x" {
				t.Errorf("%s: %v, %v", name, k.from, k.wrong)
			}
			own.Request.PreviousResponseID = fmt.Sprintf("resp_%d", k.made)
		})
		before := len(s.Log())
		if _, err := own.Run(t.Context(), s, item.User("more")); err == nil || len(s.Log()) != before {
			t.Errorf("%s: a response of the session: %v", name, err)
		} else {
			contains(t, err.Error(), "a response of this session", "twice")
		}
	}
}

// G5: a Chain in another process goes on from the session's last response, and
// sends the whole history where that is gone.
func TestChainResumes(t *testing.T) {
	a, k := talkRig(t)
	client := a.Model.(*responses.Client)
	a.Request.Conversation = ""
	store := new(session.Memory)
	for i, moods := range [][]mood{{calls}, {calls}, {forgets}, {says}} {
		a.Model = &responses.Chain{Client: client}
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		k.plan(moods...)
		if _, err := a.Run(t.Context(), s, item.User(fmt.Sprintf("question %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	k.check(t)
	k.locked(func() {
		if want := []int{1, 1, 1, 1, 1, 9, 1}; !slices.Equal(k.items, want) {
			t.Errorf("requests carried %v items, want %v", k.items, want)
		}
	})
}

// K5 G5: an imported session does not go on with the conversation of the one that
// it is a copy of, whatever its id is.
func TestConversationOfAnImport(t *testing.T) {
	a, k := talkRig(t)
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("one")); err != nil {
		t.Fatal(err)
	}
	other := disarmed(t, s)
	if _, err := a.Run(t.Context(), other, item.User("two")); err != nil {
		t.Fatal(err)
	}
	k.check(t, "conv_1", "")
}

// K5 G5: nor does it go on from a response that the imported log names: the endpoint may have
// others' words there, which no log has and no guard saw.
func TestResponseOfAnImport(t *testing.T) {
	a, k := talkRig(t)
	client := a.Model.(*responses.Client)
	a.Request.Conversation = ""
	for _, imported := range []bool{false, true} {
		k.locked(func() { k.items, k.from = nil, nil })
		a.Model = &responses.Chain{Client: client}
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("one")); err != nil {
			t.Fatal(err)
		}
		other := disarmed(t, s)
		if imported {
			if _, err := other.Append(t.Context(), session.Noticed{Kind: session.NoticeImported, Text: "imported"}); err != nil {
				t.Fatal(err)
			}
		}
		a.Model = &responses.Chain{Client: client}
		if _, err := a.Run(t.Context(), other, item.User("two")); err != nil {
			t.Fatal(err)
		}
		k.locked(func() {
			if (k.from[len(k.from)-1] == "") != imported || len(k.wrong) > 0 {
				t.Errorf("imported %v: continues %q; %v", imported, k.from, k.wrong)
			}
		})
	}
}

// disarmed returns a copy of a session as an import makes it. In memory both have one id.
func disarmed(t *testing.T, s *session.Session) *session.Session {
	t.Helper()
	var d agent.Disarm
	for e := range s.Entries() {
		d.Learn(e)
	}
	other := session.New()
	for e := range s.Entries() {
		kept, _ := d.Entry(e)
		if _, err := other.Append(t.Context(), kept.Body); err != nil {
			t.Fatal(err)
		}
	}
	return other
}
