// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package toolkit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
	"github.com/antiphon-go/antiphon/toolkit/patch"
)

// A1: a link on the way to files that other programs obey leads no write to them, whether it was there
// before the question about the call or not: nobody was asked about these.
func TestWriteThroughLink(t *testing.T) {
	k := kittest.New(t)
	k.Write(".git/hooks/x", "theirs")
	if err := os.Symlink(".git/hooks", filepath.Join(k.Dir, "folder")); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{"append_to_file": `{"path":"folder/x","content":"evil"}`, "find_and_replace": `{"path":"folder/x","find":"theirs","replace":"evil"}`} {
		tl, err := toolkit.New(name, toolkit.Deps{Files: k.Files})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tl.Run(t.Context(), tool.Call{Name: name, Arguments: args}); err == nil || !strings.Contains(err.Error(), "nobody was asked about") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := k.Content(".git/hooks/x"); got != "theirs" {
		t.Errorf("written through the link: %q", got)
	}
}

// A1: a link that is put on the way after somebody allowed a call, and stays there, leads it to nothing
// private: the question was about another file.
func TestReadThroughNewLink(t *testing.T) {
	k := kittest.New(t)
	k.Write("home/.ssh/f", "a key")
	k.Write("home/pub/d/f", "public")
	k.Files.Home(filepath.Join(k.Dir, "home"))
	one := &swapped{swap: func() {
		d := filepath.Join(k.Dir, "home", "pub", "d")
		if err := errors.Join(os.RemoveAll(d), os.Symlink("../.ssh", d)); err != nil {
			t.Error(err)
		}
	}}
	var err error
	if one.Tool, err = toolkit.New("read_file", toolkit.Deps{Files: k.Files}); err != nil {
		t.Fatal(err)
	}
	call, err := item.New(&item.FunctionCall{CallID: "c", Name: "read_file", Arguments: `{"path":"home/pub/d/f"}`})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{
		Model: agenttest.Script(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done"))), Tools: []tool.Tool{one},
		Policy: agent.Policy{Ask: []string{"read_file"}, Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
			return agent.Decision{Allow: true, Decided: session.DeciderPerson}, nil
		}},
	}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	outputs := 0
	for _, e := range s.Log() {
		if out, ok := e.Body.(session.CallOutput); ok {
			outputs++
			if text := out.Item.JSON(); !out.Failed || strings.Contains(text, "a key") || !strings.Contains(text, "nobody was asked about") {
				t.Errorf("%s", text)
			}
		}
	}
	if outputs != 1 {
		t.Errorf("%d outputs", outputs)
	}
}

// K2, A1: a question about one private or protected file is no question about another, to which a link on the way leads.
func TestLinkBetweenPrivateFolders(t *testing.T) {
	k := kittest.New(t)
	k.Write(".ssh/a.md", "a key")
	k.Write(".config/real/a.md", "a setting")
	k.Write("one/.git/hooks/x", "theirs")
	k.Write("two/.git/config", "")
	k.Symlink("../.ssh", ".config/led")
	k.Symlink("../../one/.git/hooks", "two/.git/hooks")
	k.Files.Home(k.Dir)
	for name, c := range map[string]struct{ args, want string }{
		"read_file":      {`{"path":".config/led/a.md"}`, "nobody was asked about"},
		"append_to_file": {`{"path":"two/.git/hooks/x","content":"evil"}`, "nobody was asked about"},
		"get_contents":   {`{"path":".config/real/a.md"}`, ""},
	} {
		tl, err := toolkit.New(name, toolkit.Deps{Files: k.Files})
		if err != nil {
			t.Fatal(err)
		}
		res, err := tl.Run(t.Context(), tool.Call{Name: name, Arguments: c.args})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || strings.Contains(res.Text, "a key") {
			t.Errorf("%s: %q, %v", name, res.Text, err)
		}
	}
	if got := k.Content("one/.git/hooks/x"); got != "theirs" {
		t.Errorf("written through the link: %q", got)
	}
}

// A1, A6: a rule that denies a folder to markdown_search holds for what an index of another folder shows, and for indexes
// that no argument names.
func TestSearchUnderRules(t *testing.T) {
	k := kittest.New(t)
	for n := range 250 { // as many hits as could hide others
		k.Write(fmt.Sprintf("secret/a%d.md", n), "# word\n\nword hidden text\n")
	}
	k.Write("open/a.md", "# word\n\nplain text\n")
	var tools []tool.Tool
	for _, name := range []string{"index_markdown_docs", "markdown_search"} {
		one, err := toolkit.New(name, toolkit.Deps{Files: k.Files})
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, one)
	}
	for _, root := range []string{"secret", "open"} {
		for _, at := range []string{`,"vector_db_root":"pub"`, ""} {
			if _, err := tools[0].Run(t.Context(), tool.Call{Name: "index_markdown_docs", Arguments: `{"root":"` + root + `","index_name":"` + root + `"` + at + `}`}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for denied, shows := range map[string]bool{"secret": true, ".chatmd": false} {
		arguments := `{"query":"word"}`
		if shows {
			arguments = `{"query":"word","vector_db_root":"pub"}`
		}
		a := &agent.Agent{
			Model: agenttest.Script(t, agenttest.Completed(item.Call("c", "markdown_search", arguments)), agenttest.Completed(item.Assistant("done"))), Tools: tools[1:],
			Policy: agent.Policy{Rules: []session.Rule{{Verdict: session.Deny, Tool: "markdown_search", Member: "vector_db_root", Under: denied}}},
		}
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, e := range s.Log() {
			if out, ok := e.Body.(session.CallOutput); ok {
				text += out.Item.JSON()
			}
		}
		if strings.Contains(text, "hidden text") || strings.Contains(text, "plain text") != shows || strings.Contains(text, "because this call may not read their files: 250.") != shows || strings.Contains(text, "Index again") || text == "" {
			t.Errorf("deny under %s: %s", denied, text)
		}
	}
}

// swapped is a tool before each call of which another program does something.
type swapped struct {
	tool.Tool
	swap func()
}

func (s swapped) Annotations() tool.Annotations { return tool.AnnotationsOf(s.Tool) }

func (s swapped) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	s.swap()
	return s.Tool.Run(ctx, call)
}

// A1, A6: a link that is put on the way once a call is allowed leads it to no place for which a rule
// denies it, whoever allowed it; nor out of the folder that the answer is about.
func TestAnswerIsAboutThePlace(t *testing.T) {
	const path = "pub/d/f"
	under := func(verdict session.Verdict, folder string) session.Rule {
		return session.Rule{Verdict: verdict, Tool: "append_to_file", Member: "path", Under: folder}
	}
	deny := []session.Rule{under(session.Deny, "secret")}
	like, other := under(session.Allow, "pub"), under(session.Allow, "elsewhere")
	like.Tool = "append_to_*" // bound to no tool
	for name, test := range map[string]struct {
		rules  []session.Rule
		answer agent.Decision
		leads  bool
	}{
		"a person, no rule":         {nil, agent.Decision{Decided: session.DeciderPerson}, true},
		"nothing changed":           {nil, agent.Decision{Rule: &like}, false},
		"a person":                  {deny, agent.Decision{Decided: session.DeciderPerson}, false},
		"a program":                 {deny, agent.Decision{}, false},
		"a person, about a folder":  {nil, agent.Decision{Decided: session.DeciderPerson, Remember: &like}, false},
		"a rule of the approver":    {nil, agent.Decision{Rule: &like}, false},
		"a person, about others":    {nil, agent.Decision{Decided: session.DeciderPerson, Remember: &other}, true},
		"a person, other arguments": {deny, agent.Decision{Decided: session.DeciderPerson, Arguments: `{"path":"pub/d/f","content":"y"}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := kittest.New(t)
			k.Write(path, "public\n")
			k.Write("secret/f", "secret\n")
			one, err := toolkit.New("append_to_file", toolkit.Deps{Files: k.Files})
			if err != nil {
				t.Fatal(err)
			}
			swap := func() {
				if name == "nothing changed" {
					return
				}
				d := filepath.Join(k.Dir, "pub", "d")
				if err := errors.Join(os.RemoveAll(d), os.Symlink("../secret", d)); err != nil {
					t.Error(err)
				}
			}
			call, err := item.New(&item.FunctionCall{CallID: "c", Name: "append_to_file", Arguments: `{"path":"pub/d/f","content":"x"}`})
			if err != nil {
				t.Fatal(err)
			}
			test.answer.Allow = true
			a := &agent.Agent{
				Model: agenttest.Script(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done"))), Tools: []tool.Tool{swapped{one, swap}},
				Policy: agent.Policy{Rules: test.rules, Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) { return test.answer, nil }},
			}
			if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
				t.Fatal(err)
			}
			if got := k.Content("secret/f"); (got != "secret\n") != test.leads {
				t.Errorf("secret/f: %q", got)
			}
			if name == "nothing changed" && k.Content(path) != "public\nx" {
				t.Error("the call did not run")
			}
		})
	}
}

// A1, A6: a program that swaps a folder for a link while calls run leads none of them out of
// the folder that rules are about: not to a folder that no rule allows, and not to one that
// a rule denies.
func TestUnderIsNotRaced(t *testing.T) {
	const secret = "SECRET secret\n"
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for name, text := range map[string]string{"pub/d/f": "public\n", "secret/f": secret, "secret/new": secret, "secret/hidden": secret} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path(name)), 0o755), os.WriteFile(path(name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := toolkit.Open(toolkit.Root{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	var calls []item.Item
	for i := range 400 {
		name, args := "read_file", `{"path":"pub/d/f"}`
		switch i % 4 {
		case 1:
			name, args = "append_to_file", `{"path":"pub/d/new","content":"x"}`
		case 2:
			name, args = "find_and_replace", `{"path":"pub/d/f","find":"SECRET","replace":"x"}`
		case 3:
			name, args = "read_directory", `{"path":"pub/d"}`
		}
		call, err := item.New(&item.FunctionCall{CallID: fmt.Sprintf("c%d", i), Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	a := &agent.Agent{
		Model: agenttest.Script(t, agenttest.Completed(calls...), agenttest.Completed(item.Assistant("done"))), Parallel: 4,
		Policy: agent.Policy{Rules: []session.Rule{
			{Verdict: session.Allow, Tool: "append_to_file", Member: "path", Under: "pub"}, {Verdict: session.Allow, Tool: "find_and_replace", Member: "path", Under: "pub"},
			{Verdict: session.Deny, Tool: "read_*", Member: "path", Under: "secret"},
		}},
	}
	for _, name := range []string{"read_file", "append_to_file", "find_and_replace", "read_directory"} {
		tl, err := toolkit.New(name, toolkit.Deps{Files: roots})
		if err != nil {
			t.Fatal(err)
		}
		a.Tools = append(a.Tools, tl)
	}
	over := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			_ = os.Rename(path("pub/d"), path("pub/away"))
			_ = os.Symlink("../secret", path("pub/d"))
			_ = os.Remove(path("pub/d"))
			_ = os.Rename(path("pub/away"), path("pub/d"))
			time.Sleep(50 * time.Microsecond) // so that some calls find the folder
		}
	})
	s := session.New()
	_, err = a.Run(t.Context(), s, item.User("go"))
	close(over)
	swapping.Wait()
	if err != nil {
		t.Fatal(err)
	}
	worked, met := 0, 0
	for _, e := range s.Log() {
		out, ok := e.Body.(session.CallOutput)
		if !ok {
			continue
		}
		o, err := item.As[item.FunctionCallOutput](out.Item)
		if err != nil {
			t.Fatal(err)
		}
		text := o.Output.Display()
		switch {
		case !out.Failed:
			worked++
		case strings.Contains(text, "a link on the way"), strings.Contains(text, "a rule denies"), strings.Contains(text, "on the way"):
			met++
		}
		if strings.Contains(text, "SECRET") || strings.Contains(text, "hidden") { // an error may also show what is in a file
			t.Errorf("%s: %s", out.CallID, text)
		}
	}
	for _, name := range []string{"secret/f", "secret/new"} {
		if text, err := os.ReadFile(path(name)); err != nil || string(text) != secret {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if worked == 0 {
		t.Error("no call worked")
	}
	if met == 0 {
		t.Error("no call met the link")
	}
	t.Logf("%d of %d calls worked, %d met the link", worked, len(calls), met)
}

// A1: patches and indexes are held to the place that was opened: not the path that was allowed, but where
// it leads decides, for what is written and for what is read.
func TestPlacesOfPatchesAndIndexes(t *testing.T) {
	k := kittest.New(t)
	k.Write("secret/f", "secret\n")
	k.Write("secret/a.md", "# word\n\nsecret\n")
	k.Write("pub/a.md", "# word\n\npublic\n")
	deps := toolkit.Deps{Files: k.Files}
	index := made(t, "index_markdown_docs", deps)
	if _, err := index.Run(t.Context(), tool.Call{Name: "index_markdown_docs", Arguments: `{"root":"pub","index_name":"x","vector_db_root":"secret/index"}`}); err != nil {
		t.Fatal(err)
	}
	k.Symlink("../secret", "pub/d")
	before := k.Tree()
	ctx := tool.WithPlace(t.Context(), func(_ string, within func(folder string) bool) error {
		if within("secret") {
			return errors.New("not allowed there")
		}
		return nil
	})
	envelope := func(lines string) string { return "*** Begin Patch\n" + lines + "\n*** End Patch" }
	for _, c := range []struct {
		name string
		form patch.Form
		args string
	}{
		{"apply_patch", patch.API, `{"type":"delete_file","path":"pub/d/f"}`},
		{"apply_patch", patch.API, `{"type":"update_file","path":"pub/d/f","diff":"@@\n-wrong\n+x"}`},
		{"apply_patch", patch.API, `{"type":"create_file","path":"pub/d/new","diff":"+x"}`},
		{"apply_patch", patch.API, `{"type":"create_file","path":"pub/d/new/new","diff":"+x"}`},
		{"apply_patch", patch.Custom, envelope("*** Update File: pub/d/f\n@@\n-secret\n+x")},
		{"apply_patch", patch.Custom, envelope("*** Update File: pub/a.md\n*** Move to: pub/d/b.md")},
		{"index_markdown_docs", "", `{"root":"pub/d","index_name":"y"}`},
		{"index_markdown_docs", "", `{"root":"pub","index_name":"y","vector_db_root":"pub/d/index"}`},
		{"markdown_search", "", `{"query":"word","vector_db_root":"pub/d/index"}`},
	} {
		deps.PatchForm = c.form
		res, err := made(t, c.name, deps).Run(ctx, tool.Call{Name: c.name, Arguments: c.args, Custom: c.form == patch.Custom})
		if err == nil || !strings.Contains(err.Error(), "not allowed there") {
			t.Errorf("%s %s: %q, %v", c.name, c.args, res.Text, err)
		}
	}
	if diff := cmp.Diff(before, k.Tree()); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
}

// A1: the directory of a patched file is opened once: a link that takes its place between two steps leads
// no step elsewhere.
func TestPatchStaysWhereItWasRead(t *testing.T) {
	k := kittest.New(t)
	k.Write("pub/d/f", "same\n")
	k.Write("secret/f", "same\n")
	looks := 0
	ctx := tool.WithPlace(t.Context(), func(string, func(string) bool) error {
		if looks++; looks == 1 { // the place is open and was looked at
			d := filepath.Join(k.Dir, "pub", "d")
			return errors.Join(os.Rename(d, filepath.Join(k.Dir, "pub", "e")), os.Symlink("../secret", d))
		}
		return nil
	})
	deps := toolkit.Deps{Files: k.Files, PatchForm: patch.API}
	if _, err := made(t, "apply_patch", deps).Run(ctx, tool.Call{Name: "apply_patch", Arguments: `{"type":"update_file","path":"pub/d/f","diff":"@@\n-same\n+x"}`}); err != nil {
		t.Fatal(err)
	}
	if theirs, ours := k.Content("secret/f"), k.Content("pub/e/f"); theirs != "same\n" || ours != "x\n" {
		t.Errorf("secret/f is %q, pub/e/f is %q", theirs, ours)
	}
}

// A patch that a rule denies makes no folder in the place either, not even for a moment.
func TestPatchMakesNoFolder(t *testing.T) {
	k := kittest.New(t)
	k.Write("secret/f", "same\n")
	k.Write("pub/f", "same\n")
	secret, link := filepath.Join(k.Dir, "secret"), filepath.Join(k.Dir, "pub", "d")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := errors.Join(os.Symlink("../secret", link), os.Chtimes(secret, long, long)); err != nil {
		t.Fatal(err)
	}
	denied := errors.New("denied")
	ctx := tool.WithPlace(t.Context(), func(_ string, within func(string) bool) error {
		if within("secret") {
			return denied
		}
		return nil
	})
	deps := toolkit.Deps{Files: k.Files, PatchForm: patch.API}
	for path, ok := range map[string]bool{"pub/d/new/deep/f": false, "pub/d/new": false, "pub/new/deep/f": true} {
		_, err := made(t, "apply_patch", deps).Run(ctx, tool.Call{Name: "apply_patch", Arguments: `{"type":"create_file","path":"` + path + `","diff":"+x"}`})
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "denied") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Stat(secret); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("the denied folder was changed: %v, %v", info.ModTime(), err)
	}
	if got := k.Content("pub/new/deep/f"); got != "x" && got != "x\n" {
		t.Errorf("the other file has %q", got)
	}
}

// A5: rules about folders hold for the files of a patch, although none of the arguments of the call is their path.
func TestRulesHoldForPatches(t *testing.T) {
	envelope := func(path string) string {
		return "*** Begin Patch\n*** Update File: " + path + "\n@@\n-old\n+new\n*** End Patch"
	}
	rule := func(verdict session.Verdict) session.Rule {
		return session.Rule{Verdict: verdict, Tool: "apply_*", Member: "path", Under: "secret"}
	}
	for name, c := range map[string]struct {
		rules  []session.Rule
		path   string
		person bool
		runs   bool
	}{
		"no rule":             {nil, "secret/f", false, true},
		"denied":              {[]session.Rule{rule(session.Deny)}, "secret/f", false, false},
		"denied by a person":  {[]session.Rule{rule(session.Deny)}, "secret/f", true, false},
		"elsewhere":           {[]session.Rule{rule(session.Deny), rule(session.Ask)}, "pub/f", false, true},
		"through a link":      {[]session.Rule{rule(session.Deny)}, "pub/d/f", false, false},
		"asked about nobody":  {[]session.Rule{rule(session.Ask)}, "secret/f", false, false},
		"asked about, a yes":  {[]session.Rule{rule(session.Ask)}, "secret/f", true, true},
		"another tool's rule": {[]session.Rule{{Verdict: session.Deny, Tool: "read_file", Member: "path", Under: "secret"}}, "secret/f", false, true},
	} {
		for _, form := range []patch.Form{patch.Custom, patch.Function} {
			k := kittest.New(t)
			k.Write("secret/f", "old\n")
			k.Write("pub/f", "old\n")
			k.Symlink("../secret", "pub/d")
			var call item.Item
			var err error
			if text := envelope(c.path); form == patch.Custom {
				call, err = item.New(&item.CustomToolCall{CallID: "c", Name: "apply_patch", Input: text})
			} else {
				call, err = item.New(&item.FunctionCall{CallID: "c", Name: "apply_patch", Arguments: kittest.JSON(t, kittest.Args{"input": text})})
			}
			if err != nil {
				t.Fatal(err)
			}
			a := &agent.Agent{
				Model:  agenttest.Script(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done"))),
				Tools:  []tool.Tool{made(t, "apply_patch", toolkit.Deps{Files: k.Files, PatchForm: form})},
				Policy: agent.Policy{Allow: []string{"apply_patch"}, Rules: c.rules},
			}
			if c.person {
				a.Policy.Allow, a.Policy.Approver = nil, func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
					return agent.Decision{Allow: true, Decided: session.DeciderPerson}, nil
				}
			}
			if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
				t.Fatal(err)
			}
			if ran := k.Content("secret/f")+k.Content("pub/f") != "old\nold\n"; ran != c.runs {
				t.Errorf("%s, %s: it ran: %v", name, form, ran)
			}
		}
	}
}
