// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// sameEvents feeds the events to one decoder and to ParseEvent, which must
// agree on each. Events that share the memory of the stream do not change either.
func sameEvents(t *testing.T, events []string) {
	t.Helper()
	var d, sharing api.EventDecoder
	var kept []api.Event
	for i, s := range events {
		ev, err := sharing.DecodeString(s)
		if kept = append(kept, ev); err != nil {
			kept[i] = api.Event{}
		}
		want, wantErr := api.ParseEvent([]byte(s))
		got, gotErr := d.Decode([]byte(s))
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("event %d %q: error %v, want %v", i, s, gotErr, wantErr)
		}
		if gotErr == nil && got != want {
			t.Fatalf("event %d %q:\n got %#v\nwant %#v", i, s, got, want)
		}
	}
	for i, s := range events {
		if want, _ := api.ParseEvent([]byte(s)); kept[i] != want && want.JSON() != "" {
			t.Fatalf("event %d %q:\n got %#v\nwant %#v", i, s, kept[i], want)
		}
	}
}

func deltaEvent(seq, delta, obfuscation string) string {
	return `{"type":"response.output_text.delta","sequence_number":` + seq +
		`,"item_id":"msg_1","output_index":0,"content_index":0,"delta":` + delta + `,"obfuscation":` + obfuscation + `}`
}

// S4: the decoder reads what ParseEvent reads, whatever differs from the event
// before.
func TestEventDecoder(t *testing.T) {
	first := deltaEvent("1", `"a"`, `"x"`)
	for name, next := range map[string]string{
		"text":             deltaEvent("2", `"b c"`, `"yy"`),
		"empty":            deltaEvent("2", `""`, `""`),
		"escapes":          deltaEvent("2", `"\n\"\u00e9\ud83d\ude00\ud800x"`, `"\\"`),
		"beyond ASCII":     deltaEvent("2", `"é😀"`, `"x"`),
		"control":          deltaEvent("2", "\"a\nb\"", `"x"`),
		"bad UTF-8":        deltaEvent("2", "\"a\xffb\"", `"x"`),
		"bad escape":       deltaEvent("2", `"\x"`, `"x"`),
		"open string":      strings.TrimSuffix(deltaEvent("2", `"a`, ``), `}`),
		"number":           deltaEvent("2", `5`, `"x"`),
		"null":             deltaEvent("2", `null`, `null`),
		"leading zero":     deltaEvent("02", `"a"`, `"x"`),
		"negative":         deltaEvent("-2", `"a"`, `"x"`),
		"fraction":         deltaEvent("2.0", `"a"`, `"x"`),
		"exponent":         deltaEvent("2e3", `"a"`, `"x"`),
		"large":            deltaEvent("9223372036854775807", `"a"`, `"x"`),
		"too large":        deltaEvent("9223372036854775808", `"a"`, `"x"`),
		"no number":        deltaEvent("", `"a"`, `"x"`),
		"space around":     " " + deltaEvent("2", `"a"`, `"x"`) + "\n",
		"text behind":      deltaEvent("2", `"a"`, `"x"`) + "x",
		"cut":              deltaEvent("2", `"a"`, `"x"`)[:60],
		"other item":       strings.Replace(deltaEvent("2", `"a"`, `"x"`), "msg_1", "msg_2", 1),
		"name given twice": strings.Replace(deltaEvent("2", `"a"`, `"x"`), `"item_id"`, `"delta":"z","item_id"`, 1),
		"escaped name":     strings.Replace(deltaEvent("2", `"a"`, `"x"`), `"delta"`, `"d\u0065lta"`, 1),
		"both names":       strings.Replace(deltaEvent("2", `"a"`, `"x"`), `}`, `,"d\u0065lta":"w"}`, 1),
		"delta then five":  strings.Replace(deltaEvent("2", `"a"`, `"x"`), `}`, `,"delta":5}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			sameEvents(t, []string{first, first, next, first, next, next, first})
		})
	}
}

// long makes an event that is large enough to be remembered, whose member has
// the value.
func long(typ, member, value string) string {
	return `{"type":"` + typ + `","` + member + `":` + value + `,"pad":"` + strings.Repeat("p", 600) + `"}`
}

// S4 W11: what an event says again is compared and not read again; what is only
// nearly the same is read, and its errors found.
func TestEventDecoderKnows(t *testing.T) {
	const tools = `[{"type":"function","name":"f","description":"A tool with a description of more than sixty-four bytes."}]`
	response := `{"id":"resp_1","status":"in_progress","error":null,"instructions":"` + strings.Repeat("Be brief. ", 20) +
		`","model":"m","output":[],"tools":` + tools + `,"usage":null,"metadata":{}}`
	created := long("response.created", "response", response)
	for name, mend := range map[string][2]string{
		"equal":              {"", ""},
		"type":               {"response.created", "response.in_progress"},
		"last":               {"response.created", "response.completed"},
		"one member":         {`"status":"in_progress"`, `"status":"completed"`},
		"first member":       {`resp_1`, `resp_2`},
		"last member":        {`"metadata":{}`, `"metadata":{"a":1}`},
		"member gone":        {`"error":null,`, ``},
		"member more":        {`"error":null,`, `"error":null,"new":[1,2],`},
		"member twice":       {`"error":null,`, `"error":null,"error":null,`},
		"members end":        {`"model":"m",`, `"model":"m"},"a":{`},
		"spaces":             {`"error":null,`, ` "error" : null , `},
		"escaped name":       {`"response":`, `"respons\u0065":`},
		"no comma":           {`"error":null,`, `"error":null `},
		"comma at the end":   {`"metadata":{}`, `"metadata":{},`},
		"literal cut":        {`"error":null`, `"error":nul`},
		"number behind text": {`brief. ","model"`, `brief. "5,"model"`},
		"bad UTF-8":          {`Be brief. ","model"`, "Be brief. \xff\",\"model\""},
		"control":            {`description of`, "description\nof"},
		"bracket":            {`bytes."}]`, `bytes."]]`},
		"cut":                {`,"usage":null,"metadata":{}}`, ``},
		"other place":        {`"response":`, `"other":`},
		"a list":             {`"response":{`, `"response":[{`},
		"deeper":             {`"output":[]`, `"output":[[[[` + tools + `]]]]`},
	} {
		t.Run(name, func(t *testing.T) {
			next := strings.Replace(created, mend[0], mend[1], 1)
			item := long("response.output_item.done", "item", `{"id":"i","tools":`+tools+`}`)
			sameEvents(t, []string{created, next, created, item, next, next, strings.Replace(next, "in_progress", "queued", 1), item})
		})
	}
}

// W11: a value that is known is not accepted where it would nest too deep.
func TestEventDecoderKnowsDepth(t *testing.T) {
	const half = item.MaxDepth - 2
	deep := `[{"a":` + strings.Repeat("[", half-1) + strings.Repeat("]", half-1) + `}]`
	sameEvents(t, []string{
		long("response.output_item.done", "item", deep), // as deep as may be
		long("response.output_item.done", "item", deep),
		long("response.output_item.done", "item", "["+deep+"]"),
		long("response.output_item.done", "item", "[1,"+deep+"]"),
		long("response.completed", "response", `{"output":`+deep+`}`),
	})
}

// FuzzEventDecoderKnows is FuzzEventDecoder for events that are large enough to
// be remembered: the input is one value a line.
func FuzzEventDecoderKnows(f *testing.F) {
	value := `{"id":"resp_1","status":"in_progress","text":"` + strings.Repeat("more ", 20) + `","list":[{"a":1},2],"end":{}}`
	f.Add(value + "\n" + strings.Replace(value, "in_progress", "completed", 1))
	f.Add(value + "\n" + strings.Replace(value, `"end"`, "", 1) + "\n" + value + " }")
	f.Add(`{"a":` + value + `,"b":` + value + "}\n" + `{"b":` + value + `,"a":` + value + "}")
	f.Fuzz(func(t *testing.T, s string) {
		var events []string
		for i, v := range strings.Split(s, "\n") {
			events = append(events, long([]string{"response.created", "response.completed", "x"}[i%3], []string{"response", "item"}[i/3%2], v))
		}
		sameEvents(t, events)
	})
}

// S4 W11: of recorded streams, and of such with a byte changed, left out or put
// in, one decoder reads what ParseEvent reads.
func TestEventDecoderOnCorpus(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var events []string
	eachStream(t, func(t *testing.T, _ string, stream []string) {
		for _, e := range stream {
			if len(e) > 64<<10 {
				continue
			}
			events = append(events, e)
			if at := rnd.IntN(len(e)); !strings.Contains(e[:min(len(e), 60)], ".delta") {
				other := "\"\\{}[]:, 0x\xff"[rnd.IntN(12):][:1]
				events = append(events, e[:at]+other+e[min(at+rnd.IntN(2), len(e)):], e[:at]+e[at+1:])
			}
		}
	})
	sameEvents(t, events)
	t.Logf("%d events", len(events))
}

// S4 S6: deltas of several items that take turns, each in its pattern.
func TestEventDecoderTakesTurns(t *testing.T) {
	var events []string
	for i := range 200 {
		events = append(events, fmt.Sprintf(`{"type":"response.%s.delta","item_id":"i%d","output_index":%d,"delta":"d%d","logprobs":%s,"sequence_number":%d}`,
			[]string{"output_text", "reasoning_text", "function_call_arguments"}[i%3], i%7, i%7, i, []string{"[]", `[{"token":"a","logprob":-0.25e1,"bytes":[97]}]`}[i/20%2], i))
	}
	events = append(events, strings.Replace(events[30], "-0.25e1", "-.25", 1), strings.Replace(events[30], "[97]", "[097]", 1), events[30])
	sameEvents(t, events)
}

// FuzzEventDecoder holds the decoder against ParseEvent; the input is one event
// a line.
func FuzzEventDecoder(f *testing.F) {
	f.Add(deltaEvent("1", `"a"`, `"x"`) + "\n" + deltaEvent("2", `"b"`, `"y"`))
	f.Add(deltaEvent("1", `"a"`, `"x"`) + "\n" + deltaEvent("02", `"\u00e9"`, `"\\"`) + "\n{}")
	f.Add(`{"delta":"a","type":".delta","delta":"b"}` + "\n" + `{"delta":"c","type":".delta","delta":"b"}`)
	f.Fuzz(func(t *testing.T, s string) {
		sameEvents(t, strings.Split(s, "\n"))
	})
}

// S4: a decoder that was reset reads another stream as a new one does, and
// remembers nothing of the first.
func TestEventDecoderReset(t *testing.T) {
	var d api.EventDecoder
	long := strings.Repeat("text ", 400)
	for round := range 3 {
		id := fmt.Sprintf("msg_%d", round)
		for i, s := range []string{
			deltaEvent("1", `"a"`, `"x"`), strings.ReplaceAll(deltaEvent("2", `"b"`, `"x"`), "msg_1", id), strings.ReplaceAll(deltaEvent("3", `"\n"`, `"x"`), "msg_1", id),
			`{"type":"response.output_item.done","item":{"id":"` + id + `","content":[{"text":"` + long + `"}]}}`,
			`{"type":"response.completed","response":{"output":[{"id":"` + id + `","content":[{"text":"` + long + `"}]}]}}`,
			`{"type":"response.completed","response":{"output":[{"id":"` + id + `","content":[{"text":"` + long + `}]}]}}`,
		} {
			want, wantErr := api.ParseEvent([]byte(s))
			got, gotErr := d.Decode([]byte(s))
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || gotErr == nil && got != want {
				t.Errorf("round %d, event %d: %v, %v", round, i, got, gotErr)
			}
		}
		d.Reset()
	}
}
