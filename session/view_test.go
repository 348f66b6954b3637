// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func reasoning(id string) item.Item {
	return parse(fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"e"}`, id))
}

func result(callID, text string) item.Item {
	return item.Must(&item.FunctionCallOutput{CallID: callID, Output: item.Text(text)})
}

// fold applies the bodies as a log.
func fold(bodies ...session.Body) *session.View {
	v := new(session.View)
	for i, b := range bodies {
		v.Apply(session.Entry{Seq: int64(i + 1), Body: b})
	}
	return v
}

func given(list ...item.Item) (bodies []session.Body) {
	for _, it := range list {
		bodies = append(bodies, session.InputItem{Item: it})
	}
	return bodies
}

// turn is a whole reply.
func turn(n int, list ...item.Item) []session.Body {
	bodies := []session.Body{session.TurnStarted{Turn: n}}
	for _, it := range list {
		bodies = append(bodies, session.OutputItem{Turn: n, Item: it})
	}
	return append(bodies, session.TurnEnded{Turn: n, Status: item.StatusCompleted})
}

// broken is what a person said, if the first item is one's, and a reply that
// broke off.
func broken(list ...item.Item) []session.Body {
	var first []session.Body
	if list[0].Role() == item.RoleUser {
		first, list = given(list[0]), list[1:]
	}
	bodies := turn(1, list...)
	bodies[len(bodies)-1] = session.TurnEnded{Turn: 1, Status: item.StatusFailed}
	return join(first, bodies)
}

func answered(callID, text string) session.Body {
	return session.CallOutput{CallID: callID, Item: result(callID, text)}
}

func join(parts ...[]session.Body) (bodies []session.Body) {
	for _, p := range parts {
		bodies = append(bodies, p...)
	}
	return bodies
}

// outline shows a view in short: types, ids and texts.
func outline(v *session.View) string {
	var words []string
	for _, it := range items(v) {
		switch it.Type() {
		case item.TypeMessage:
			m, err := item.As[item.Message](it)
			if err != nil {
				panic(err)
			}
			if session.IsBreakNote(it) {
				words = append(words, "(broke off)")
				continue
			}
			words = append(words, fmt.Sprintf("%s:%s", m.Role, m.Content.Display()))
		case item.TypeFunctionCallOutput:
			o, err := item.As[item.FunctionCallOutput](it)
			if err != nil {
				panic(err)
			}
			words = append(words, fmt.Sprintf("%s=%s", o.CallID, o.Output.Display()))
		case item.TypeReasoning:
			words = append(words, it.ID())
		default:
			words = append(words, it.CallID()+"()")
		}
	}
	return strings.Join(words, " ")
}

func call(id string) item.Item { return item.Call(id, "f", "{}") }

func TestView(t *testing.T) {
	user, reply := item.User("q"), item.Assistant("a")
	search := parse(`{"type":"web_search_call","id":"ws"}`)
	for _, c := range []struct {
		name string
		log  []session.Body
		want string
	}{
		// R1 L2: a reply as it was said, then the outputs in call order.
		{"order", join(given(user), turn(1, reasoning("rs1"), call("c1"), reasoning("rs2"), reply, call("c2")),
			[]session.Body{answered("c2", "two"), answered("c1", "one")}),
			"user:q rs1 c1() rs2 assistant:a c2() c1=one c2=two"},
		// P1: nothing of a reply is sent before its calls are answered.
		{"held back", join(given(user), turn(1, reply, call("c1"), call("c2")), []session.Body{answered("c2", "two")}), "user:q"},
		// L5: what is said meanwhile comes behind the outputs.
		{"input meanwhile", join(given(user), turn(1, call("c1")), given(item.User("wait")), []session.Body{answered("c1", "one")}),
			"user:q c1() c1=one user:wait"},
		// R6
		{"reasoning alone", join(given(user), turn(1, reasoning("rs1")), turn(2, reply)), "user:q assistant:a"},
		{"reasoning before a withdrawn call", join(turn(1, reasoning("rs1"), parse(`{"type":"computer_call","id":"i","call_id":"c1"}`), reasoning("rs2"), reply),
			[]session.Body{session.CallDropped{CallID: "c1"}}), "rs2 assistant:a"},
		{"partial reasoning", []session.Body{session.TurnStarted{Turn: 1}, session.OutputItem{Item: reasoning("rs1"), Partial: true},
			session.OutputItem{Item: reply, Partial: true}, session.TurnEnded{Status: item.StatusFailed}}, "assistant:a (broke off)"},
		{"partial reasoning, imported", given(user, parse(`{"type":"reasoning","id":"rs1","summary":[],"status":"incomplete"}`), reply), "user:q assistant:a"},
		{"imported reasoning behind an output", given(call("c1"), reasoning("rs1"), result("c1", "one"), reply), "c1() c1=one assistant:a"},
		{"imported reasoning waits for more", given(user, reasoning("rs1")), "user:q"},
		{"imported reasoning before a search", given(user, reasoning("rs1"), search, reply), "user:q rs1 () assistant:a"},
		{"imported reasoning, then a person", given(reasoning("rs1"), user, reply), "user:q assistant:a"},
		// R1, imported: replies stay apart.
		{"imported replies", given(user, reasoning("rs1"), call("c1"), result("c1", "one"), reasoning("rs2"), reply),
			"user:q rs1 c1() c1=one rs2 assistant:a"},
		// E4 P1: a reply that broke off keeps what was said, and of its calls
		// those that have an output or may have run.
		{"broken off", broken(user, reasoning("rs1"), reply, call("c1")), "user:q rs1 assistant:a (broke off)"},
		{"broken off behind reasoning", broken(user, reply, reasoning("rs1"), call("c1")), "user:q assistant:a (broke off)"},
		{"broken off by a crash", broken(user, reply, call("c1"))[:4], "user:q assistant:a (broke off)"},
		{"broken off, then asked again", join(broken(user, reply, call("c1")), turn(2, call("c1")), []session.Body{answered("c1", "one")}),
			"user:q assistant:a (broke off) c1() c1=one"},
		{"broken off, with an output", join(broken(user, call("c1"), call("c2"))[:4], []session.Body{session.CallStarted{CallID: "c2"},
			answered("c2", "two"), session.TurnEnded{Status: item.StatusFailed}}), "user:q c2() c2=two"},
		{"broken off, the output comes", join(broken(user, call("c1"), call("c2"))[:4], []session.Body{session.CallStarted{CallID: "c2"},
			session.TurnEnded{Status: item.StatusFailed}, answered("c2", "two")}), "user:q c2() c2=two"},
		{"broken off before a word", broken(user, parse(`{"type":"message","id":"m","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"\n","annotations":[]}]}`)), "user:q"},
		{"broken off, imported", append(given(user, reply, call("c1"), reasoning("rs1")), session.TurnEnded{Status: item.StatusFailed}, session.InputItem{Item: reply}),
			"user:q assistant:a (broke off) assistant:a"},
		{"whole and imported, then broken off", join(given(call("c1")), broken(user, call("c2")), []session.Body{answered("c1", "one")}), "c1() c1=one user:q"},
		// P3
		{"misplaced output", given(call("c1"), user, reply, result("c1", "one")), "c1() c1=one user:q assistant:a"},
		{"orphan and duplicate", given(result("c1", "early"), call("c1"), result("c1", "one"), result("c1", "again")), "c1() c1=one"},
		{"another kind of output", given(call("c1"), parse(`{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`), result("c1", "one")), "c1() c1=one"},
		// I13
		{"blank", append(given(item.User(" "), item.Assistant(""), item.Item{}, user), session.Note{Item: item.User("debug")}), "user:q"},
		// P4
		{"ids that come again", join(turn(1, call("c")), []session.Body{answered("c", "one")}, turn(2, call("c"), call("")),
			[]session.Body{answered("", "three"), answered("c", "two")}), "c() c=one call_2() call_3() call_2=two call_3=three"},
		{"a long id", join(turn(1, call(strings.Repeat("x", 65))), []session.Body{answered(strings.Repeat("x", 65), "one")}), "call_1() call_1=one"},
		{"one id in one reply", join(turn(1, call("c"), item.Call("c", "g", "{}")), []session.Body{answered("c", "one"), answered("c", "two")}),
			"c() call_2() c=one call_2=two"},
		// A tool that the endpoint runs itself leaves nothing to answer.
		{"answered by the endpoint", turn(1, parse(`{"type":"shell_call","call_id":"h"}`), parse(`{"type":"shell_call_output","call_id":"h"}`), reply),
			"h() h() assistant:a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := fold(append(c.log, session.RunStarted{})...)
			if diff := cmp.Diff(c.want, outline(v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := agenttest.CheckPairing(items(v)...); err != nil {
				t.Error(err)
			}
		})
	}
}

// W8: what is received goes out as it came.
func TestBytesStay(t *testing.T) {
	odd := parse(`{ "name":"f","x":1.0e1, "arguments":"{\u0041}", "call_id":"c\u0031","type":"function_call"}`)
	v := fold(join(turn(1, odd), []session.Body{answered("c1", "one")})...)
	if got := v.Items().At(0); got != odd {
		t.Errorf("got %s", got.JSON())
	}
}

// P2: what is known of a call that was never answered.
func TestOpenCalls(t *testing.T) {
	type know struct{ Given, Started, Lost bool }
	started := session.CallStarted{CallID: "c"}
	for _, c := range []struct {
		name string
		log  []session.Body
		want know
	}{
		{"imported", given(call("c")), know{Given: true}},
		{"ready", turn(1, call("c")), know{}},
		{"running", append(turn(1, call("c")), started), know{Started: true}},
		{"ready, after a crash", append(turn(1, call("c")), session.RunStarted{}), know{}},
		{"running, after a crash", append(turn(1, call("c")), started, session.RunStarted{}), know{Started: true, Lost: true}},
		{"running, in a reply that failed", append(broken(call("c"))[:2], started, session.TurnEnded{Status: item.StatusFailed}), know{Started: true}},
		{"running, in a reply that a crash cut", append(broken(call("c"))[:2], started, session.RunStarted{}), know{Started: true, Lost: true}},
		{"imported, then a reply that failed", join(given(call("c")), broken(item.Assistant("a"))), know{Given: true}},
	} {
		open := fold(c.log...).Open()
		if len(open) != 1 {
			t.Errorf("%s: %d open calls", c.name, len(open))
			continue
		}
		o := open[0]
		if got := (know{o.Given, o.Started, o.Lost}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// K5: a call is imported if it is in an imported part, or was open there and the part has more than
// messages. Such a part begins at the last notice of it, or with the log.
func TestImportedCalls(t *testing.T) {
	ends, begins := session.Noticed{Kind: session.NoticeImported}, session.Noticed{Kind: session.NoticeImportBegins}
	said := session.InputItem{Item: item.User("x")}
	forged := turn(2, call("forged"))
	for _, c := range []struct {
		name       string
		log        []session.Body
		ours, evil bool
	}{
		{"all", join(turn(1, call("c")), forged, []session.Body{ends}), true, true},
		{"a part", join([]session.Body{begins, said, ends}, turn(1, call("c")), forged), false, false},
		{"messages after it", join(turn(1, call("c")), []session.Body{begins, said, said, ends}, forged), false, false},
		{"more than messages", join(turn(1, call("c")), []session.Body{begins}, forged, []session.Body{ends}), true, true},
		{"calls alone", join(turn(1, call("c")), []session.Body{begins, session.InputItem{Item: call("forged")}, ends}), true, true},
		{"more than messages before", join([]session.Body{begins}, forged, []session.Body{ends}, turn(3, call("c")), []session.Body{begins, said, ends}), false, true},
		{"a part in a part", join(turn(1, call("c")), []session.Body{begins, ends, begins}, forged, []session.Body{ends, said, ends}), true, true},
	} {
		for _, o := range fold(c.log...).Open() {
			if want := o.CallID == "c" && c.ours || o.CallID == "forged" && c.evil; o.Imported != want {
				t.Errorf("%s: the call %s is imported: %v", c.name, o.CallID, o.Imported)
			}
		}
	}
}

// P3: each item that is left out is named.
func TestRepairs(t *testing.T) {
	v := fold(given(result("c1", "early"), call("c1"), result("c1", "one"), result("c1", "again"))...)
	var got []string
	for _, r := range v.Diagnostics() {
		got = append(got, fmt.Sprintf("%d %s", r.Seq, r.Reason))
	}
	want := []string{
		`1 function_call_output: no call "c1" is waiting for it`,
		`4 function_call_output: no call "c1" is waiting for it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v.Len() != 2 {
		t.Errorf("taken: %d, want the call and its output", v.Len())
	}
}

// L9: an imported history whose first call has no output costs no more than a
// whole one. A view that looked through all of it for each item would not end.
func TestLongHistory(t *testing.T) {
	v := new(session.View)
	apply := func(it item.Item) { v.Apply(session.Entry{Body: session.InputItem{Item: it}}) }
	apply(call("c"))
	user, reply := item.User("q"), item.Assistant("a")
	for range 100_000 {
		apply(user)
		apply(reply)
	}
	apply(result("c", "one"))
	if n := v.Items().Len(); n != 200_002 {
		t.Errorf("%d items", n)
	}
}
