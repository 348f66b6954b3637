// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// language says what the highlighter knows of a language: enough to colour comments, texts,
// numbers and keywords, line by line.
type language struct {
	line        []string // what begins a comment
	open, close string   // a comment of several lines
	quotes      string   // what begins and ends a text
	long        []string // what begins and ends a text of several lines
	words       map[string]bool
}

// coder highlights the lines of a code block.
type coder struct {
	language *language
	inside   string // what ends the comment or text that the line begins in, or ""
	style    string
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// languages are made when the first code block of one begins.
var languages = []struct {
	names string
	make  func() *language
}{
	{"go golang", func() *language {
		return &language{line: []string{"//"}, open: "/*", close: "*/", quotes: `"'`, long: []string{"`"}, words: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false")}
	}},
	{"js javascript ts typescript jsx tsx java c h cpp c++ cc cs csharp rust rs kotlin kt swift scala php dart zig json jsonc proto", func() *language {
		return &language{line: []string{"//"}, open: "/*", close: "*/", quotes: `"'`, long: []string{"`"}, words: words("abstract as async await auto bool boolean break case catch char class const constexpr continue crate debugger default delete do double else enum export extends extern false final finally float fn for from func function if impl implements import in inline instanceof int interface let long loop match mod move mut namespace new null nullptr of override package private protected pub public ref return self short signed sizeof static struct super switch template this throw throws trait true try type typedef typeof undefined union unsafe unsigned use using val var virtual void volatile where while with yield message service rpc")}
	}},
	{"py python", func() *language {
		return &language{line: []string{"#"}, quotes: `"'`, long: []string{`"""`, `'''`}, words: words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield")}
	}},
	{"sh bash zsh shell console fish make makefile dockerfile", func() *language {
		return &language{line: []string{"#"}, quotes: `"'`, words: words("case do done elif else esac exit export fi for function if in local return set then until while FROM RUN COPY CMD ENTRYPOINT ENV WORKDIR ARG")}
	}},
	{"yaml yml toml ini conf ruby rb perl pl r elixir ex", func() *language {
		return &language{line: []string{"#"}, quotes: `"'`, words: words("true false null nil yes no begin class def do else elsif end ensure if module my next require rescue return self sub unless until use when while yield")}
	}},
	{"sql", func() *language {
		return &language{line: []string{"--"}, open: "/*", close: "*/", quotes: `'"`, words: words("select from where insert into values update set delete create table index view drop alter add join left right inner outer on as and or not null is in exists group by order having limit offset union all distinct primary key foreign references default constraint begin commit rollback case when then else end with returning SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER ADD JOIN LEFT RIGHT INNER OUTER ON AS AND OR NOT NULL IS IN EXISTS GROUP BY ORDER HAVING LIMIT OFFSET UNION ALL DISTINCT PRIMARY KEY FOREIGN REFERENCES DEFAULT CONSTRAINT BEGIN COMMIT ROLLBACK CASE WHEN THEN ELSE END WITH RETURNING")}
	}},
	{"html xml svg", func() *language { return &language{open: "<!--", close: "-->", quotes: `"'`} }},
	{"css scss", func() *language { return &language{open: "/*", close: "*/", quotes: `"'`} }},
	{"lua haskell hs", func() *language {
		return &language{line: []string{"--"}, quotes: `"'`, words: words("and break do else elseif end false for function if in local nil not or repeat return then true until while module where import data type class instance let of case deriving")}
	}},
}

// languageOf returns what is known of the language that an info string names, or nil.
func languageOf(info string) *language {
	name, _, _ := strings.Cut(strings.TrimSpace(strings.ToLower(info)), " ")
	if name == "" {
		return nil
	}
	for _, l := range languages {
		for known := range strings.FieldsSeq(l.names) {
			if known == name {
				return l.make()
			}
		}
	}
	return nil
}

// highlight styles a line. Without the styles it is the same line.
func (c *coder) highlight(line string) string {
	l := c.language
	if l == nil {
		return line
	}
	var b strings.Builder
	for line != "" {
		style, n := "", 0
		switch {
		case c.inside != "":
			style, n = c.style, len(line)
			if end := strings.Index(line, c.inside); end >= 0 {
				n = end + len(c.inside)
				c.inside = ""
			}
		default:
			style, n = c.token(line)
		}
		if style != "" {
			b.WriteString("\x1b[" + style + "m" + line[:n] + reset)
		} else {
			b.WriteString(line[:n])
		}
		line = line[n:]
	}
	return b.String()
}

// token returns the style and the length of what a line begins with.
func (c *coder) token(line string) (style string, n int) {
	l := c.language
	for _, mark := range l.line {
		if strings.HasPrefix(line, mark) {
			return dim, len(line)
		}
	}
	if l.open != "" && strings.HasPrefix(line, l.open) {
		c.inside, c.style = l.close, dim
		return dim, len(l.open)
	}
	for _, mark := range l.long {
		if strings.HasPrefix(line, mark) {
			c.inside, c.style = mark, green
			return green, len(mark)
		}
	}
	r, size := utf8.DecodeRuneInString(line)
	switch {
	case strings.ContainsRune(l.quotes, r):
		for i := size; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case line[0]:
				return green, i + 1
			}
		}
		return "", size // an apostrophe
	case unicode.IsLetter(r) || r == '_':
		end := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
		if end < 0 {
			end = len(line)
		}
		if l.words[line[:end]] {
			return magenta, end
		}
		return "", end
	case unicode.IsDigit(r):
		end := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '_' })
		if end < 0 {
			end = len(line)
		}
		return yellow, end
	}
	return "", size
}
