// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/tool"
)

// X3: what a server has is what the model may call, and what it no longer has
// is gone; a tool that stayed is the same value.
func TestListChanged(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25", "2025-06-18", "2024-11-05"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			var log events
			s := program("sdk")
			s.Protocol = protocol
			s.Exclude = []string{"hidden*"}
			r := connect(t, mcpbridge.Options{Notify: log.add}, s)
			before := r.bridge.Tools()
			changed := r.bridge.Changed()
			r.want("grow", `{"text":"new_tool"}`, "grown")
			<-changed
			r.want("new_tool", `{"text":""}`, "I am new_tool")
			changed = r.bridge.Changed()
			r.want("shrink", `{"text":"new_tool"}`, "shrunk")
			<-changed
			if o := r.call("new_tool", `{"text":""}`); o.Failure != tool.UnknownTool {
				t.Errorf("%+v", o)
			}
			if !slices.Equal(before, r.bridge.Tools()) {
				t.Error("the tools are not the same values")
			}
			changed = r.bridge.Changed()
			r.want("grow", `{"text":"hidden_1"}`, "grown")
			r.want("grow", `{"text":"seen"}`, "grown")
			<-changed
			if err := r.bridge.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
			eventually(t, "the change is told", func() bool { return log.has(mcpbridge.Changed, "tools, before") })
			names := r.set().Names()
			if slices.Contains(names, "hidden_1") || !slices.Contains(names, "seen") {
				t.Error(names)
			}
			if want := protocol; want != "" && r.bridge.Servers()[0].Protocol != want {
				t.Error(r.bridge.Servers())
			}
		})
	}
}

// A server cannot fill the memory, or each request to the model, with its tools; those that are not selected do not count.
func TestTooManyTools(t *testing.T) {
	for _, mode := range []string{"crowd", "wordy"} {
		s := program(mode)
		if b, err := mcpbridge.Connect(t.Context(), mcpbridge.Options{}, s); err == nil || !strings.Contains(err.Error(), "it sent a list of more than 10000 tools, or they are described by more than 8 MiB") {
			t.Errorf("%s: %v", mode, err)
			if err == nil {
				b.Close()
			}
		}
	}
	s := program("crowd")
	s.Include = []string{"t1", "t10000"}
	if names := connect(t, mcpbridge.Options{}, s).set().Names(); !slices.Equal(names, s.Include) {
		t.Error(names)
	}
}

// A message takes memory in proportion to its text, whatever is in it.
func TestMemoryOfMessages(t *testing.T) {
	many := func(begin, one, end string, n int) string {
		return `{"jsonrpc":"2.0",` + begin + strings.Repeat(one+",", n-1) + one + end + "}"
	}
	for name, c := range map[string]struct{ message, err string }{
		"tools":           {many(`"id":1,"result":{"tools":[`, `{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}`, `]}`, 300_000), "a list of more than 10000 tools"},
		"a schema":        {many(`"id":1,"result":{"tools":[{"name":"t","inputSchema":{"enum":[`, `0`, `]}}]}`, 3_000_000), "more than 1048576 values"},
		"other members":   {many(`"id":1,"result":{"tools":[{"name":"t","icons":[`, `0`, `]}]}`, 10_000_000), ""},
		"members":         {many(`"id":1,"result":{`, `"a":0`, `}`, 10_000_000), "more than 1048576 values"},
		"a notification":  {many(`"method":"notifications/message","params":{"level":"info","data":[`, `0`, `]}`, 10_000_000), "more than 1048576 values"},
		"a call's result": {many(`"id":1,"result":{"content":[`, `0`, `]}`, 10_000_000), ""},
	} {
		most, took := uint64(10*len(c.message)+128<<20), uint64(math.MaxUint64)
		for try := 0; took > most && try < 5; try++ { // the race detector makes sync.Pool lose buffers now and then, which are allocated again
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := mcpbridge.Tap([]byte(c.message))
			runtime.ReadMemStats(&after)
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%s: %v, want %q", name, err, c.err)
			}
			took = after.TotalAlloc - before.TotalAlloc // all that was allocated, much of it not at the same time
		}
		if took > most {
			t.Errorf("%s: %d bytes take %d", name, len(c.message), took)
		}
	}
}

// X3: hundreds of tools, and filters.
func TestFilters(t *testing.T) {
	s := program("many")
	r := connect(t, mcpbridge.Options{}, s)
	if n := len(r.bridge.Tools()); n < 300 {
		t.Errorf("%d tools", n)
	}
	r.want("tool_299", `{"text":""}`, "299")
	s.Include, s.Exclude = []string{"tool_00*", "echo"}, []string{"*_00[1-9]"}
	r = connect(t, mcpbridge.Options{}, s)
	if diff := cmp.Diff([]string{"echo", "tool_000"}, r.set().Names()); diff != "" {
		t.Error(diff)
	}
}

// X3: equal names are told apart, and the right tool is called.
func TestEqualNames(t *testing.T) {
	one := func(name, says string) mcpbridge.Server {
		s := program("script", fmt.Sprintf(`RESULTS={"get":{"content":[{"type":"text","text":%q}]},"read_file":{"content":[]},%q:{"content":[]}}`, says, says))
		s.Name = name
		return s
	}
	r := connect(t, mcpbridge.Options{Reserved: []string{"read_file"}}, one("a", "from_a"), one("b.c", "from_b"))
	names := r.set().Names()
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a__get", "a__read_file", "b_c__get", "b_c__read_file", "from_a", "from_b"}, names); diff != "" {
		t.Error(diff)
	}
	r.want("a__get", "{}", "from_a")
	r.want("b_c__get", "{}", "from_b")
	if server, name, ok := r.bridge.Origin("b_c__get"); server != "b.c" || name != "get" || !ok {
		t.Error(server, name, ok)
	}
	if _, _, ok := r.bridge.Origin("read_file"); ok {
		t.Error("a reserved name has an origin")
	}

	r = connect(t, mcpbridge.Options{AlwaysPrefix: true}, one("a", "from_a"))
	if !slices.Contains(r.set().Names(), "a__from_a") {
		t.Error(r.set().Names())
	}
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Options{}, one("a.b", "x"), one("a-b", "y"), one("a_b", "z")); err == nil || !strings.Contains(err.Error(), "called so too") {
		t.Error(err)
	}
}

// I10: names that the API refuses are mapped, always to the same.
func TestNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, c := range []struct{ tool, want string }{
		{"get-x_1", "get-x_1"},
		{"get.x", "get_x_e8860c61"},
		{"get/x", "get_x_465fa7db"},
		{"größe", "gr__e_d353a267"},
		{"", "_e3b0c442"},
		{long, strings.Repeat("x", 55) + "_d929cdee"},
	} {
		got := mcpbridge.NewNames(false).Assign([2]string{"s", c.tool})[0]
		if got != c.want || tool.CheckName(got) != nil {
			t.Errorf("%q: %q, want %q", c.tool, got, c.want)
		}
		if again := mcpbridge.NewNames(false).Assign([2]string{"s", "get"}, [2]string{"s", c.tool}, [2]string{"t", "other"})[1]; again != got {
			t.Errorf("%q: %q, and then %q", c.tool, got, again)
		}
	}
}

// X3, I10: whatever comes, names fit, differ and stay.
func TestNamesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "a__b", "a.b", "a_b", "", "s__a", strings.Repeat("y", 70)}), rapid.String())
		table := mcpbridge.NewNames(rapid.Bool().Draw(t, "always"), rapid.SliceOfN(word, 0, 3).Draw(t, "reserved")...)
		given := map[[2]string]string{}
		owner := map[string][2]string{}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			var pairs [][2]string
			for range rapid.IntRange(0, 6).Draw(t, "n") {
				p := [2]string{rapid.SampledFrom([]string{"s", "t", "s__a"}).Draw(t, "server"), word.Draw(t, "tool")}
				if !slices.Contains(pairs, p) {
					pairs = append(pairs, p)
				}
			}
			for i, name := range table.Assign(pairs...) {
				p := pairs[i]
				if err := tool.CheckName(name); err != nil {
					t.Fatal(err)
				}
				if was, ok := given[p]; ok && was != name {
					t.Fatalf("%q was %s and is %s", p, was, name)
				}
				if o, ok := owner[name]; ok && o != p {
					t.Fatalf("%s is %q and %q", name, o, p)
				}
				given[p], owner[name] = name, p
			}
		}
	})
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		spec    string
		command []string
		url     string
	}{
		{"stdio:npx -y @scope/server-thing /data", []string{"npx", "-y", "@scope/server-thing", "/data"}, ""},
		{`stdio: "a b" c\ d 'e"\f' "" `, []string{"a b", "c d", `e"\f`, ""}, ""},
		{"https://example.com/mcp", nil, "https://example.com/mcp"},
		{"mcp+http://localhost:8080/", nil, "http://localhost:8080/"},
		{"stdio:", nil, ""},
		{`stdio:"a`, nil, ""},
		{"ftp://x", nil, ""},
		{"npx server", nil, ""},
	} {
		s, err := mcpbridge.Parse(c.spec)
		if (err != nil) != (c.command == nil && c.url == "") || !slices.Equal(s.Command, c.command) || s.URL != c.url {
			t.Errorf("%s: %q %q %v", c.spec, s.Command, s.URL, err)
		}
	}
}

func TestServerChecks(t *testing.T) {
	for _, c := range []struct {
		server mcpbridge.Server
		err    string
	}{
		{mcpbridge.Server{}, "either a command or a URL"},
		{mcpbridge.Server{Command: []string{"a"}, URL: "http://a"}, "MCP server a: want either"},
		{mcpbridge.Server{Command: []string{"npx", "-y", "@x/server-y@1.2"}, Timeout: -1}, "MCP server server-y: a limit is negative"},
		{mcpbridge.Server{URL: "a:b"}, "want an http or https URL"},
		{mcpbridge.Server{URL: "http://h:1/x", Include: []string{"["}}, "MCP server h:1: pattern"},
	} {
		if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Options{}, c.server); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v, want %s", err, c.err)
		}
	}
}
