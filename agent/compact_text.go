// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
)

// transcript renders items as text to be summarized, each as a separate block.
// Markers replace images, files and any base64, which would cost many tokens and
// tell the summarizing model nothing.
func transcript(items []item.Item) []string {
	names := map[string]string{}
	var blocks []string
	for _, it := range items {
		if b := block(it, names); b != "" {
			blocks = append(blocks, withoutBase64(item.ShowHeld(b))+"\n\n")
		}
	}
	return blocks
}

// block renders one item, "" for an item without text. names maps the ids of calls to
// the names of tools.
func block(it item.Item, names map[string]string) string {
	if content, ok := plan.ContentOf(it); ok {
		if it.IsOutput() {
			return fmt.Sprintf("[output of %s]\n%s", cmp.Or(names[it.CallID()], "a call"), content.Display())
		}
		return fmt.Sprintf("[%s]\n%s", it.Role(), content.Display())
	}
	switch it.Type() {
	case item.TypeReasoning:
		v, err := item.As[item.Reasoning](it)
		if err != nil || len(v.Summary) == 0 {
			return ""
		}
		return "[the assistant's thoughts, in short]\n" + item.Parts(v.Summary...).Display()
	case item.TypeCompaction:
		return "[something that only the endpoint can read]"
	}
	if it.IsCall() {
		name, with := plan.CalledBy(it)
		// The output comes later and names only the call's id.
		names[it.CallID()] = name
		arguments, quoted := with.Unquote()
		if !quoted {
			arguments = string(with)
		}
		return fmt.Sprintf("[call of %s]\n%s", name, arguments)
	}
	return fmt.Sprintf("[%s]", it.Type())
}

// Shortest run of base64 that is not considered text, after the head of a data URI
// and elsewhere.
const (
	leastInURI  = 64
	leastBase64 = 512
)

// withoutBase64 replaces long base64 in a text with a remark.
func withoutBase64(s string) string {
	var out strings.Builder
	last := 0
	for i := 0; i < len(s); {
		n := base64Run(s[i:])
		least := leastBase64
		if strings.HasSuffix(s[:i], ";base64,") {
			least = leastInURI
		}
		if n >= least {
			out.WriteString(s[last:i])
			fmt.Fprintf(&out, "(%d bytes of base64)", n)
			last = i + n
		}
		i += max(n, 1)
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

// base64Run returns the length of the longest prefix that can be base64 of any
// alphabet.
func base64Run(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '-', c == '_', c == '=':
		default:
			return i
		}
	}
	return len(s)
}

// pack joins blocks into pieces of at most the given number of tokens. It splits a
// longer block, if possible at the end of a line.
func pack(blocks []string, tokens int) (pieces []string) {
	var piece strings.Builder
	room := tokens
	flush := func() {
		if piece.Len() > 0 {
			pieces = append(pieces, piece.String())
		}
		piece.Reset()
		room = tokens
	}
	for _, b := range blocks {
		n := plan.EstimateText(b)
		// A block that fits into one piece is not split, even if that leaves room.
		if n > room {
			flush()
		}
		for n > tokens {
			head := headOf(b, tokens)
			pieces = append(pieces, head)
			b = b[len(head):]
			n = plan.EstimateText(b)
		}
		piece.WriteString(b)
		room -= n
	}
	flush()
	return pieces
}

// headOf returns the longest prefix of a text within the given number of tokens.
func headOf(s string, tokens int) string {
	end := min(len(s), 3*tokens) // a letter of three bytes counts as one token
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	// End at a line break if it is not too far back.
	if line := strings.LastIndexByte(s[:end], '\n') + 1; line > end/2 {
		end = line
	}
	return s[:max(end, 1)]
}
