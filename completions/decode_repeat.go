// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// Nearly all chunks of a stream differ from the previous one only in the added text and in padding.
// Such a chunk is compared with the previous one, and only the text is scanned. The reason is the
// row "chat deltas" of bench/; a fuzz test compares the result with normal decoding.

// pattern is a chunk that only added text to the message or to the reasoning. The zero pattern
// matches no chunk.
type pattern struct {
	thought bool      // the text is reasoning
	value   item.JSON // the text, until the pattern is complete

	before string // the chunk up to the text's first byte
	after  string // the chunk from the text's closing quote to the end, or to the first byte of padding
	padded bool   // after the padding only padEnd follows
}

const padEnd = `"}`

// patternOf returns the start of a pattern for a delta that adds one text.
func patternOf(p *chunkDelta) pattern {
	if p.odd || p.refusal != "" || p.annotations != "" || p.details != "" || p.calls != "" || p.function != "" {
		return pattern{}
	}
	switch {
	case p.content != "" && p.thought == "" && p.content[0] == '"':
		return pattern{value: p.content}
	case p.thought != "" && p.content == "" && p.thought[0] == '"':
		return pattern{value: p.thought, thought: true}
	}
	return pattern{}
}

// around completes a pattern with the chunk's bytes around its value, if the value's position is
// unambiguous.
func (p *pattern) around(chunk string) {
	value := string(p.value)
	name := `"content"`
	if p.thought {
		name = `"reasoning` // any suffix: exactly one such member must exist
	}
	i := strings.Index(chunk, name)
	if p.value = ""; value == "" || i < 0 {
		return
	}
	if p.thought {
		name, _, _ = strings.Cut(chunk[i+1:], `"`)
		name = `"` + name + `"`
	}
	colon := jsonx.SkipSpace(chunk, i+len(name))
	if colon >= len(chunk) || chunk[colon] != ':' {
		return
	}
	from := jsonx.SkipSpace(chunk, colon+1)
	if !strings.HasPrefix(chunk[from:], value) {
		return
	}
	before, after := chunk[:from+1], chunk[from+len(value)-1:]
	search := name
	if p.thought {
		search = `"reasoning`
	}
	// An escape could hide another member with this name.
	if strings.Contains(before, `\`) || strings.Contains(after, `\`) || strings.Count(before, search) != 1 || strings.Contains(after, search) {
		return
	}
	if pad := strings.Index(after, `"obfuscation":"`); pad >= 0 && strings.HasSuffix(after, padEnd) {
		pad += len(`"obfuscation":"`)
		if end := jsonx.Plain(after, pad); after[end:] == padEnd {
			after, p.padded = after[:pad], true
		}
	}
	p.before, p.after = before, after
}

// repeats decodes a chunk that matches the last one, and reports whether it did.
func (d *Decoder) repeats(chunk []byte) bool {
	p, n := &d.like, len(d.like.before)
	if n == 0 || len(chunk) < n+len(p.after) || string(chunk[:n]) != p.before || d.ended || d.failed {
		return false
	}
	s := jsonx.String(chunk) // the decoder keeps no part of it
	end := jsonx.Plain(s, n)
	plain := end < len(s) && s[end] == '"'
	if !plain {
		sc := jsonx.Scanner{Text: s}
		next, err := sc.Quoted(n - 1)
		if err != nil {
			return false
		}
		end = next - 1
	}
	if end == n || !p.ends(s[end:]) {
		return false
	}
	t, kind, probs := d.text, api.EventTextDelta, item.JSON("[]")
	if p.thought {
		t, kind, probs = d.thinking, api.EventReasoningTextDelta, ""
	}
	d.counted = false
	value := item.JSON(s[n-1 : end+1])
	switch {
	case plain && t != nil && t.half == "" && t.text.Len() > 0:
		t.text.WriteString(s[n:end])
		d.tellDelta(kind, t.liveItem, t.part, value, probs)
	case p.thought:
		d.think(item.JSON(strings.Clone(string(value))))
	default:
		d.write(item.JSON(strings.Clone(string(value))), "")
	}
	return true
}

// ends reports whether a chunk continues after its text like the pattern.
func (p *pattern) ends(rest string) bool {
	if !p.padded {
		return rest == p.after
	}
	if !strings.HasPrefix(rest, p.after) {
		return false
	}
	return rest[jsonx.Plain(rest, len(p.after)):] == padEnd
}
