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
		`{"type":"message","role":"user","content":"see https://x.example"}`:                                                                                                                             "",
		`{"type":"x","image_url":"https://a.example/1","a":[{"FILE_URL":"https://A.example:443/2"}]}`:                                                                                                    "https://a.example https://a.example:443",
		`{"type":"x","image_url":{"detail":"low","url":"http://u:p@a.example"},"url":"http://c.x"}`:                                                                                                      "http://a.example http://c.x",
		`{"type":"x","image_url":"data:image/png;base64,AA","image_url":"\u0068ttp://a.example"}`:                                                                                                        "http://a.example",
		`{"type":"x","audio_url":"DATA:,","video_url":" file:///etc/passwd","image_url":"in/x.png"}`:                                                                                                     " file:///etc/passwd in/x.png",
		`{"type":"x","image_url":["http://a.example"],"file_url":"//b.example/x","file_url":"c:/x"}`:                                                                                                     "http://a.example //b.example/x c:/x",
		`{"type":"x","image_url":[{"url":"http://a.example","x":1},["data:,","http://b.example"],[]],"x":"http://c.example"}`:                                                                            "http://a.example http://b.example http://c.example",
		`{"type":"x","image_url":{"a":{"url":"http://a.example"}},"output":"{\"image_url\":\"http:\"}"}`:                                                                                                 "http://a.example",
		`{"type":"x","image_url":"http://[::1","file_url":"http:"}`:                                                                                                                                      "http://[::1 http:",
		`{"type":"x","image_url":"/home/me/private.png","file_url":""}`:                                                                                                                                  "/home/me/private.png",
		`{"type":"x","file_data":"http://169.254.169.254/x","a":{"File_Data":"file:///x"}}`:                                                                                                              "http://169.254.169.254 file:///x",
		`{"type":"x","file_data":"/etc/ssl/key","a":{"file_data":{"url":"//b.example"}}}`:                                                                                                                "/etc/ssl/key //b.example",
		`{"type":"x","file_data":"aGk=","a":[{"file_data":"data:text/plain,hi"},{"file_data":"/9j/4AAQ"},{"file_data":"_-+/"}]}`:                                                                         "",
		`{"type":"x","a":"\ud800","image_url":"http://a.example"}`:                                                                                                                                       "http://a.example",
		`{"type":"function_call_output","call_id":"c","output":"a file with \ud800 of half a character"}`:                                                                                                "",
		`{"type":"x","\ud800":1,"image_url":"http://a.example"}`:                                                                                                                                         "what cannot be read http://a.example",
		`{"type":"teleport","to":{"href":"http://a.example"},"from":"//b.example/x","by":["ftp://c.example"],"uri":"x.png"}`:                                                                             "http://a.example //b.example/x ftp://c.example x.png",
		`{"type":"teleport","to":"http:\/\/a.example\/x","of":"https:b.example","imageUrl":"http://c.example"}`:                                                                                          "http://a.example https:b.example http://c.example",
		`{"type":"message","role":"user","content":[{"type":"new_part","where":"HTTP://a.example"}]}`:                                                                                                    "http://a.example",
		`{"type":"message","role":"user","content":[{"type":"new_part","url":"http://a.example"},{"url":"http://b.example"}]}`:                                                                           "http://a.example http://b.example",
		`{"type":"x","image_url":{"type":"url_citation","url":"http://a.example"}}`:                                                                                                                      "http://a.example",
		`{"type":"x","type":"url_citation","url":"http://a.example"}`:                                                                                                                                    "http://a.example",
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"http://a.example","annotations":[{"type":"url_citation","url":"http://a.example","title":"http://b.example"}]}]}`: "",
		`{"type":"web_search_call","action":{"type":"search","queries":["http://a.example"],"sources":[{"type":"url","url":"http://a.example"}]}}`:                                                       "",
		`{"type":"web_search_call","action":{"type":"open_page","url":"http://a.example"}}`:                                                                                                              "",
		`{"type":"shell_call","call_id":"c","action":{"commands":["https://a.example"]}}`:                                                                                                                "",
		`{"type":"file_search_call","results":[{"attributes":{"from":"http://a.example"}}]}`:                                                                                                             "",
		`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"$schema":"http://json-schema.org/x","default":{"url":"http://a.example"}}}]}`:               "",

		// What only looks like a citation.
		`{"type":"message","role":"user","content":[{"type":"image","source":{"type":"url","url":"http://169.254.169.254/x"}}]}`:                                                        "http://169.254.169.254",
		`{"type":"message","role":"user","content":[{"type":"url_citation","url":"http://a.example"},{"type":"search","url":"http://b.example"}]}`:                                      "http://a.example http://b.example",
		`{"type":"x","action":{"type":"open_page","url":"http://a.example"}}`:                                                                                                           "http://a.example",
		`{"type":"x","a":{"action":{"type":"search","sources":[{"type":"url","url":"http://a.example"}]},"type":"web_search_call"}}`:                                                    "http://a.example",
		`{"type":"web_search_call","type":"x","action":{"type":"open_page","url":"http://a.example"}}`:                                                                                  "http://a.example",
		`{"Type":"x","type":"web_search_call","action":{"type":"open_page","url":"http://a.example"}}`:                                                                                  "http://a.example",
		`{"type":"web_search_call","action":{"type":"open_page","type":1,"url":"http://a.example"}}`:                                                                                    "http://a.example",
		`{"type":"web_search_call","sources":[{"type":"url","url":"http://a.example"}],"x":{"type":"open_page","url":"http://b.example"}}`:                                              "http://b.example",
		`{"type":"web_search_call","action":{"type":"x","sources":[{"type":"url","url":"http://a.example"}]}}`:                                                                          "http://a.example",
		`{"type":"x","annotations":[{"type":"url","url":"http://a.example"},{"type":"url_citation","source":{"url":"http://b.example"}}]}`:                                              "http://a.example http://b.example",
		`{"action":{"url":"http://a.example","type":"find_in_page","pattern":"x","sources":[{"url":"http://b.x","type":"url"}]},"type":"web_search_call"}`:                              "",
		`{"type":"x","sources":[{"type":"url","url":"data:,"}],"parameters":{"sources":[{"type":"url","url":"http://a.example"}],"action":{"type":"search","url":"http://b.example"}}}`: "",

		// Lists, and spellings that browsers and servers read as addresses.
		`{"type":"x","url":["https://a.example"],"image_url":{"url":["https://b.example",["c.png"]]}}`:                  "https://a.example https://b.example c.png",
		`{"type":"x","url":{"x":["https://a.example"]},"parameters":{"url":["https://b.example"]}}`:                     "https://a.example",
		`{"type":"x","annotations":[{"type":"url_citation","url":["https://a.example"]}]}`:                              "https://a.example",
		`{"type":"x","to":"ht\ttps:a.example"}`:                                                                         "ht\ttps:a.example",
		`{"type":"x","to":"/\n/a.example"}`:                                                                             "/\n/a.example",
		`{"type":"x","to":"\u0001https:a.example"}`:                                                                     "\x01https:a.example",
		`{"type":"x","to":"\\\\a.example\\x"}`:                                                                          `\\a.example\x`,
		`{"type":"x","to":"/\\a.example"}`:                                                                              `/\a.example`,
		`{"type":"x","to":"ftp:\\/a.example"}`:                                                                          `ftp:\/a.example`,
		`{"type":"x","to":"http://a.example\\@b.example"}`:                                                              `http://a.example\@b.example`,
		`{"type":"x","to":"c:\\dir","by":"\\d+","note":"// see\tb","a":"a\\\\b","of":"\\n//"}`:                          "",
		`{"type":"teleport","content":"https://a.example","to":{"text":"//b.example"},"name":["https://c.example"]}`:    "https://a.example //b.example https://c.example",
		`{"type":"message","type":"x","role":"user","content":"https://a.example"}`:                                     "https://a.example",
		`{"type":"message","role":"user","content":[{"type":"new_part","text":"https://a.example"}]}`:                   "",
		`{"role":"user","content":"https://a.example"}`:                                                                 "",
		`{"type":"teleport","content":"see https://a.example"}`:                                                         "",
		`{"type":"teleport","input":"https://a.example","query":"https://b.example"}`:                                   "https://a.example https://b.example",
		`{"type":"message","role":"user","content":[{"type":"new_part","input":"https://a.example"}]}`:                  "https://a.example",
		`{"type":"custom_tool_call","call_id":"c","name":"f","input":"https://a.example"}`:                              "",
		`{"type":"function_call_output","call_id":"c","output":"https://a.example"}`:                                    "",
		`{"type":"file_search_call","id":"f","queries":["https://a.example"],"results":[{"text":"https://b.example"}]}`: "",
		`{"type":"x","image_url":"` + strings.Repeat("x", 1000) + `"}`:                                                  strings.Repeat("x", 200) + "…",
	} {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(reach.Sites(it, nil), " "); got != want {
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

// K1: the tools of an item are known if everybody reads them in the same way. All else may be a tool of the endpoint.
func TestTools(t *testing.T) {
	const mcp, function = `{"type":"mcp","server_label":"x","server_url":"https://mcp.example"}`, `{"type":"function","name":"f","parameters":{"tools":1}}`
	for text, want := range map[string]string{
		`{"type":"message","role":"user","content":"tools"}`:                                                                  "",
		`{"type":"additional_tools","role":"developer","tools":[` + function + `,` + mcp + `]}`:                               "mcp",
		`{"type":"additional_tools","role":"developer","tools":[` + function + `,{"type":"custom","name":"c"}]}`:              "",
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"n","tools":[` + function + `]}]}`: "",
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"n","tools":[` + mcp + `]}]}`:      "mcp",
		`{"type":"tool_search_output","call_id":7,"execution":"client","tools":[` + mcp + `]}`:                                "mcp",
		`{"type":"of_a_later_version","tools":[` + mcp + `]}`:                                                                 "mcp",
		`{"type":"mcp_list_tools","server_label":"x","tools":[{"name":"a","input_schema":{"properties":{"type":{}}}}]}`:       "",

		`{"type":"additional_tools","role":"developer","tools":[0,` + mcp + `]}`:                                                       "?",
		`{"type":"additional_tools","role":"developer","tools":` + mcp + `}`:                                                           "?",
		`{"type":"additional_tools","role":"developer","tools":[` + mcp + `],"tools":[` + function + `]}`:                              "?",
		`{"type":"additional_tools","role":"developer","Tools":[` + mcp + `]}`:                                                         "?",
		`{"type":"additional_tools","role":"developer","tool\u0073":[],"TOOLS":[` + mcp + `]}`:                                         "?",
		`{"type":"additional_tools","role":"developer","tools":[` + mcp[:len(mcp)-1] + `,"type":"function","name":"f"}]}`:              "?",
		`{"type":"additional_tools","role":"developer","tools":[` + mcp[:len(mcp)-1] + `,"Type":"function","name":"f"}]}`:              "?",
		`{"type":"additional_tools","role":"developer","tools":[` + mcp + `,{"type":"function","TYPE":"mcp"}]}`:                        "?",
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"n","tools":[],"Tools":[` + mcp + `]}]}`:    "?",
		`{"type":"additional_tools","role":"developer","tools":[{"name":"f"}]}`:                                                        "?",
		`{"type":"additional_tools","tools":[` + mcp + `],"type":"message","role":"user","content":"x"}`:                               "?",
		`{"type":"message","Type":"additional_tools","tools":[` + mcp + `],"role":"user","content":"x"}`:                               "?",
		`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"a":1,"a":` + mcp + `}}]}`: "?",
	} {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(text, err)
		}
		got := "?"
		list, plain := reach.Tools(it)
		if plain {
			got = ""
			for _, def := range list {
				got += def.ToolType()
			}
		}
		if got != want || reach.Hosted(it) != (want != "") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
