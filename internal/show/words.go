// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file renders items, outputs, verdicts and sizes as text, and removes control
// sequences from foreign text.

// InWords returns the text of an item for people, with markers for images and files.
func InWords(it item.Item) string {
	switch {
	case it.Type() == item.TypeMessage:
		if m, err := item.As[item.Message](it); err == nil {
			return m.Content.Display()
		}
	case it.Type() == item.TypeReasoning:
		if r, err := item.As[item.Reasoning](it); err == nil {
			return summaryOf(r)
		}
	case it.IsOutput():
		if c, err := outputContent(it); err == nil {
			return c.Display()
		}
	case it.IsCall() && it.Name() != "":
		arguments, ok := it.Member("arguments")
		if !ok {
			arguments, _ = it.Member("input")
		}
		text, _ := arguments.Unquote()
		return it.Name() + " " + text
	case it.IsCall():
		return hostedCall(it)
	case it.Type() == "antiphon:checkout":
		return checkoutInWords(it)
	}
	return it.String()
}

// checkoutInWords describes the note of a worker about the files of a session.
func checkoutInWords(it item.Item) string {
	text := func(name string) string {
		value, _ := it.Member(name)
		s, _ := value.Unquote()
		return s
	}
	commit := text("commit")
	about := "the files of " + text("repository") + " at " + commit[:min(12, len(commit))]
	if text("patch") != "" {
		about += ", with changes"
	}
	return about
}

// hostedCall returns the request of a call of the API's own tools.
func hostedCall(it item.Item) string {
	body, _ := it.Decode()
	switch c := body.(type) {
	case *item.ShellCall:
		if c.Action != nil {
			return "shell " + strings.Join(c.Action.Commands, "\n")
		}
	case *item.LocalShellCall:
		if c.Action != nil {
			return "local_shell " + strings.Join(c.Action.Command, " ")
		}
	case *item.ApplyPatchCall:
		if c.Operation != nil {
			return "apply_patch " + c.Operation.Type + " " + c.Operation.Path
		}
	}
	return it.String()
}

// summaryOf returns the readable text of a reasoning item.
func summaryOf(r *item.Reasoning) string {
	if text := (item.Content{Parts: r.Summary}).Display(); text != "" {
		return text
	}
	return "(encrypted, or without a summary)"
}

// setupInWords describes a setup, on one line or in full.
func setupInWords(s *session.Setup, full bool) string {
	text := s.String()
	if len(s.Tools) > 0 {
		text += ", " + Plural(len(s.Tools), "tool")
	}
	if len(s.Files) > 0 {
		text += ", " + s.Files[0].Name
	}
	if s.Program != "" {
		text += ", " + s.Program
	}
	if !full {
		return text
	}
	for name, value := range s.Details() {
		text += "\n" + name + " " + value
	}
	return text
}

// turnInWords describes how a turn with the given setup ended.
func turnInWords(b session.TurnEnded, setup *session.Setup, full bool) string {
	text := b.Status
	if b.Model != "" && b.Model != setup.Model && !setup.Rehearsal {
		text += ", by " + b.Model
	}
	if b.Setup != nil {
		text += ", a hook sent the request to " + b.Setup.String()
	}
	if b.ServiceTier != "" && b.ServiceTier != "default" {
		text += ", service tier " + b.ServiceTier
	}
	if full && b.RequestID != "" {
		text += ", request " + b.RequestID
	}
	if b.Usage != nil {
		text += fmt.Sprintf(", %d tokens (%d in, %d cached, %d out)", b.Usage.TotalTokens, b.Usage.InputTokens, b.Usage.Cached(), b.Usage.OutputTokens)
	}
	return text + Colon(b.Reason)
}

// behind returns the rest of a text after a prefix, and reports whether the text has
// the prefix, ignoring white space.
func behind(text, beginning string) (rest string, ok bool) {
	at := 0
	for _, word := range strings.Fields(beginning) {
		for _, r := range word {
			next := strings.TrimLeftFunc(text[at:], unicode.IsSpace)
			if !strings.HasPrefix(next, string(r)) {
				return "", false
			}
			at = len(text) - len(next) + len(string(r))
		}
	}
	return text[at:], at > 0
}

// entriesOf returns a text that names entries.
func entriesOf(seqs []int64) string {
	var list []string
	for _, seq := range seqs {
		list = append(list, strconv.FormatInt(seq, 10))
	}
	if len(list) == 1 {
		return "entry " + list[0]
	}
	return "entries " + strings.Join(list, ", ")
}

// VerdictOf says how a question about a call was decided, by whom, and why.
func VerdictOf(b session.Approval) string {
	word := "refused"
	if b.Allowed {
		word = "allowed"
	}
	if b.Decided == session.DeciderUnanswered {
		word = "unanswered"
	}
	word += session.DecidedBy(b.By, b.From, b.Rule)
	if b.Edited != "" {
		word += " with other arguments: " + b.Edited
	}
	return word + Colon(b.Reason)
}

// Colon puts a text after a colon, if there is one.
func Colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// sizeOf returns the size of an output as text.
func sizeOf(out item.Item) string {
	content, err := outputContent(out)
	if err != nil {
		return ""
	}
	if content.IsText() {
		return fmt.Sprintf("%d bytes of text", len(content.Text))
	}
	counts := map[string]int{}
	var order []string
	for _, part := range content.Parts {
		kind := strings.TrimPrefix(part.PartType(), "input_")
		if counts[kind]++; counts[kind] == 1 {
			order = append(order, kind)
		}
	}
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(order, ", ")
}

func outputContent(out item.Item) (item.Content, error) {
	body, err := out.Decode()
	switch o := body.(type) {
	case *item.FunctionCallOutput:
		return o.Output, err
	case *item.CustomToolCallOutput:
		return o.Output, err
	case *item.LocalShellCallOutput:
		return item.Text(o.Output), err
	case *item.ApplyPatchCallOutput:
		return item.Text(o.Output), err
	case *item.ShellCallOutput:
		return item.Text(shellText(o.Output)), err
	}
	return item.Content{}, cmp.Or(err, fmt.Errorf("%s has no text", out.Type()))
}

// shellText returns the output of commands, and how they ended unless all succeeded.
func shellText(outputs []item.ShellOutput) string {
	var b strings.Builder
	line := func(text string) {
		if b.WriteString(text); text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
	}
	for _, o := range outputs {
		line(o.Stdout)
		line(o.Stderr)
		switch end := o.Outcome; {
		case end == nil:
		case end.ExitCode == nil:
			line("(" + end.Type + ")")
		case *end.ExitCode != 0:
			line(fmt.Sprintf("(exit code %d)", *end.ExitCode))
		}
	}
	return b.String()
}

// Tokens are token counts as reported by the endpoint. Programs read them as JSON.
type Tokens struct {
	Input  int64 `json:"input"`
	Cached int64 `json:"cached"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// UsedText describes the usage, including subagents, and the cost if prices are
// known.
func UsedText(all, nested agent.Usage, own Tokens) string {
	text := ""
	if all.Tokens > 0 {
		text = fmt.Sprintf(", %d tokens (%d in, %d cached, %d out", all.Tokens, own.Input, own.Cached, own.Output)
		if nested.Tokens > 0 {
			text += fmt.Sprintf(", %d in %s of subagents", nested.Tokens, Plural(nested.Turns, "turn"))
		}
		text += ")"
	}
	if all.Cost > 0 {
		text += ", cost " + excerpt.Number(all.Cost)
	}
	return text
}

// leftOut says how much of an output the model does not get.
func leftOut(p agent.Progress) string {
	switch {
	case p.LeftOut == 0 || p.Tool == tool.ReadOutputName: // a page of a stored output
		return ""
	case len(p.Kept) == 0:
		return fmt.Sprintf(", %d bytes were left out and not kept", p.LeftOut)
	}
	return fmt.Sprintf(", %d bytes were left out and are kept", p.LeftOut)
}

// FailureOf returns the reason, from its output, why a call failed without running a
// tool.
func FailureOf(out item.Item) string {
	content, err := outputContent(out)
	if err != nil {
		return ""
	}
	text := content.Display()
	if _, blocks, ok := strings.Cut(text, "\n\nerror:\n"); ok && strings.HasPrefix(text, "status:\n") { // see output.Envelope
		text, _, _ = strings.Cut(blocks, "\n\noutput:\n")
	}
	return text
}

// Shorten returns foreign text as one line of at most limit characters, with control characters
// as in [Printable].
func Shorten(s string, limit int) string {
	if most := 4 * limit; len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' || r == '\u0085' }), " ")
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit-1]) + "…"
	}
	return Printable(s)
}

// Printable returns foreign text with control characters, except line ends and tabs, and with those
// that reorder text as their numbers: a terminal does not obey them, and the person sees them.
func Printable(s string) string {
	return Numbered(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || Reorders(r)
	})
}

// Numbered returns a text with some characters as numbers, such as <U+202E>.
func Numbered(text string, some func(rune) bool) string {
	if !strings.ContainsFunc(text, some) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if some(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Unbroken returns a text with foreign parts as one line, so that no foreign part can
// begin a line that looks like the program's own. Indented lines, which are a list, are separated by semicolons.
func Unbroken(s string) string {
	var b strings.Builder
	listed := false
	for i, line := range strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(s), "\n") {
		text := strings.TrimLeft(line, " ")
		indented := len(text) < len(line)
		if i > 0 && listed && indented {
			b.WriteString(";")
		}
		if i > 0 {
			line = " " + text
		}
		b.WriteString(line)
		listed = i > 0 && indented
	}
	return Printable(b.String())
}

// Reorders reports whether a character changes the order or look of text around it.
func Reorders(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Duration returns a time with a precision that fits its length.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// Plural returns a number with a noun, which is given in the singular.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, manyOf(noun))
}

// manyOf returns a noun's plural.
func manyOf(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return stem + "ries"
	}
	return noun + "s"
}

// newest returns the end of a long thought, whose beginning was already shown.
func newest(thought string) string {
	const most = 40
	words := []rune(strings.TrimRight(thought, " "))
	if len(words) <= most {
		return thought
	}
	return "… " + string(words[len(words)-most:])
}

// WithoutLineEnd returns the text without its last line end.
func WithoutLineEnd(text string) string {
	if line, ok := strings.CutSuffix(text, "\r\n"); ok {
		return line
	}
	return strings.TrimSuffix(text, "\n")
}
