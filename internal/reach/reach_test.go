// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package reach_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
)

// K1: an address is found wherever it is in an item, however its member is written, and each site once.
func TestSites(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"message","role":"user","content":"see https://x.example"}`:                             "",
		`{"type":"x","image_url":"https://a.example/1","a":[{"FILE_URL":"https://A.example:443/2"}]}`:    "https://a.example https://a.example:443",
		`{"type":"x","image_url":{"detail":"low","url":"http://u:p@a.example"},"url":"http://c.x"}`:      "http://a.example",
		`{"type":"x","image_url":"data:image/png;base64,AA","image_url":"\u0068ttp://a.example"}`:        "http://a.example",
		`{"type":"x","audio_url":"DATA:,","video_url":" file:///etc/passwd","image_url":"in/x.png"}`:     " file:///etc/passwd",
		`{"type":"x","image_url":["http://a.example"],"file_url":"//b.example/x","file_url":"c:/x"}`:     "http://a.example //b.example/x",
		`{"type":"x","image_url":{"a":{"url":"http://a.example"}},"output":"{\"image_url\":\"http:\"}"}`: "",
		`{"type":"x","image_url":"http://[::1","file_url":"http:"}`:                                      "http://[::1 http:",
	} {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(reach.Sites(it), " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// K1: a tool of the endpoint that nobody is asked about is found, however its members are written, and schemas of functions name
// what they like.
func TestUnasked(t *testing.T) {
	for tools, want := range map[string]bool{
		`[{"type":"mcp","require_approval":"always"}]`: false,
		`[{"type":"mcp"}]`: false,
		`[{"type":"mcp","require_approval":"never"}]`:                                                       true,
		`[{"type":"mcp","require_approval":{"never":{}}}]`:                                                  true,
		`[{"type":"mcp","require_approval":"always","require_approval":"never"}]`:                           true,
		`[{"type":"mcp","requireApproval":"always"}]`:                                                       true,
		`[{"type":"mcp","require\u005fapproval":"never"}]`:                                                  true,
		`[{"type":"function","name":"f","parameters":{"properties":{"require_approval":{"type":"null"}}}}]`: false,
		`[{"type":"namespace","tools":[{"type":"new","REQUIRE-APPROVAL":null}]}]`:                           true,
	} {
		it, err := item.ParseString(`{"type":"additional_tools","role":"developer","tools":` + tools + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := reach.Unasked(it); got != want {
			t.Errorf("%s: %v", tools, got)
		}
	}
}
