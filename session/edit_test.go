// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// texts are the items' JSON.
func texts(v *session.View) (list []string) {
	for _, it := range items(v) {
		list = append(list, it.JSON())
	}
	return list
}

// schema checks that a request can carry the view. B6
func schema(t *testing.T, v *session.View) {
	t.Helper()
	body, err := (&api.Request{Model: "m", Input: v.Items()}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("schema", func(t *testing.T) { apispec.Load(t).Check(t, "CreateResponse", body) })
}

// R4: after the decision no reasoning is sent that was there before, and what it
// led to is no longer tied to it; what comes later is sent as it is.
func TestReasoningDropped(t *testing.T) {
	said := parse(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"output_text","text":"b","annotations":[]}]}`)
	called := parse(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"}`)
	free := parse(`{"type":"function_call","id":"fc_2","call_id":"c2","name":"f","arguments":"{}","status":"completed"}`)
	search := parse(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`)
	log := join(given(item.User("q")), turn(1, reasoning("rs1"), said, search, called), []session.Body{answered("c1", "one")},
		turn(2, free), []session.Body{answered("c2", "two")})
	log = append(log, session.ReasoningDropped{Reason: "why"})
	log = join(log, turn(3, reasoning("rs2"), said))
	v := fold(log...)
	want := []string{
		item.User("q").JSON(),
		`{"type":"message","content":"a\nb","phase":"commentary","role":"assistant"}`,
		search.JSON(),
		`{"type":"function_call","status":"completed","arguments":"{}","call_id":"c1","name":"f"}`,
		result("c1", "one").JSON(),
		free.JSON(),
		result("c2", "two").JSON(),
		reasoning("rs2").JSON(),
		said.JSON(),
	}
	if diff := cmp.Diff(want, texts(v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := agenttest.CheckPairing(items(v)...); err != nil {
		t.Error(err)
	}
	if r := v.Diagnostics(); len(r) != 1 || r[0].Item != reasoning("rs1") || r[0].Seq != 3 {
		t.Errorf("repairs: %v", r)
	}
	schema(t, v)
}

// R4: a reply that is still held back counts as sent before.
func TestReasoningDroppedWhilePending(t *testing.T) {
	called := parse(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`)
	log := append(turn(1, reasoning("rs1"), called), session.ReasoningDropped{}, answered("c1", "one"))
	v := fold(log...)
	if diff := cmp.Diff("c1() c1=one", outline(v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if id := v.Items().At(0).ID(); id != "" {
		t.Errorf("the call has the id %s", id)
	}
}

// T12: one item is replaced, in its place, under the id that it was sent with;
// all else stays to the byte, and the log is asked for nothing.
func TestQuarantine(t *testing.T) {
	picture := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Parts(&item.InputImage{ImageURL: "data:image/png;base64,AAAA"})})
	seen, err := item.UserParts(&item.InputText{Text: "look"}, &item.InputImage{ImageURL: "data:image/png;base64,AAAA"}, &item.InputFile{FileID: "file_1"})
	if err != nil {
		t.Fatal(err)
	}
	log := join(given(seen), turn(1, call("c")), []session.Body{answered("c", "one")}, turn(2, call("c")),
		[]session.Body{session.CallOutput{CallID: "c", Item: picture}})
	before := texts(fold(append(log, session.RunStarted{})...))
	for _, c := range []struct {
		at   int
		seq  int64
		want string
	}{
		{0, 1, `{"type":"message","content":[{"type":"input_text","text":"look"},` +
			`{"type":"input_text","text":"An image is left out here: the endpoint refused it. why"},` +
			`{"type":"input_text","text":"A file is left out here: the endpoint refused it. why"}],"role":"user"}`},
		{4, 9, `{"type":"function_call_output","call_id":"call_2","output":"The original output of this call is left out: the endpoint refused it. why"}`},
	} {
		v := fold(append(log, session.RunStarted{})...)
		seq, quarantined := v.Seq(c.at)
		if seq != c.seq || quarantined {
			t.Errorf("item %d is from entry %d", c.at, seq)
		}
		for range 2 { // again changes nothing
			v.Apply(session.Entry{Seq: 100, Body: session.Quarantined{Seq: seq, Reason: "why"}})
		}
		if _, quarantined = v.Seq(c.at); !quarantined {
			t.Errorf("item %d is not in quarantine", c.at)
		}
		want := append(append(before[:c.at:c.at], c.want), before[c.at+1:]...)
		if diff := cmp.Diff(want, texts(v)); diff != "" {
			t.Errorf("item %d (-want +got):\n%s", c.at, diff)
		}
		if r := v.Diagnostics(); len(r) != 1 || r[0].Seq != seq {
			t.Errorf("repairs: %v", r)
		}
		schema(t, v)
	}
}

// T12: what has no text form cannot be replaced, and is sent as it is.
func TestNoMarker(t *testing.T) {
	for _, raw := range []string{
		`{"type":"message","role":"user","content":"a text"}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"a text"}]}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
		`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"x"}}`,
		`{"type":"reasoning","id":"rs","summary":[]}`,
	} {
		if marker, ok := session.Marker(parse(raw), "why"); ok {
			t.Errorf("%s has the marker %s", raw, marker.JSON())
		}
	}
	// An output in no shape at all has one: the shape may be what was refused.
	marker, ok := session.Marker(parse(`{"type":"function_call_output","call_id":"c","output":5}`), "wh\xffy")
	if !ok || !strings.Contains(marker.JSON(), `"call_id":"c"`) {
		t.Errorf("got %s", marker.JSON())
	}
}

// P1: imported reasoning that a message repeats, and that nothing follows, is left
// out for one reason and named once.
func TestRepeatedReasoningIsNamedOnce(t *testing.T) {
	message := parse(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`)
	v := fold(join(given(message, reasoning("rs1")), []session.Body{session.Superseded{Seqs: []int64{2}, By: 1}}, given(item.User("q")))...)
	if n := len(v.Diagnostics()); n != 1 || v.Diagnostics()[0].Seq != 2 {
		t.Errorf("%d diagnostics, not one about entry 2: %v", n, v.Diagnostics())
	}
}

// T12 P1: no call loses its input or its partner because an endpoint refuses a member,
// whatever its kind; members that only describe an item can go.
func TestSpare(t *testing.T) {
	full := func(typ item.Type) item.Item {
		return parse(fmt.Sprintf(`{"type":%q,"id":"i","call_id":"c","approval_request_id":"a","name":"n","arguments":"{}","input":"x","action":{},"operation":{},"execution":"client","status":"completed","novel":1}`, typ))
	}
	for _, kind := range item.CallKinds() {
		call, output := full(kind.Call), full(kind.Output)
		if session.Spare(call, kind.Input) {
			t.Errorf("%s is sent without %s", kind.Call, kind.Input)
		}
		for _, it := range []item.Item{call, output} {
			for _, member := range []string{"id", "call_id", "approval_request_id"} {
				if value, _ := it.Member(member); string(value) == strconv.Quote(it.CallID()) && session.Spare(it, member) {
					t.Errorf("%s is sent without %s, its id", it.Type(), member)
				}
			}
			if !session.Spare(it, "status") || !session.Spare(it, "novel") || session.Spare(it, "absent") {
				t.Errorf("%s: a member that only describes it is not left out", it.Type())
			}
		}
	}
	if search := full(item.TypeToolSearchCall); session.Spare(search, "execution") {
		t.Error("a tool search is sent without the side that answers it")
	}
	if session.Spare(parse(`{"type":"item_reference","id":"i"}`), "id") {
		t.Error("a reference is sent without its id")
	}
	if image := full(item.TypeImageGenerationCall); !session.Spare(image, "action") {
		t.Error("an image that was made keeps an action that the endpoint refuses")
	}
}
