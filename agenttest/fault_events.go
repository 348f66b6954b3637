// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
)

// edit adds a change of the events, in the order of the calls.
func (a Reply) edit(f func([]piece) []piece) Reply {
	a.edits = append(slices.Clip(a.edits), f)
	return a
}

// at converts the number of an event, counted from the end if it is negative, to an
// index. ok is false if there is no such event.
func at(n, length int) (index int, ok bool) {
	if n < 0 {
		n += length
	}
	return n, n >= 0 && n < length
}

// WithoutLast leaves out the last event, which marks the end of a stream. The body
// still ends properly.
func (a Reply) WithoutLast() Reply { return a.Without(-1) }

// Without leaves out event n. Here and below, events are counted from 0, or from the
// end if n is negative, and a number without an event changes nothing.
func (a Reply) Without(n int) Reply {
	return a.more("Without(%d)", n).edit(func(p []piece) []piece {
		if i, ok := at(n, len(p)); ok {
			return slices.Delete(p, i, i+1)
		}
		return p
	})
}

// Twice sends event n twice.
func (a Reply) Twice(n int) Reply {
	return a.more("Twice(%d)", n).edit(func(p []piece) []piece {
		if i, ok := at(n, len(p)); ok {
			return slices.Insert(p, i, p[i])
		}
		return p
	})
}

// Move moves event n to the position of event to.
func (a Reply) Move(n, to int) Reply {
	return a.more("Move(%d, %d)", n, to).edit(func(p []piece) []piece {
		i, ok := at(n, len(p))
		j, there := at(to, len(p))
		if !ok || !there {
			return p
		}
		moved := p[i]
		return slices.Insert(slices.Delete(p, i, i+1), j, moved)
	})
}

// WithEvent inserts an event with the given data before event n, or at the end.
func (a Reply) WithEvent(n int, data string) Reply {
	return a.insert("WithEvent", n, pieceEvent, data)
}

// WithBinary inserts a binary frame before event n of a WebSocket.
func (a Reply) WithBinary(n int, data string) Reply {
	return a.insert("WithBinary", n, pieceBinary, data)
}

func (a Reply) insert(name string, n int, kind pieceKind, data string) Reply {
	return a.more("%s(%d, %.40q)", name, n, data).edit(func(p []piece) []piece {
		i, _ := at(n, len(p))
		return slices.Insert(p, min(max(i, 0), len(p)), piece{kind, data})
	})
}

// WithDone ends the stream with data: [DONE], as some servers do.
func (a Reply) WithDone() Reply {
	return a.more("WithDone()").edit(func(p []piece) []piece { return append(p, piece{pieceEvent, "[DONE]"}) })
}

// style is the format of events. All styles are valid.
type style struct {
	end      string // of a line; empty is LF
	tight    bool
	bom      bool
	comments bool
	split    bool
	noFinal  bool
}

// LineEnds ends the lines of the stream with "\r\n" or "\r".
func (a Reply) LineEnds(end string) Reply {
	return a.with(func(a *Reply) { a.style.end = end }, "LineEnds(%q)", end)
}

// Tight leaves out the space behind the colons.
func (a Reply) Tight() Reply {
	return a.with(func(a *Reply) { a.style.tight = true }, "Tight()")
}

// WithBOM starts the stream with a byte order mark.
func (a Reply) WithBOM() Reply {
	return a.with(func(a *Reply) { a.style.bom = true }, "WithBOM()")
}

// WithComments inserts comments between and inside events.
func (a Reply) WithComments() Reply {
	return a.with(func(a *Reply) { a.style.comments = true }, "WithComments()")
}

// DataLines splits the data of each event into several lines where JSON allows it.
func (a Reply) DataLines() Reply {
	return a.with(func(a *Reply) { a.style.split = true }, "DataLines()")
}

// NoFinalNewline ends the stream without the newlines after its last event.
func (a Reply) NoFinalNewline() Reply {
	return a.with(func(a *Reply) { a.style.noFinal = true }, "NoFinalNewline()")
}

// render writes the pieces as parts of a body, one for one.
func (st style) render(pieces []piece) []string {
	parts := make([]string, len(pieces))
	for i, p := range pieces {
		if p.kind == pieceRaw {
			parts[i] = p.text
			continue
		}
		parts[i] = st.frame(p.text)
		if st.bom && i == 0 {
			parts[i] = "\ufeff" + parts[i]
		}
		if st.noFinal && i == len(pieces)-1 {
			parts[i] = strings.TrimRight(parts[i], "\r\n")
		}
	}
	return parts
}

// frame is an event as it goes over the wire.
func (st style) frame(data string) string {
	var b strings.Builder
	end, space := "\n", " "
	if st.end != "" {
		end = st.end
	}
	if st.tight {
		space = ""
	}
	line := func(field, value string) { b.WriteString(field + ":" + space + value + end) }
	if st.comments {
		line("", "keep-alive")
	}
	if ev, err := api.ParseEvent([]byte(data)); err == nil && ev.Type != "" {
		line("event", string(ev.Type))
	}
	if st.split {
		data = breakJSON(data)
	}
	for text := range strings.SplitSeq(data, "\n") {
		line("data", text)
		if st.comments {
			line("", "data: {")
		}
	}
	b.WriteString(end)
	return b.String()
}

// breakJSON inserts a newline after each comma outside of strings.
func breakJSON(data string) string {
	var b strings.Builder
	inString, escaped := false, false
	for i := range len(data) {
		c := data[i]
		b.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case c == ',' && !inString:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// compress packs the parts as one gzip stream, flushed after each.
func compress(parts []string) []string {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	packed := make([]string, 0, len(parts)+1)
	take := func() {
		packed = append(packed, buf.String())
		buf.Reset()
	}
	for _, p := range parts {
		_, _ = z.Write([]byte(p)) // to memory
		_ = z.Flush()
		take()
	}
	_ = z.Close()
	take()
	return packed
}
