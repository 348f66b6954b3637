// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// sameEvents feeds the events to one decoder and to ParseEvent, which must
// agree on each.
func sameEvents(t *testing.T, events []string) {
	t.Helper()
	var d item.EventDecoder
	for i, s := range events {
		want, wantErr := item.ParseEvent([]byte(s))
		got, gotErr := d.Decode([]byte(s))
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("event %d %q: error %v, want %v", i, s, gotErr, wantErr)
		}
		if gotErr == nil && *got != want {
			t.Fatalf("event %d %q:\n got %#v\nwant %#v", i, s, got, want)
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
