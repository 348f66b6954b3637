// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// CheckRules returns an error for the first rule that means nothing.
func CheckRules(rules ...session.Rule) error {
	for _, r := range rules {
		problem := ""
		switch {
		case r.Verdict != session.Allow && r.Verdict != session.Ask && r.Verdict != session.Deny:
			problem = fmt.Sprintf("verdict %q: want allow, ask or deny", r.Verdict)
		case r.Tool == "":
			problem = "it names no tool"
		case len(r.Prefix) > 0 && r.Under != "":
			problem = "it has both prefix and under"
		case r.Member == "" && (len(r.Prefix) > 0 || r.Under != ""):
			problem = "it does not name the member that its prefix is of"
		case r.Member != "" && len(r.Prefix) == 0 && r.Under == "":
			problem = fmt.Sprintf("it does not say how member %q begins", r.Member)
		}
		if _, err := path.Match(r.Tool, ""); err != nil {
			problem = fmt.Sprintf("tool %q: %v", r.Tool, err)
		}
		if problem != "" {
			return fmt.Errorf("rule %q for tool %q: %s", r.Verdict, r.Tool, problem)
		}
	}
	return nil
}

// covers reports whether a rule is about a call. What cannot be read of the
// arguments is not covered by a rule about them; a call with such arguments is
// not run by any tool that checks them.
func covers(r session.Rule, call tool.Call) bool {
	if !matches([]string{r.Tool}, call.Name) {
		return false
	}
	if r.Member == "" {
		return true
	}
	value, ok := argument(call, r.Member)
	if !ok {
		return false
	}
	if r.Under != "" {
		var p string
		return json.Unmarshal(value, &p) == nil && under(p, r.Under)
	}
	var words []string
	return json.Unmarshal(value, &words) == nil && len(words) >= len(r.Prefix) && slices.Equal(words[:len(r.Prefix)], r.Prefix)
}

// argument returns a member of a call's arguments. One whose name differs from
// another's in the case of letters only is not told apart by every tool, so
// then there is none.
func argument(call tool.Call, name string) (jsontext.Value, bool) {
	var members map[string]jsontext.Value
	if call.Custom || json.Unmarshal([]byte(call.Arguments), &members) != nil {
		return nil, false
	}
	for other := range members {
		if other != name && strings.EqualFold(other, name) {
			return nil, false
		}
	}
	value, ok := members[name]
	return value, ok
}

// under reports whether a path is the folder or below it, segment by segment.
// A path that climbs is below nothing.
func under(p, folder string) bool {
	p, folder = path.Clean(strings.ReplaceAll(p, `\`, "/")), path.Clean(folder)
	if p == ".." || strings.HasPrefix(p, "../") {
		return false
	}
	switch folder {
	case ".":
		return !path.IsAbs(p)
	case "/":
		return path.IsAbs(p)
	}
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// Suggest returns rules that an answer about a call could leave behind, the
// narrowest first: calls whose command begins alike or whose path is in the same
// folder, and all calls of the tool. Their verdict is allow.
//
// A tool can know better: see [Suggester].
func Suggest(call tool.Call) []session.Rule {
	rule := session.Rule{Verdict: session.Allow, Tool: call.Name}
	var list []session.Rule
	for _, name := range []string{"argv", "command"} {
		var words []string
		if v, ok := argument(call, name); ok && json.Unmarshal(v, &words) == nil && len(words) > 0 {
			n := 1
			if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
				n = 2
			}
			r := rule
			r.Member, r.Prefix = name, words[:n]
			list = append(list, r)
		}
	}
	var p string
	if v, ok := argument(call, "path"); ok && json.Unmarshal(v, &p) == nil && p != "" {
		r := rule
		r.Member, r.Under = "path", path.Dir(path.Clean(p))
		if under(p, r.Under) {
			list = append(list, r)
		}
	}
	return append(list, rule)
}

// Suggester is implemented by a tool that knows which rules an answer about one
// of its calls could leave behind; nil for none but the one about all its calls.
type Suggester interface {
	tool.Tool
	Suggest(call tool.Call) []session.Rule
}

// suggest asks the tool, if it knows.
func suggest(t tool.Tool, call tool.Call) []session.Rule {
	s, ok := t.(Suggester)
	if !ok {
		return Suggest(call)
	}
	return append(slices.Clip(s.Suggest(call)), session.Rule{Verdict: session.Allow, Tool: call.Name})
}
