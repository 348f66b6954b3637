// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"bytes"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// said is what events told of an item besides the item itself: it counts where
// no done item comes.
type said struct {
	texts few[textKey, []byte]
	// whole holds the JSON of what a done event gave as a whole: parts, and the
	// output of a command.
	whole map[textKey]string
	// annotations are those of each part, in their order.
	annotations map[int][]JSON
	// halved are the texts that end in half a character.
	halved []textKey
	// state is the status that an event gave in its name, completed or failed.
	state string
}

func (s *said) empty() bool { return s.texts.len() == 0 && len(s.whole) == 0 }

// textKey names one text that deltas build: of which member and which part.
type textKey struct {
	kind EventType // the delta event's type, or one of the below
	part int
}

// The two texts that the event of a command's output adds to.
const (
	shellStdout = EventShellOutputDelta + "/stdout"
	shellStderr = EventShellOutputDelta + "/stderr"
)

// hear takes an event about what is inside an item.
func (a *Accumulator) hear(e *Event) {
	switch e.Type {
	case EventTextDelta:
		a.delta(e, EventTextDelta, e.ContentIndex)
	case EventTextDone:
		a.text(e, EventTextDelta, "text", e.ContentIndex)
	case EventRefusalDelta:
		a.delta(e, EventRefusalDelta, e.ContentIndex)
	case EventRefusalDone:
		a.text(e, EventRefusalDelta, "refusal", e.ContentIndex)
	case EventReasoningTextDelta:
		a.delta(e, EventReasoningTextDelta, e.ContentIndex)
	case EventReasoningTextDone:
		a.text(e, EventReasoningTextDelta, "text", e.ContentIndex)
	case EventSummaryTextDelta:
		a.delta(e, EventSummaryTextDelta, e.SummaryIndex)
	case EventSummaryTextDone:
		a.text(e, EventSummaryTextDelta, "text", e.SummaryIndex)
	case EventPartDone:
		a.part(e, EventPartDone, e.ContentIndex)
	case EventSummaryPartDone:
		a.part(e, EventSummaryPartDone, e.SummaryIndex)
	case EventAnnotationAdded:
		a.annotation(e)
	case EventArgumentsDelta:
		a.delta(e, EventArgumentsDelta, 0)
	case EventArgumentsDone:
		a.text(e, EventArgumentsDelta, "arguments", 0)
	case EventCustomInputDelta:
		a.delta(e, EventCustomInputDelta, 0)
	case EventCustomInputDone:
		a.text(e, EventCustomInputDelta, "input", 0)
	default:
		a.hearHosted(e)
	}
}

// hearHosted takes an event about what is inside a call that the endpoint runs.
func (a *Accumulator) hearHosted(e *Event) {
	switch e.Type {
	case EventMCPArgumentsDelta:
		a.delta(e, EventMCPArgumentsDelta, 0)
	case EventMCPArgumentsDone:
		a.text(e, EventMCPArgumentsDelta, "arguments", 0)
	case EventCodeDelta:
		a.delta(e, EventCodeDelta, 0)
	case EventCodeDone:
		a.text(e, EventCodeDelta, "code", 0)
	case EventShellCommandDelta:
		a.delta(e, EventShellCommandDelta, e.number("command_index"))
	case EventShellCommandAdded, EventShellCommandDone:
		a.text(e, EventShellCommandDelta, "command", e.number("command_index"))
	case EventShellOutputDelta:
		a.shellDelta(e)
	case EventShellOutputDone:
		if v, ok := e.Member("output"); ok && v[0] == '[' {
			a.about(e, TypeShellCallOutput).keep(textKey{EventShellOutputDone, e.number("command_index")}, v)
		}
	case EventWebSearchCompleted, EventFileSearchCompleted, EventImageCompleted,
		EventCodeCompleted, EventMCPCompleted, EventMCPListCompleted:
		a.state(e, StatusCompleted)
	case EventMCPFailed, EventMCPListFailed:
		a.state(e, StatusFailed)
	}
}

// number reads a member that counts from 0; what is no such number is 0.
func (e *Event) number(name string) int {
	n := 0
	v, _ := e.Member(name)
	setIndex(&n, string(v))
	return n
}

// state notes what an event says of its item, if that is known.
func (a *Accumulator) state(e *Event, state string) {
	if s := a.find(e.ItemID, e.OutputIndex, ""); s != nil {
		s.state = state
	}
}

// speaks returns the type of the items that events of the kind are about.
func speaks(kind EventType) Type {
	switch kind {
	case EventTextDelta, EventRefusalDelta:
		return TypeMessage
	case EventReasoningTextDelta, EventSummaryTextDelta, EventSummaryPartDone:
		return TypeReasoning
	case EventArgumentsDelta:
		return TypeFunctionCall
	case EventCustomInputDelta:
		return TypeCustomToolCall
	case EventMCPArgumentsDelta:
		return TypeMCPCall
	case EventCodeDelta:
		return TypeCodeInterpreterCall
	case EventShellCommandDelta:
		return TypeShellCall
	case EventShellOutputDone, shellStdout, shellStderr:
		return TypeShellCallOutput
	}
	return ""
}

// heard returns the text of a part, to be changed.
func (a *Accumulator) heard(s *slot, kind EventType, part int) *[]byte {
	b := s.texts.at(textKey{kind, max(part, 0)})
	if *b == nil && a.spare != nil {
		*b, a.spare = a.spare[:0], nil
	} else if *b == nil {
		*b = make([]byte, 0, firstText)
	}
	return b
}

// firstText is how much of a text there is room for at first.
const firstText = 128

func (s *said) keep(key textKey, v JSON) {
	if s.whole == nil {
		s.whole = map[textKey]string{}
	}
	s.whole[key] = strings.Clone(string(v))
}

func (a *Accumulator) delta(e *Event, kind EventType, part int) {
	s := a.about(e, speaks(kind))
	b := a.heard(s, kind, part)
	if (e.half || len(s.halved) > 0) && (e.Delta != "" || e.half) {
		s.deltaWithHalf(b, textKey{kind, max(part, 0)}, e)
		return
	}
	*b = append(*b, e.Delta...)
}

// deltaWithHalf is for a text that ended in half a character, or does now: that is
// U+FFFD until the next delta completes it.
func (s *said) deltaWithHalf(b *[]byte, key textKey, e *Event) {
	if i := slices.Index(s.halved, key); i >= 0 {
		s.halved = slices.Delete(s.halved, i, i+1)
		*b = bytes.TrimSuffix(*b, []byte(replacement))
	}
	*b = append(*b, e.Delta...)
	if e.half {
		s.halved = append(s.halved, key)
		*b = append(*b, replacement...)
	}
}

// text takes the text of a done event in place of its deltas, where the event
// has one.
func (a *Accumulator) text(e *Event, kind EventType, member string, part int) {
	v, _ := e.Member(member)
	if len(v) >= 2 && v[0] == '"' {
		s := a.about(e, speaks(kind))
		b := a.heard(s, kind, part)
		*b = jsonx.AppendUnescaped((*b)[:0], string(v[1:len(v)-1]))
		s.halved = slices.DeleteFunc(s.halved, func(k textKey) bool { return k == textKey{kind, max(part, 0)} })
	}
}

func (a *Accumulator) part(e *Event, kind EventType, part int) {
	v, ok := e.Member("part")
	if !ok || v[0] != '{' {
		return
	}
	t := speaks(kind)
	if t == "" {
		t = TypeMessage // whose parts are of many types
		if name, _ := memberOf(string(v), "type"); name == `"reasoning_text"` {
			t = TypeReasoning
		}
	}
	a.about(e, t).keep(textKey{kind, max(part, 0)}, v)
}

// annotation puts an annotation in its place, or at the end where that is
// beyond.
func (a *Accumulator) annotation(e *Event) {
	v, ok := e.Member("annotation")
	if !ok || v[0] != '{' {
		return
	}
	s := a.about(e, TypeMessage)
	if s.annotations == nil {
		s.annotations = map[int][]JSON{}
	}
	part := max(e.ContentIndex, 0)
	list, at := s.annotations[part], -1
	n, _ := e.Member("annotation_index")
	setIndex(&at, string(n))
	one := JSON(strings.Clone(string(v)))
	if at >= 0 && at < len(list) {
		list[at] = one
		return
	}
	s.annotations[part] = append(list, one)
}

// shellDelta takes the event whose delta is an object.
func (a *Accumulator) shellDelta(e *Event) {
	v, _ := e.Member("delta")
	part := e.number("command_index")
	for kind, member := range map[EventType]string{shellStdout: "stdout", shellStderr: "stderr"} {
		text, _ := memberOf(string(v), member)
		if s, ok := text.Unquote(); ok {
			b := a.heard(a.about(e, TypeShellCallOutput), kind, part)
			*b = append(*b, s...)
		}
	}
}
