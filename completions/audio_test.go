// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/completions"
)

// TestSpokenAnswer holds I11: the transcript of a spoken answer becomes the text only
// if the message has no text, and the losses tell which of both happened.
func TestSpokenAnswer(t *testing.T) {
	const lost = "audio: the sound has no counterpart"
	for _, c := range []struct{ name, members, text, losses string }{
		{"a transcript alone", `"audio":{"id":"a","data":"AA==","transcript":"spoken"}`, "spoken", "\n$.audio.transcript: becomes the text"},
		{"beside a text", `"content":"written","audio":{"transcript":"spoken"}`, "written", "\n$.audio.transcript: is left out, because the message has a text"},
		{"before a text", `"audio":{"transcript":"spoken"},"content":"written"`, "written", "\n$.audio.transcript: is left out, because the message has a text"},
		{"no transcript", `"content":"written","audio":{"id":"a"}`, "written", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, losses, err := completions.ParseResponse([]byte(`{"choices":[{"message":{"role":"assistant",` + c.members + `},"finish_reason":"stop"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			want := at("choices[0].message", "$."+lost+c.losses)
			if d := cmp.Diff(c.text+"\n"+want, r.Text()+"\n"+lines(losses)); d != "" {
				t.Errorf("whole (-want +got):\n%s", d)
			}
			got := decode(t, []string{delta(c.members), finish("stop")})
			r, _ = got.acc.Response()
			want = at("choices[0].delta", "$."+lost+c.losses)
			if d := cmp.Diff(c.text+"\n"+want, r.Text()+"\n"+lines(got.losses)); d != "" {
				t.Errorf("streamed (-want +got):\n%s", d)
			}
		})
	}
}

// TestSpokenAnswerLater holds I11 for a transcript that comes in a later chunk than
// the text.
func TestSpokenAnswerLater(t *testing.T) {
	got := decode(t, []string{delta(`"content":"written"`), delta(`"audio":{"transcript":"spoken"}`), finish("stop")})
	r, _ := got.acc.Response()
	want := "written\nchoices[0].delta.audio: the sound has no counterpart\nchoices[0].delta.audio.transcript: is left out, because the message has a text"
	if d := cmp.Diff(want, r.Text()+"\n"+lines(got.losses)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func at(path, losses string) string { return strings.ReplaceAll(losses, "$", path) }
