// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"io"
	"regexp"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

// An ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	folder  string // folder that contains the file, relative to the root
	pattern *regexp.Regexp
	keep    bool // the line begins with !
	folders bool // the line ends with / and matches only folders
}

const (
	maxIgnoreBytes = 64 << 10
	maxIgnoreRules = 1000
)

// ignoreRules adds the rules of a folder to those of the folders above it. If its
// file cannot be read, it adds none.
func ignoreRules(above []ignoreRule, folder files.Place) []ignoreRule {
	file, _, err := folder.Entry(".gitignore").Open("read")
	if err != nil {
		return above
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreBytes))
	if err != nil {
		return above
	}
	rules := above[:len(above):len(above)]
	for line := range strings.Lines(string(text)) {
		if r, ok := parseIgnore(folder.Rel, line); ok && len(rules) < maxIgnoreRules {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseIgnore(folder, line string) (ignoreRule, bool) {
	line = strings.TrimRight(line, "\r\n")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = strings.TrimSuffix(line, " ")
	}
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false
	}
	r := ignoreRule{folder: folder}
	line, r.keep = strings.CutPrefix(line, "!")
	line, r.folders = strings.CutSuffix(line, "/")
	anywhere := !strings.Contains(line, "/")
	expression := ignoreExpression(strings.TrimPrefix(line, "/"))
	if anywhere {
		expression = "(?:.*/)?" + expression
	}
	var err error
	r.pattern, err = regexp.Compile("(?s)^" + expression + "$")
	return r, err == nil && line != ""
}

// ignoreExpression converts a .gitignore pattern to a regular expression.
func ignoreExpression(pattern string) string {
	var b strings.Builder
	for pattern != "" {
		rest := pattern[1:]
		switch c := pattern[0]; {
		case strings.HasPrefix(pattern, "**/") && (b.Len() == 0 || strings.HasSuffix(b.String(), "/")):
			b.WriteString("(?:.*/)?")
			rest = pattern[3:]
		case pattern == "**" && strings.HasSuffix(b.String(), "/"):
			b.WriteString(".*")
			rest = ""
		case c == '*':
			b.WriteString("[^/]*")
			rest = strings.TrimLeft(rest, "*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && strings.IndexByte(rest, ']') > 0:
			class, behind, _ := strings.Cut(rest, "]")
			if negated, ok := strings.CutPrefix(class, "!"); ok {
				class = "^" + negated
			}
			b.WriteString("[" + strings.ReplaceAll(class, "[", `\[`) + "]")
			rest = behind
		case c == '\\' && rest != "":
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		default:
			b.WriteString(regexp.QuoteMeta(pattern[:1]))
		}
		pattern = rest
	}
	return b.String()
}

// ignored reports whether an entry is left out. The last rule that matches the
// entry decides.
func ignored(rules []ignoreRule, p files.Place, folder bool) bool {
	out := false
	for _, r := range rules {
		rel := p.Rel
		if r.folder != "." {
			rel = strings.TrimPrefix(rel, r.folder+"/")
		}
		if (folder || !r.folders) && r.pattern.MatchString(rel) {
			out = !r.keep
		}
	}
	return out
}

// ignoreAbove returns the rules that the folders above a folder impose on it.
func ignoreAbove(folder files.Place) (rules []ignoreRule) {
	var above []files.Place
	for p := folder; p.Rel != "."; {
		p = p.Parent()
		above = append(above, p)
	}
	for i := len(above) - 1; i >= 0; i-- {
		rules = ignoreRules(rules, above[i])
	}
	return rules
}
