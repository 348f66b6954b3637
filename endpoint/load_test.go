// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func load(t *testing.T, text string) *Table {
	t.Helper()
	table, err := LoadProfiles([]byte(text), "mine.json")
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return table
}

func at(t *testing.T, base string) *url.URL {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A file adds a profile, changes a built-in one, and adds a model.
func TestLoadProfiles(t *testing.T) {
	table := load(t, `{
	"profiles": [
		{"like": "openai", "name": "mine", "hosts": ["llm.example.com", ".internal:8443/team"], "omit": ["service_tier"],
		 "set": {"store": false, "metadata": {"a": [1, "b"]}}, "header": {"X-Team": "a"}, "compact": null, "max_cache_key": 32},
		{"name": "ollama", "outputs": null, "images": "url"},
		{"name": "again", "like": "mine"}
	],
	"models": [{"names": ["house-7b", "gpt-5"], "reasoning": "no", "sampling": "without_reasoning", "efforts": [], "context_window": 32768}]}`)

	mine := table.Detect(at(t, "https://llm.example.com/v1"))
	want := profiles[0].Clone()
	want.Name, want.Hosts, want.Servers = "mine", []string{"llm.example.com", ".internal:8443/team"}, nil
	want.Omit, want.Header, want.Compact, want.MaxCacheKey = []string{"service_tier"}, map[string]string{"X-Team": "a"}, Unknown, 32
	want.Set = map[string]string{"store": "false", "metadata": `{"a": [1, "b"]}`}
	if diff := cmp.Diff(want, mine); diff != "" {
		t.Error(diff)
	}
	if p := table.Detect(at(t, "https://a.internal:8443/team/x")); p.Name != "mine" {
		t.Errorf("found %s", p.Name)
	}
	ollama := table.Detect(at(t, "http://localhost:11434"))
	if ollama.Name != "ollama" || ollama.Outputs != OutputParts || ollama.Images != URLOrData || ollama.Files != NoneOfThem {
		t.Errorf("ollama is %+v", ollama)
	}
	if p, err := table.ByName("again"); err != nil || p.Hosts != nil || p.Set["store"] != "false" {
		t.Errorf("again is %+v, %v", p, err)
	}
	if p := table.Detect(at(t, "https://api.openai.com")); p.Name != "openai" {
		t.Errorf("the built-in ones are gone: %s", p.Name)
	}
	for _, name := range []string{"house-7b", "openai/gpt-5", "gpt-5-2025-08-07"} {
		if m, ok := table.Model(name); !ok || m.Reasoning != No || m.ContextWindow != 32768 || m.Images != Unknown {
			t.Errorf("%s is %+v, %v", name, m, ok)
		}
	}
	if m, ok := table.Model("gpt-5-mini"); !ok || m.Reasoning != Yes {
		t.Errorf("gpt-5-mini is %+v, %v", m, ok)
	}
	if b, _ := ByName("ollama"); b.Outputs != OutputString {
		t.Error("a file changed the built-in table")
	}
}

// M4's form of errors, for this file too: the place, the text, a hint.
func TestLoadProfilesErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `mine.json:1:1: the file is empty; write {"profiles": […]}`},
		{"[]", "mine.json:1:1: the file must be an object, not []"},
		{"{", "mine.json:1:2: "},
		{`{"profiles":[{"name":"ä" "hosts":[]}]}`, "mine.json:1:26: "},
		{`{} {}`, "mine.json:1:4: unexpected data after the object"},
		{"{\n  \"profile\": []}", `mine.json:2:3: unknown member "profile"; did you mean "profiles"?`},
		{"{\"profiles\": [\n\t{\"name\": \"ä\", \"host\": []}]}", `mine.json:2:16: unknown member "host"; did you mean "hosts"?`},
		{`{"profiles":[{"name":"x","completely_else":1}]}`, "known names: account_header, alternate, apis, "},
		{`{"profiles":[{"name":"x","omit":["a"],"omit":[]}]}`, "mine.json:1:39: duplicate member"},
		{`{"profiles":{}}`, `mine.json:1:13: "profiles" must be a list, not {}`},
		{`{"profiles":[7]}`, `mine.json:1:14: "profiles" must be an object, not 7`},
		{`{"profiles":[{}]}`, "mine.json:1:14: the profile has no name"},
		{`{"profiles":[{"name":""}]}`, "the profile has no name"},
		{`{"profiles":[{"name":"x"},{"name":"x"}]}`, `mine.json:1:27: profile "x" is defined twice`},
		{`{"profiles":[{"name":"x","like":"opnai"}]}`, `mine.json:1:33: unknown profile "opnai"; the profiles are azure, careful, codex, `},
		{`{"profiles":[{"name":5}]}`, `mine.json:1:22: "name" must be a text, not 5`},
		{`{"profiles":[{"name":"x","omit":"a"}]}`, `mine.json:1:33: "omit" must be a list, not "a"`},
		{`{"profiles":[{"name":"x","omit":["a", 1]}]}`, `mine.json:1:39: "omit" must be a list of texts, not 1`},
		{`{"profiles":[{"name":"x","omit":["a", null]}]}`, `mine.json:1:39: "omit" must be a list of texts, not null`},
		{`{"profiles":[{"name":"x","roles":{"user": null}}]}`, `mine.json:1:43: "user" must be a text, not null`},
		{`{"profiles":[{"name":"x","base_path":"/v1","chat_path":"chat"}]}`, `mine.json:1:56: "chat" is not a path; begin it with /`},
		{`{"profiles":[{"name":"x","strict_names":"yes"}]}`, `"strict_names" must be true or false, not "yes"`},
		{`{"profiles":[{"name":"x","max_cache_key":-1}]}`, "must be a whole number"},
		{`{"profiles":[{"name":"x","max_cache_key":1.5}]}`, "must be a whole number"},
		{`{"profiles":[{"name":"x","roles":{"a":1}}]}`, `mine.json:1:39: "a" must be a text, not 1`},
		{`{"profiles":[{"name":"x","roles":[]}]}`, `"roles" must be an object, not []`},
		{`{"profiles":[{"name":"x","outputs":"text"}]}`, `"outputs": unknown value "text"; it may be "string"`},
		{`{"profiles":[{"name":"x","compact":true}]}`, `"compact" must be a text, not true`},
		{`{"profiles":[{"name":"x","hosts":["https://me:hunter2@a.example"]}]}`, `"https://a.example" is not a host; write a host`},
		{`{"profiles":[{"name":"x","chat_path":"chat"}]}`, `"chat" is not a path; begin it with /`},
		{`{"profiles":[{"name":"x","apis":["grpc"]}]}`, `unknown API "grpc"; write "responses" or "chat"`},
		{`{"models":[{"reasoning":"yes"}]}`, "mine.json:1:12: the model has no name"},
		{`{"models":[{"names":["x"],"sampling":"sometimes"}]}`, `it may be "yes", "no", "without_reasoning"`},
		// B5, J6: a file that people share holds no secret, and no error repeats one.
		{"{\"profiles\":[{\"name\":\"x\",\n\"api_key\":\"hunter2\"}]}", `mine.json:2:1: "api_key": this file must not hold secrets; set the key in the program's environment instead`},
		{`{"key":"hunter2"}`, "this file must not hold secrets"},
		{`{"profiles":[{"name":"x","header":{"Authorization":"hunter2"}}]}`, `"Authorization": this file must not hold secrets`},
		{`{"profiles":[{"name":"x","header":{"X-My-Auth":"hunter2"}}]}`, `"X-My-Auth": this file must not hold secrets`},
		{`{"profiles":[{"name":"x","set":{"a":{"token":"hunter2"}}}]}`, `"token": this file must not hold secrets`},
		{`{"profiles":[{"name":"x","key_hint":"sk-hunter2-hunter2-hunter2"}]}`, "this looks like a key"},
		{`{"profiles":[{"name":"x","header":{"a":"b\r\nc"}}]}`, `"a" is not a header`},
	} {
		_, err := LoadProfiles([]byte(tt.text), "mine.json")
		var bad *FileError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.text, err, tt.want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is in %q", err)
		}
	}
}

// Every built-in profile and model, and any other, is what its JSON says.
func TestProfileRoundTrip(t *testing.T) {
	for _, p := range profiles {
		table := load(t, `{"profiles":[`+string(p.AppendJSON(nil))+`]}`)
		got, err := table.ByName(p.Name)
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Errorf("%s, %v: %s", p.Name, err, diff)
		}
	}
	for _, m := range models {
		got, ok := load(t, `{"models":[`+string(m.AppendJSON(nil))+`]}`).Model(m.Names[0])
		if diff := cmp.Diff(m, got); diff != "" || !ok {
			t.Errorf("%s, %v: %s", m.Names[0], ok, diff)
		}
	}
	// A field without a name in files would be lost.
	for _, v := range []any{Profile{}, Model{}} {
		want := fields(v)
		for f := range reflect.TypeOf(v).Fields() {
			if embedded(f) {
				want += f.Type.NumField() - 1
			}
		}
		if names := memberNames(reflect.TypeOf(v)); len(names) != want {
			t.Errorf("%T has %d fields, of which %d have a name", v, want, len(names))
		}
	}
}

// A profile holds settings of wire APIs that this package does not know, and those
// of Chat Completions by the names that files have always had.
func TestProfileDialects(t *testing.T) {
	table := load(t, `{"profiles":[{"name":"mine","like":"openai","chat_max_tokens":"max_tokens","dialects":{"messages":{"path":"/v1/messages"}}}]}`)
	p, err := table.ByName("mine")
	if err != nil {
		t.Fatal(err)
	}
	if p.Chat != (Chat{Path: "/chat/completions", MaxTokens: "max_tokens", Usage: Yes}) || p.Dialects["messages"]["path"] != "/v1/messages" {
		t.Errorf("%+v, %v", p.Chat, p.Dialects)
	}
	q := p.Clone()
	q.Dialects["messages"]["path"] = "x"
	if p.Dialects["messages"]["path"] == "x" {
		t.Error("a clone shares with the profile")
	}
}

func TestProfileRoundTripAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zä/." \n-]{0,8}`)
		role := rapid.SampledFrom([]string{"user", "assistant", "system", "developer"})
		p := Profile{
			Name:    rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name"),
			Omit:    rapid.SliceOfN(rapid.StringMatching(`x_own_[a-zä/." \n-]{8}`), 0, 3).Draw(t, "omit"),
			KeyHint: text.Draw(t, "hint"),
			Roles:   rapid.MapOfN(role, role, 0, 3).Draw(t, "roles"),
			Set:     map[string]string{"x_own_set": rapid.SampledFrom([]string{"true", `{"a":[1,"ä"]}`, "1.50", "null"}).Draw(t, "set")},
			Outputs: rapid.SampledFrom([]Outputs{OutputParts, OutputString}).Draw(t, "outputs"),
			Stored:  rapid.SampledFrom([]Support{Unknown, Yes, No}).Draw(t, "stored"),
		}
		table, err := LoadProfiles([]byte(`{"profiles":[`+string(p.AppendJSON(nil))+`]}`), "x")
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.ByName(p.Name)
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
	})
}

// No file makes it panic, and what it takes it writes and takes again.
func FuzzLoadProfiles(f *testing.F) {
	f.Add([]byte(`{"profiles":[{"name":"mine","like":"openai","hosts":["a"],"set":{"a":1}}],"models":[{"names":["x"]}]}`))
	f.Add([]byte(`{"profiles":[{"name":"x","roles":{"a":"b"},"strict_names":true,"max_cache_key":3}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := LoadProfiles(data, "f")
		if err != nil {
			var bad *FileError
			if !errors.As(err, &bad) || bad.Line < 1 || bad.Column < 1 {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		for _, p := range table.profiles {
			again, err := LoadProfiles([]byte(`{"profiles":[`+string(p.AppendJSON(nil))+`]}`), "f")
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			if diff := cmp.Diff([]Profile{p}, again.profiles); diff != "" {
				t.Fatalf("%q: %s", data, diff)
			}
		}
	})
}

// What is a mistake whatever its kind is told with its place.
func TestProfileFlaws(t *testing.T) {
	for _, tt := range []struct{ profile, says string }{
		{`"hosts":["*.x.com"]`, `"*.x.com" is not a host`},
		{`"hosts":["a.com:99999"]`, "has no valid port"},
		{`"fallback":"nope"`, `unknown profile "nope"`},
		{`"fallback":"mine"`, "its own fallback"},
		{`"roles":{"system":"king"}`, `unknown role "king"`},
		{`"omit":["temprature"]`, `unknown member "temprature"`},
		{`"omit":["input"]`, `every request needs "input"`},
		{`"omit":["store"],"set":{"store":false}`, "in both set and omit"},
		{`"efforts":["lowest"]`, `unknown effort "lowest"`},
		{`"set":{"stream":"maybe"}`, "stream is"},
	} {
		_, err := LoadProfiles([]byte(`{"profiles":[{"name":"mine",`+tt.profile+`}]}`), "f.json")
		var bad *FileError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.says) || bad.Column < 28 {
			t.Errorf("%s: %v", tt.profile, err)
		}
	}
	two := `{"profiles":[{"name":"a","hosts":["x.com"]},{"name":"b","hosts":["x.com"]}]}`
	if _, err := LoadProfiles([]byte(two), "f.json"); err == nil || !strings.Contains(err.Error(), `"x.com" is also a host of profile "a"`) {
		t.Errorf("%v", err)
	}
	if _, err := LoadProfiles([]byte(`{"profiles":[{"name":"mine","omit":["x_gateway_tag"]}]}`), "f.json"); err != nil {
		t.Error(err)
	}
}
