// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// maxScript is the longest command line, in bytes, that is parsed.
const maxScript = 64 << 10

// script records all programs that a command line runs. It accepts only constructs
// that are known to be harmless; any other makes the command unclear.
func (q *inquiry) script(text, shell string) {
	if len(text) > maxScript {
		q.opaque("the command line is longer than %d bytes", maxScript)
		return
	}
	if q.depth++; q.depth > maxWrapping {
		q.opaque("commands within commands go too deep")
		return
	}
	defer func() {
		q.depth--
		if recover() != nil {
			q.opaque("the command line cannot be read")
		}
	}()
	if what := misreadable(text); what != "" {
		q.misread("%s", what)
	}
	// Only a shell called bash is known to parse as bash does. The others may be any
	// shell under that name: the ash of busybox knows $'…', and so may newer
	// versions of dash.
	langs := []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}
	if shell == "bash" {
		langs = langs[1:]
	}
	starts := []int{len(q.commands)}
	for _, lang := range langs {
		file, err := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		if err != nil {
			q.opaque("the command line cannot be read: %v", err)
			continue
		}
		if strangeComment(text, file) {
			q.misread("a # that may begin a comment or be a part of a word; put white space before it, or quote the word with it")
		}
		q.statements(file.Stmts)
		starts = append(starts, len(q.commands))
	}
	if len(starts) == 3 && slices.Equal(goals(q.commands[starts[0]:starts[1]], false), goals(q.commands[starts[1]:], false)) {
		for i := starts[1]; i < len(q.commands); i++ {
			q.commands[i].again = true
		}
	}
}

func (q *inquiry) statements(list []*syntax.Stmt) {
	for _, s := range list {
		q.statement(s)
	}
}

func (q *inquiry) statement(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if s.Coprocess || s.Disown {
		q.opaque("a coprocess")
	}
	for _, r := range s.Redirs {
		q.redirect(r)
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		q.call(c)
	case *syntax.BinaryCmd:
		q.statement(c.X)
		q.statement(c.Y)
	case *syntax.Block:
		q.statements(c.Stmts)
	case *syntax.Subshell:
		q.statements(c.Stmts)
	case *syntax.TimeClause:
		q.statement(c.Stmt)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			q.statements(c.Cond)
			q.statements(c.Then)
		}
	case *syntax.WhileClause:
		q.loops = true
		q.statements(c.Cond)
		q.statements(c.Do)
	case *syntax.ForClause:
		q.loop(c)
	case *syntax.CaseClause:
		q.word(c.Word)
		for _, item := range c.Items {
			for _, w := range item.Patterns {
				q.word(w)
			}
			q.statements(item.Stmts)
		}
	case *syntax.DeclClause:
		q.declaration(c)
	default:
		q.unread(c)
	}
}

// unread records a construct that is not understood. It still parses the commands
// inside, for the rules that deny.
func (q *inquiry) unread(n syntax.Node) {
	q.opaque("%s", kindOfNode(n))
	q.loops = true
	syntax.Walk(n, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if ok {
			q.statement(s)
		}
		return !ok
	})
}

// kindOfNode describes a construct for a reason.
func kindOfNode(n syntax.Node) string {
	switch n.(type) {
	case *syntax.FuncDecl:
		return "it defines a function"
	case *syntax.CmdSubst:
		return "a command in backquotes; $(…) can be read"
	case *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause, *syntax.CStyleLoop:
		return "it computes, which can run what a variable holds"
	}
	return "a part of the shell's language that is not looked into"
}

func (q *inquiry) loop(c *syntax.ForClause) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select {
		q.unread(c)
		return
	}
	q.loops = true
	q.variable(iter.Name.Value)
	for _, w := range iter.Items {
		q.word(w)
	}
	q.statements(c.Do)
}

// redirect accepts input, joined streams and discarded output. A file that is
// written to keeps a rule from allowing the command.
func (q *inquiry) redirect(r *syntax.Redirect) {
	to := q.word(r.Word)
	if r.Hdoc != nil {
		q.parts(r.Hdoc.Parts, true)
	}
	switch {
	case r.N == nil:
	case strings.Trim(r.N.Value, "0123456789") != "":
		q.opaque("a redirection sets a variable")
	case len(r.N.Value) > 1:
		q.misread("the number before %s is an argument to some shells", r.Op)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if !plainMark.MatchString(to.text) {
			q.misread("the word %s, which ends a here-document; take one of letters and digits, such as EOF", wording.Clipped(to.text))
		}
		return
	case syntax.WordHdoc:
		return
	case syntax.RdrIn:
		if !to.unknown && !strings.HasPrefix(to.text, "/dev/") || to.text == "/dev/null" {
			return
		}
	case syntax.DplIn, syntax.DplOut:
		if !to.unknown && duplicated.MatchString(to.text) {
			return
		}
		if strings.Trim(to.text[:min(1, len(to.text))], "0123456789-!|") == "" && (to.text != "" || !to.unknown) {
			q.misread("what follows %s%s is a program to some shells", r.Op, wording.Clipped(to.text))
		}
		if to.unknown && !to.number || !to.unknown && !plainFile.MatchString(to.text) {
			q.misread("the name of a file behind %s, which bash expands a second time; write it behind >, and 2>&1", r.Op)
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		if !to.unknown && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, to.text) {
			return
		}
	}
	if strings.HasPrefix(to.text, "!") {
		q.misread("a redirection to a name that begins with !, which is part of the operator to zsh")
	}
	if r.Op != syntax.RdrIn {
		q.written = append(q.written, to)
	}
	if to.unknown {
		to.text = "what is only known when it runs"
	}
	q.taint("it is redirected (%s %s)", r.Op, wording.Clipped(to.text))
}

// plainMark matches words at which all shells and the parser end a here-document
// in the same way. If a word begins with a letter beyond ASCII, the parser misses
// its first line and treats the commands after it as text.
var plainMark = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_ .-]*$`)

// duplicated matches the streams that one may be joined with, or nothing.
var duplicated = lazyregexp.New(`^([0-9]|-|[0-9]-)$`)

// plainName matches variables that matter only to the command line. The names
// of variables that programs read are in capitals.
var plainName = lazyregexp.New(`^[a-z_][a-z0-9_]*$`)

// variable records that a shell variable is set.
func (q *inquiry) variable(name string) {
	if slices.Contains(sizeNames, name) {
		q.opaque("mksh computes what the variable %s holds, unless it is a number", name)
	}
	if !plainName.MatchString(name) || strings.HasSuffix(name, "_proxy") {
		q.sets(name)
	}
}

func (q *inquiry) assign(a *syntax.Assign, exported bool) {
	value := word{number: true} // or nothing
	if a.Value != nil {
		value = q.word(a.Value)
	}
	switch {
	case a.Name == nil || a.Index != nil || a.Array != nil:
		q.opaque("an assignment to what is only known when it runs")
	case slices.Contains(sizeNames, a.Name.Value) && isDigits(value):
	case exported && !slices.Contains(sizeNames, a.Name.Value):
		q.sets(a.Name.Value)
	default:
		q.variable(a.Name.Value)
	}
}

func (q *inquiry) declaration(c *syntax.DeclClause) {
	if c.Variant.Value != "export" && c.Variant.Value != "readonly" && c.Variant.Value != "local" {
		q.opaque("%s is not looked into", c.Variant.Value)
	}
	for _, a := range c.Args {
		q.assign(a, true)
	}
}

// call records a simple command.
func (q *inquiry) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		q.assign(a, len(c.Args) > 0)
	}
	var s simple
	for i, w := range c.Args {
		s.words = append(s.words, q.word(w))
		if lit, ok := oneLit(w.Parts); i > 0 && ok && lit == "[[" {
			q.misread("the word [[ as an argument, behind which busybox reads && and || as texts")
		}
		if i > 0 {
			continue
		}
		if !plainLetters(w) {
			q.misread("letters beyond ASCII, which some shells take for the name of a variable")
		}
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "!") {
			q.misread("a program's name that begins with !, which zsh takes for an operator behind &")
		}
		if lit, ok := oneLit(w.Parts); ok && lit != ":" && strings.HasSuffix(lit, ":") {
			q.misread("a program's name that ends with a colon, which ksh93 takes for a label")
		}
	}
	q.shellCommand(s)
}

// plainLetters reports whether the unquoted text of a word is ASCII.
func plainLetters(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return ok && strings.ContainsFunc(lit.Value, func(r rune) bool { return r >= utf8.RuneSelf })
	})
}

// shellCommand records a command that a shell runs: a builtin or a program.
func (q *inquiry) shellCommand(c simple) {
	if len(c.words) == 0 {
		return
	}
	name := c.words[0]
	w, wraps := shellWrappers[name.text]
	switch {
	case name.unknown:
		q.command(c)
	case wraps:
		q.wrappedByShell(c, w)
	case slices.Contains(evaluating, name.text) || strings.HasPrefix(name.text, "-"):
		q.opaque("%s is not looked into", name.text)
		q.evaluated(c)
	default:
		c.neutral = q.builtin(name.text, c.words[1:])
		q.command(c)
	}
}

// wrappedByShell looks through command and exec, which find a program in the same
// way as the shell does.
func (q *inquiry) wrappedByShell(c simple, w wrapping) {
	inner, ok := q.unwrap(c, w)
	if c.words[0].text == "exec" && len(c.words) > 1 && strings.HasPrefix(c.words[1].text, "-") {
		q.misread("options of exec: after -a, busybox runs the name instead of the program")
	}
	c.neutral = true // any problem with it has been recorded
	q.commands = append(q.commands, c)
	if q.depth++; q.depth > maxWrapping {
		q.opaque("commands within commands go too deep")
	} else if ok {
		q.shellCommand(inner)
	}
	q.depth--
}

// evaluated parses the text of an eval, for the rules that deny.
func (q *inquiry) evaluated(c simple) {
	var texts []string
	for _, w := range c.words[1:] {
		if w.unknown {
			return
		}
		texts = append(texts, w.text)
	}
	q.commands = append(q.commands, c)
	if c.words[0].text == "eval" {
		q.script(strings.Join(texts, " "), "sh")
	}
}

// word returns the value of a word, and records what its expansions run.
func (q *inquiry) word(w *syntax.Word) word {
	if w == nil {
		return word{unknown: true, many: true}
	}
	out := q.parts(w.Parts, false)
	out.number = isNumber(w.Parts)
	return out
}

func (q *inquiry) parts(parts []syntax.WordPart, quoted bool) word {
	var b strings.Builder
	var out word
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !quoted && i > 0 && strings.HasPrefix(p.Value, "{") {
				q.misread("a brace behind an expansion or a quote, as in $${, which zsh reads as the beginning of an expansion")
			}
			text, ok := literal(p.Value, quoted, i == 0)
			b.WriteString(text)
			ok = ok && (i == len(parts)-1 || !endsInDollar(p.Value)) // zsh takes what follows for an expansion
			out.unknown = out.unknown || !ok
			out.many = out.many || !ok
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
			out.unknown = out.unknown || p.Dollar
		case *syntax.DblQuoted:
			in := q.parts(p.Parts, true)
			b.WriteString(in.text)
			out.unknown = out.unknown || in.unknown || p.Dollar
			out.many = out.many || in.many
		default:
			out.unknown = true
			out.many = out.many || !quoted || severalWords(p)
			if exp, ok := p.(*syntax.ParamExp); ok && quoted && exp.Exp != nil && singleQuotes(exp.Exp.Word) {
				q.misread("quotes in an expansion that stands in quotes or a here-document, where they do not quote")
			}
			q.expansion(part)
		}
	}
	if out.text = b.String(); !quoted && braces(parts) {
		out.unknown, out.many = true, true
	}
	return out
}

// singleQuotes reports whether a word contains single quotes outside of command
// substitutions.
func singleQuotes(w *syntax.Word) (found bool) {
	if w == nil {
		return false
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.SglQuoted:
			found = true
		case *syntax.CmdSubst:
			return false
		}
		return true
	})
	return found
}

func endsInDollar(text string) bool {
	return strings.HasSuffix(text, "$") && !strings.HasSuffix(text, `\$`)
}

// severalWords reports whether a quoted expansion may become more or fewer words
// than one, as "$@" can.
func severalWords(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.CmdSubst:
		return false
	case *syntax.ParamExp:
		return p.Param == nil || !plainName.MatchString(p.Param.Value) || p.Index != nil || p.Excl || p.Exp != nil
	}
	return true
}

// isNumber reports whether a word is one of the shell's own numbers, such as $?.
func isNumber(parts []syntax.WordPart) bool {
	if len(parts) == 1 {
		if in, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = in.Parts
		}
	}
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	return ok && p.Short && p.Param != nil && slices.Contains([]string{"?", "#", "!", "$"}, p.Param.Value)
}

// braces reports whether a word may become several by brace expansion, as {a,b}
// and {1..3} do. Parts of it may be quoted.
func braces(parts []syntax.WordPart) bool {
	for _, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") && len(parts) > 1 {
			return true
		}
	}
	lit, ok := oneLit(parts)
	return ok && strings.Contains(lit, "{") && lit != "{}" && lit != "{" && strings.ContainsAny(lit, ",.")
}

func oneLit(parts []syntax.WordPart) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	lit, ok := parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

// literal removes the backslashes from a text, and reports whether the text is
// literal: no file pattern, home directory or control character.
func literal(text string, quoted, first bool) (string, bool) {
	var b strings.Builder
	sure := quoted || !(first && strings.HasPrefix(text, "~") || strings.Contains(text, "=~") || strings.Contains(text, ":~"))
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '\\' && i+1 < len(text):
			i++
			if next := text[i]; quoted && !strings.ContainsRune("$`\"\\\n", rune(next)) {
				b.WriteByte('\\')
			} else if next == '\n' {
				continue
			}
			b.WriteByte(text[i])
		case !quoted && strings.IndexByte("*?[", ch) >= 0 && text != "[":
			sure = false
			b.WriteByte(ch)
		case ch == '$' && i+1 < len(text): // zsh takes $^x and the like for expansions
			sure = false
			b.WriteByte(ch)
		default:
			sure = sure && (ch >= ' ' && ch != 0x7f || ch == '\n' || ch == '\t')
			b.WriteByte(ch)
		}
	}
	return b.String(), sure
}

// expansion records what an expansion runs.
func (q *inquiry) expansion(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		q.parameter(p)
	case *syntax.CmdSubst:
		if p.Backquotes || p.TempFile || p.ReplyVar {
			q.unread(p)
			return
		}
		q.statements(p.Stmts)
	case *syntax.ProcSubst:
		q.statements(p.Stmts)
	case *syntax.ExtGlob:
		if strings.ContainsAny(p.Pattern.Value, "$`<>") {
			q.unread(p)
		}
	default:
		q.unread(part)
	}
}

// parameter accepts $x, ${x} and ${x:-word}. Other forms can run the content of a
// variable.
func (q *inquiry) parameter(p *syntax.ParamExp) {
	plain := syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param, Length: p.Length}
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
			syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			if p.Exp.Word != nil {
				q.word(p.Exp.Word)
			}
			plain.Exp = p.Exp
		}
	}
	if p.Param == nil || !sameParameter(plain, *p) {
		q.unread(p)
	}
}

func sameParameter(a, b syntax.ParamExp) bool {
	return a.Exp == b.Exp && b.Flags == nil && !b.Excl && !b.Width && !b.IsSet && b.Split == a.Split && b.GlobSubst == a.GlobSubst && b.RcExpand == a.RcExpand &&
		b.NestedParam == nil && b.Index == nil && len(b.Modifiers) == 0 && b.Slice == nil && b.Repl == nil && b.Names == 0
}
