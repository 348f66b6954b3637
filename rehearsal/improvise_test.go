// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	tooloutput "github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/patch"
)

func all(string) bool { return true }

// converse plays a conversation with the default behaviour to the end of a
// round: run answers each call. It returns the calls of each turn and the
// answer.
func converse(t *testing.T, s *Server, req *api.Request, run func(c *item.FunctionCall) item.Item) (turns []string, answer string) {
	t.Helper()
	url := start(t, s)
	for range 10 {
		r := create(t, url, req)
		req.Input.Append(r.Output...)
		made := calls(r)
		if made == "" {
			return turns, r.Text()
		}
		turns = append(turns, made)
		for _, it := range r.Output {
			if c, err := item.As[item.FunctionCall](it); err == nil {
				req.Input.Append(run(c))
			}
		}
	}
	t.Fatal("no end")
	return nil, ""
}

// Without a script, each tool that only reads is called once, with arguments
// that the conversation suggests, and what came back is told.
func TestDefault(t *testing.T) {
	req := request([]string{"read_file", "import_image", "append_to_file"}, item.User("What is in this folder?"))
	req.Tools = append(req.Tools, function("read_directory", `{"type":"object","properties":{"path":{"type":"string"}}}`),
		&item.UnknownTool{Raw: `{"type":"web_search"}`})
	server := &Server{ReadOnly: func(name string) bool { return name != "append_to_file" }}
	run := func(c *item.FunctionCall) item.Item {
		switch c.Name {
		case "read_directory":
			return textOutput(c.CallID, "cover.png (10 bytes)\nnotes/\nplan.txt (20 bytes)")
		case "import_image":
			return outputOf(t, c.CallID, &item.InputText{Text: "cover.png"}, &item.InputImage{ImageURL: png("abc")})
		}
		return failed(c.CallID, c.Name, "permission denied")
	}
	turns, answer := converse(t, server, req, run)
	want := []string{"read_directory {}\n", "read_file {\"path\":\"plan.txt\"}\nimport_image {\"path\":\"cover.png\"}\n"}
	if d := cmp.Diff(want, turns); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	wantAnswer := `This is a rehearsal: a mock model answers, and it does not think.

You said: "What is in this folder?"

This is what the tools returned:

- ` + "`read_directory` with `{}`" + ` returned 3 lines, 47 bytes: "cover.png (10 bytes) notes/ plan.txt (20 bytes)"
- ` + "`read_file` with `{\"path\":\"plan.txt\"}`" + ` failed: permission denied
- ` + "`import_image` with `{\"path\":\"cover.png\"}`" + ` returned 1 line, 9 bytes: "cover.png"; an image: image/png, 11 bytes, SHA-256 2cb922ecae93d405c9b9631a154ff097e354a411d5444196a182a0ffcbe63071`
	if d := cmp.Diff(wantAnswer, answer); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	// A second message: what was asked before is not asked again.
	req.Input.Append(item.User("Read other.txt too.\n"))
	turns, answer = converse(t, server, req, run)
	if d := cmp.Diff([]string{"read_file {\"path\":\"other.txt\"}\n"}, turns); d != "" {
		t.Errorf("second message (-want +got):\n%s", d)
	}
	if strings.Contains(answer, "read_directory") || !strings.Contains(answer, `You said: "Read other.txt too."`) {
		t.Errorf("second answer:\n%s", answer)
	}
	req.Input.Append(item.User("Thanks."))
	if _, answer = converse(t, server, req, run); !strings.Contains(answer, "I called no tool: nothing new to ask of read_file, import_image, append_to_file, read_directory, web_search.") {
		t.Errorf("third answer:\n%s", answer)
	}
}

func TestDefaultObeys(t *testing.T) {
	none := func(*item.FunctionCall) item.Item { panic("no call expected") }
	req := request([]string{"a", "b"}, item.User("hi"))
	if _, answer := converse(t, &Server{ReadOnly: func(string) bool { return false }}, req, none); !strings.Contains(answer, "of those declared (a, b) none only reads") {
		t.Error(answer)
	}
	if _, answer := converse(t, &Server{}, req, none); !strings.Contains(answer, "(a, b) only read: a request does not say so. Set ReadOnly of the rehearsal.Server.") {
		t.Error(answer) // a program whose tools only read must not be told that they do not
	}
	req = request([]string{"a"}, item.User("hi"))
	req.ToolChoice = api.ChoiceNone
	converse(t, &Server{ReadOnly: all}, req, none)

	req = request([]string{"a", "b"}, item.User("read x.txt"))
	req.ParallelToolCalls = new(false)
	turns, _ := converse(t, &Server{ReadOnly: all}, req, func(c *item.FunctionCall) item.Item { return textOutput(c.CallID, "") })
	if d := cmp.Diff([]string{"a {\"path\":\"x.txt\"}\n", "b {\"path\":\"x.txt\"}\n"}, turns); d != "" {
		t.Errorf("one after the other (-want +got):\n%s", d)
	}

	if _, answer := converse(t, &Server{}, request(nil, item.User("hi")), none); !strings.Contains(answer, "No tools were declared.") {
		t.Error(answer)
	}
	img, err := item.UserParts(&item.InputImage{ImageURL: png("abc")}, &item.InputImage{FileID: "file-1"})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := converse(t, &Server{}, request(nil, img), none)
	if !strings.Contains(answer, "You showed an image: image/png, 11 bytes") || !strings.Contains(answer, "You showed an image: file-1") {
		t.Error(answer)
	}

	custom := &api.Request{Model: "m", Input: item.NewList(item.User("do it")), Tools: []item.Tool{
		&item.CustomTool{Name: "free"}, &item.CustomTool{Name: "grammar", Format: `{"type":"grammar","syntax":"lark","definition":"x"}`},
	}}
	if got := calls(create(t, start(t, &Server{ReadOnly: all}), custom)); got != "free: do it\n" {
		t.Errorf("custom tools: %q", got)
	}
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"none", `{"type":"object"}`, `{}`},
		{"no schema", `true`, `{}`},
		{"optional", `{"properties":{"a":{"type":"string"}}}`, `{}`},
		{"text", `{"properties":{"city":{"type":"string"}},"required":["city"]}`, `{"city":"Weather in Graz?"}`},
		{"untyped", `{"properties":{"city":{}},"required":["city"]}`, `{"city":"Weather in Graz?"}`},
		{"not described", `{"required":["city"]}`, `{"city":"Weather in Graz?"}`},
		{"given", `{"properties":{"a":{"const":7},"b":{"enum":["x","y"]},"c":{"default":[1]},"d":{"examples":["e"]}},"required":["a","b","c","d"]}`,
			`{"a":7,"b":"x","c":[1],"d":"e"}`},
		{"kinds", `{"properties":{"a":{"type":"integer","minimum":2.5},"b":{"type":"number"},"c":{"type":"boolean"},"d":{"type":"array","items":{"type":"integer"},"minItems":2},"e":{"type":"object","properties":{"f":{"type":"boolean"}},"required":["f"]}},"required":["a","b","c","d","e"]}`,
			`{"a":3,"b":1,"c":false,"d":[1,1],"e":{"f":false}}`},
		{"strict", `{"properties":{"path":{"type":"string"},"limit":{"type":["integer","null"]},"note":{"type":["string","null"]}},"required":["path","limit","note"]}`,
			`{"limit":null,"note":null,"path":"docs/main.go"}`},
		{"choice", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"boolean"}]},"b":{"oneOf":[{"type":"integer"}]},"c":{"allOf":[{"type":"boolean"}]}},"required":["a","b","c"]}`,
			`{"a":false,"b":1,"c":false}`},
		{"reference", `{"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"enum":["here"]}}}`, `{"a":"here"}`},
		{"circular", `{"properties":{"a":{"$ref":"#"}},"required":["a"],"$ref":""}`, ``},
		{"circular reference", `{"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"$ref":"#/$defs/x"}}}`, ``},
		{"self", `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"]}}}`, ``},
		{"formats", `{"properties":{"u":{"type":"string","format":"uri"},"d":{"type":"string","format":"date"}},"required":["u","d"]}`,
			`{"d":"2026-01-01","u":"https://example.com/x?y=1"}`},
		{"places", `{"properties":{"dir":{"type":"string"},"image_path":{"type":"string"}},"required":["dir","image_path"]}`,
			`{"dir":".","image_path":"pic.webp"}`},
		{"odd", `{"properties":5,"required":"a","enum":{},"minItems":"x"}`, `{}`},
	}
	h := &hints{question: "Weather in Graz?"}
	h.read("See https://example.com/x?y=1, i.e. docs/main.go and pic.webp, e.g. on example.com.")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _ := arguments(function("t", test.schema), h)
			if got != test.want && test.want != "" || item.JSON(got).Valid() != nil {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Whatever a schema holds, arguments are a JSON object.
func FuzzArguments(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)
	f.Add(`{"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"}]}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if item.JSON(schema).Valid() != nil {
			t.Skip()
		}
		got, _ := arguments(function("t", schema), &hints{})
		if _, err := item.ParseString(got); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
	})
}

// The arguments made up for the built-in tools fit their schemas.
func TestArgumentsFitToolkit(t *testing.T) {
	files, err := toolkit.Open(toolkit.Root{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for _, b := range toolkit.Builtins() {
		if !slices.Equal(b.Needs, []toolkit.Need{toolkit.NeedRoots}) {
			continue // it would do more than look at a folder
		}
		tl, err := toolkit.New(b.Name, toolkit.Deps{Files: files, PatchForm: patch.Function})
		if err != nil {
			t.Fatal(err)
		}
		set, err := tool.NewSet(tl)
		if err != nil {
			t.Fatal(err)
		}
		args, _ := arguments(tl.Definition().(*item.FunctionTool), &hints{question: "q"})
		if o := set.Invoke(t.Context(), tool.Call{ID: "c", Name: b.Name, Arguments: args}, tooloutput.Policy{}); o.Failure == tool.BadArguments {
			t.Errorf("%s %s: %s", b.Name, args, o.Error)
		}
	}
}

func TestHints(t *testing.T) {
	tests := []struct {
		text          string
		files, images []string
		url           string
	}{
		{"Read notes.txt, then src/main.go.", []string{"notes.txt", "src/main.go"}, nil, ""},
		{"a.PNG (10 bytes)\nb.jpeg", nil, []string{"a.PNG", "b.jpeg"}, ""},
		{"See <https://x.org/a.txt>; v1.2.3, e.g. 3.14 and i.e. that.", nil, nil, "https://x.org/a.txt"},
		{"Ünïcode.md ../up.go ./here.c", []string{"Ünïcode.md", "../up.go", "./here.c"}, nil, ""},
		{"src/ and then a.go", []string{"a.go"}, nil, ""},
		{"A sentence.Next one", []string{"sentence.Next"}, nil, ""}, // a wrong guess does no harm
	}
	for _, test := range tests {
		var h hints
		h.read(test.text)
		if !slices.Equal(h.files, test.files) || !slices.Equal(h.images, test.images) || h.url != test.url {
			t.Errorf("%q: %+v", test.text, h)
		}
	}
}

// Whatever the tools return, the default comes to an end and every answer is
// accepted as the next input.
func TestDefaultEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z_]{1,8}`), 0, 5, rapid.ID).Draw(rt, "tools")
		req := request(names, item.User(rapid.String().Draw(rt, "user")))
		if rapid.Bool().Draw(rt, "sequential") {
			req.ParallelToolCalls = new(false)
		}
		var s Server
		s.ReadOnly = all
		made := 0
		for range len(names) + 3 {
			r, err := answered(&s, encode(t, req, false))
			if err != nil {
				rt.Fatalf("refused: %v", err)
			}
			req.Input.Append(r.Output...)
			if calls(r) == "" {
				if made != len(names) {
					rt.Fatalf("%d calls for %d tools", made, len(names))
				}
				return
			}
			for _, it := range r.Output {
				made++
				req.Input.Append(textOutput(it.CallID(), rapid.String().Draw(rt, "output")))
			}
		}
		rt.Fatal("no end")
	})
}
