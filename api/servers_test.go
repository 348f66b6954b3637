// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// The items that the streams below tell of, as a response without a stream
// would have them.
const (
	saidThought = `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Look it up."}]}`
	saidText    = `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"I look."}],"role":"assistant"}`
	saidCallA   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"{\"at\":1}","status":"completed"}`
	saidCallB   = `{"type":"function_call","id":"fc_2","call_id":"c2","name":"look","arguments":"{\"at\":2}","status":"completed"}`
)

// turns is one stream as a careful server sends it. Items overlap: the second
// begins before the first is done.
var turns = []string{
	`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}`,
	`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[]}}`,
	`{"type":"response.reasoning_text.delta","output_index":0,"item_id":"rs_1","content_index":0,"delta":"Look "}`,
	`{"type":"response.reasoning_text.delta","output_index":0,"item_id":"rs_1","content_index":0,"delta":"it up."}`,
	`{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}`,
	`{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","content_index":0,"delta":"I "}`,
	`{"type":"response.reasoning_text.done","output_index":0,"item_id":"rs_1","content_index":0,"text":"Look it up."}`,
	`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"","status":"in_progress"}}`,
	`{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","content_index":0,"delta":"look."}`,
	`{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"{\"at\""}`,
	`{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":":1}"}`,
	`{"type":"response.function_call_arguments.done","output_index":2,"item_id":"fc_1","arguments":"{\"at\":1}"}`,
	`{"type":"response.output_item.done","output_index":0,"item":` + saidThought + `}`,
	`{"type":"response.output_text.done","output_index":1,"item_id":"msg_1","content_index":0,"text":"I look."}`,
	`{"type":"response.content_part.done","output_index":1,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","annotations":[],"text":"I look."}}`,
	`{"type":"response.output_item.done","output_index":1,"item":` + saidText + `}`,
	`{"type":"response.output_item.done","output_index":2,"item":` + saidCallA + `}`,
	`{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"c2","name":"look","arguments":"","status":"in_progress"}}`,
	`{"type":"response.function_call_arguments.delta","output_index":3,"item_id":"fc_2","delta":"{\"at\":2}"}`,
	`{"type":"response.function_call_arguments.done","output_index":3,"item_id":"fc_2","arguments":"{\"at\":2}"}`,
	`{"type":"response.output_item.done","output_index":3,"item":` + saidCallB + `}`,
	`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[` + saidThought + "," + saidText + "," + saidCallA + "," + saidCallB + `]}}`,
}

// noIDs takes the ids out of the items, wherever they stand, and out of the
// events.
var noIDs = chain(noMember("item_id"), changing(func(e fed) fed {
	if it, ok := e.members["item"].(object); ok {
		e = e.with("item", fed{members: it}.without("id").members)
	}
	return e
}))

// S5: whatever a real server leaves out, the final items are those of the
// response without a stream.
func TestServers(t *testing.T) {
	done := func(typ string) bool { return typ == "response.output_item.done" }
	is := func(names ...string) func(string) bool {
		return func(typ string) bool { return slices.Contains(names, strings.TrimPrefix(typ, "response.")) }
	}
	bare := noMember("output_index")
	for name, c := range map[string]edit{
		"as it is":                       func(e []fed) []fed { return e },
		"no index":                       bare,
		"no argument done events":        chain(bare, dropping(is("function_call_arguments.done"))),
		"no index, no output at the end": chain(bare, outputGone),
		"no item ids in events":          noMember("item_id"),
		"neither ids nor index":          chain(noMember("item_id"), bare, outputGone),
		"neither, and no done at all":    chain(noMember("item_id"), bare, dropping(noDone), outputGone),
		"no item done":                   dropping(done),
		"no item done, no output":        chain(dropping(done), outputGone),
		"no item done, no index":         chain(bare, dropping(done), outputGone),
		"no done at all":                 chain(dropping(noDone), outputGone),
		"no done at all, no index":       chain(bare, dropping(noDone), outputGone),
		"no deltas":                      dropping(noDelta),
		"no deltas, no item done":        chain(dropping(noDelta), dropping(done), outputGone),
		"only done items":                chain(dropping(onlyDone), outputGone),
		"only the last event":            dropping(func(typ string) bool { return !isTerminal(typ) }),
		"no added items, no index":       chain(bare, dropping(is("output_item.added")), outputGone),
		"unknown events between":         unknownBetween,
		"done first, no index":           chain(bare, doneFirst, outputGone),
		"no ids in items":                chain(noIDs, outputGone),
		"content indexes left out":       chain(bare, noMember("content_index"), outputGone),
	} {
		t.Run(name, func(t *testing.T) {
			r, told := accumulate(t, name, texts(t, c(feed(t, turns))))
			want := []item.Item{parse(t, saidThought), parse(t, saidText), parse(t, saidCallA), parse(t, saidCallB)}
			if name == "no ids in items" {
				for i := range want {
					e := feed(t, []string{want[i].JSON()})[0].without("id")
					want[i] = parse(t, texts(t, []fed{e})[0])
				}
			}
			sameItems(t, name, "output", r.Output, want, false)
			slices.SortFunc(told, func(a, b item.Item) int { return strings.Compare(a.JSON(), b.JSON()) })
			if len(slices.Compact(told)) != len(want) {
				t.Errorf("told %v, want each of %d items once", told, len(want))
			}
		})
	}
}

// S3 E7: errors in the shapes that servers give them.
func TestServerErrors(t *testing.T) {
	for in, want := range map[string]struct{ code, message string }{
		`{"type":"error","code":400,"message":"m","param":null}`:                                                            {"400", "m"},
		`{"type":"error","error":{"code":400,"message":"m","type":"invalid_request_error"}}`:                                {"400", "m"},
		`{"error":{"code":400,"message":"m","type":"invalid_request_error"}}`:                                               {"400", "m"},
		`{"error":{"code":500,"message":"m","type":"server_error"},"type":"error"}`:                                         {"500", "m"},
		`{"type":"error","error":"m"}`:                                                                                      {"", "m"},
		`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":503,"message":"m"},"output":[]}}`: {"503", "m"},
		`{"type":"error","code":"rate_limit_exceeded","message":"m"}`:                                                       {"rate_limit_exceeded", "m"},
	} {
		e := event(t, in)
		got, ok := e.Err()
		if !ok || got.Code != want.code || got.Message != want.message {
			t.Errorf("%s: %+v, %v", in, got, ok)
		}
	}
}

// W7 W10: what endpoints send outside the schema is read as what it is, and
// stays byte for byte.
func TestSeenInTheWild(t *testing.T) {
	for s, want := range map[string]item.Type{
		`{"type":"x_search_call","id":"xs_1","status":"completed","action":{"query":"q","n":1e2}}`: "x_search_call",
		`{"role":"assistant","content":"hi","reasoning_details":[{"x":1.0}]}`:                      item.TypeMessage,
		`{"type":"function_call","call_id":"c","name":"n","arguments":"{}","tool_uses":null}`:      item.TypeFunctionCall,
		`{"id":"msg_1"}`: item.TypeItemReference,
	} {
		it := parse(t, s)
		if it.Type() != want || it.JSON() != s {
			t.Errorf("%s: a %q, %s", s, it.Type(), it.JSON())
		}
		if _, known := decode(t, it).(*item.Unknown); known != (want == "x_search_call") {
			t.Errorf("%s: decoded as %T", s, decode(t, it))
		}
		sameJSON(t, "decoded and encoded", encode(t, decode(t, it)).JSON(), strings.Replace(s, `{"role"`, `{"type":"message","role"`, 1))
	}
	for _, s := range []string{
		`{"type":"keepalive","sequence_number":3}`, `{"type":"response.reasoning_part.added","item_id":"rs_1","part":{"type":"reasoning_text","text":""}}`,
		`{"type":"response.reasoning_part.done","item_id":"rs_1","part":{"x":1.0}}`, `{"type":"response.x_search_call.searching","output_index":0}`,
	} {
		v, err := event(t, s).Decode()
		if u, ok := v.(*api.UnknownEvent); err != nil || !ok || string(u.Raw) != s {
			t.Errorf("%s: %T, %v", s, v, err)
		}
	}
}
