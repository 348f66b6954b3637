// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// said is what events reported about an item, apart from the item itself. It is used
// when no done item arrives.
type said struct {
	texts few[textKey, []byte]
	// whole holds the JSON of values that a done event gave as a whole: parts, and
	// the output of a command.
	whole map[textKey]string
	// annotations holds the annotations of each part, in order.
	annotations map[int][]item.JSON
	// halved lists the texts that currently end in half a character.
	halved []textKey
	// state is the status in an event's name: completed or failed.
	state string
}

func (s *said) empty() bool { return s.texts.len() == 0 && len(s.whole) == 0 }

// textKey identifies a text that deltas build: the member and the part.
type textKey struct {
	kind EventType // the type of the delta event, shellStdout or shellStderr
	part int
}

// An event with command output may add to two texts, so each has its own kind.
const (
	shellStdout = EventShellOutputDelta + "/stdout"
	shellStderr = EventShellOutputDelta + "/stderr"
)

// hear takes an event about the contents of an item.
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

// hearHosted takes an event about the contents of a call that the endpoint runs.
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
			a.about(e, item.TypeShellCallOutput).keep(textKey{EventShellOutputDone, e.number("command_index")}, v)
		}
	case EventWebSearchCompleted, EventFileSearchCompleted, EventImageCompleted,
		EventCodeCompleted, EventMCPCompleted, EventMCPListCompleted:
		a.state(e, item.StatusCompleted)
	case EventMCPFailed, EventMCPListFailed:
		a.state(e, item.StatusFailed)
	}
}

// number reads a member that is an index. It returns 0 if the member is missing or is
// not an index: then there is one part, and all events are about it.
func (e *Event) number(name string) int {
	n := 0
	v, _ := e.Member(name)
	setIndex(&n, string(v))
	return max(n, 0)
}

// state records the status that an event reports for its item, if the item is known.
func (a *Accumulator) state(e *Event, state string) {
	if s := a.find(e.ItemID, e.OutputIndex, ""); s != nil {
		s.state = state
	}
}

// speaks returns the type of item that events of this kind are about.
func speaks(kind EventType) item.Type {
	switch kind {
	case EventTextDelta, EventRefusalDelta:
		return item.TypeMessage
	case EventReasoningTextDelta, EventSummaryTextDelta, EventSummaryPartDone:
		return item.TypeReasoning
	case EventArgumentsDelta:
		return item.TypeFunctionCall
	case EventCustomInputDelta:
		return item.TypeCustomToolCall
	case EventMCPArgumentsDelta:
		return item.TypeMCPCall
	case EventCodeDelta:
		return item.TypeCodeInterpreterCall
	case EventShellCommandDelta:
		return item.TypeShellCall
	case EventShellOutputDone, shellStdout, shellStderr:
		return item.TypeShellCallOutput
	}
	return ""
}

// heard returns a pointer to the text of a part, for the caller to change.
func (a *Accumulator) heard(s *slot, kind EventType, part int) *[]byte {
	b := s.texts.at(textKey{kind, max(part, 0)})
	if *b == nil && a.spare != nil {
		*b, a.spare = a.spare[:0], nil
	} else if *b == nil {
		*b = make([]byte, 0, firstText)
	}
	return b
}

// firstText is the initial capacity of a text, in bytes.
const firstText = 128

// keep stores a copy of the JSON of a value that a done event gave as a whole.
func (s *said) keep(key textKey, v item.JSON) {
	if s.whole == nil {
		s.whole = map[textKey]string{}
	}
	s.whole[key] = strings.Clone(string(v))
}

// delta appends the delta of an event to the text of a part.
func (a *Accumulator) delta(e *Event, kind EventType, part int) {
	s := a.about(e, speaks(kind))
	b := a.heard(s, kind, part)
	if (e.half || len(s.halved) > 0) && (e.Delta != "" || e.half) {
		s.deltaWithHalf(b, textKey{kind, max(part, 0)}, e)
		return
	}
	*b = append(*b, e.Delta...)
}

// deltaWithHalf adds a delta to a text that ended in half a character, or does so
// now. The half is shown as U+FFFD until the next delta completes it.
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

// text replaces the deltas received so far by the text of a done event, if the event
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

// part stores the finished part of an event.
func (a *Accumulator) part(e *Event, kind EventType, part int) {
	v, ok := e.Member("part")
	if !ok || v[0] != '{' {
		return
	}
	t := speaks(kind)
	if t == "" {
		t = item.TypeMessage // whose parts have many types
		if name, _ := memberOf(string(v), "type"); name == `"reasoning_text"` {
			t = item.TypeReasoning
		}
	}
	a.about(e, t).keep(textKey{kind, max(part, 0)}, v)
}

// annotation stores an annotation at its index, or at the end if the index is
// missing or too large.
func (a *Accumulator) annotation(e *Event) {
	v, ok := e.Member("annotation")
	if !ok || v[0] != '{' {
		return
	}
	s := a.about(e, item.TypeMessage)
	if s.annotations == nil {
		s.annotations = map[int][]item.JSON{}
	}
	part := max(e.ContentIndex, 0)
	list, at := s.annotations[part], -1
	n, _ := e.Member("annotation_index")
	setIndex(&at, string(n))
	// The event's memory may be reused, so keep a copy.
	one := item.JSON(strings.Clone(string(v)))
	if at >= 0 && at < len(list) {
		list[at] = one
		return
	}
	s.annotations[part] = append(list, one)
}

// shellDelta takes a shell output event, whose delta is an object rather than a
// string.
func (a *Accumulator) shellDelta(e *Event) {
	v, _ := e.Member("delta")
	part := e.number("command_index")
	for kind, member := range map[EventType]string{shellStdout: "stdout", shellStderr: "stderr"} {
		text, _ := memberOf(string(v), member)
		if s, ok := text.Unquote(); ok {
			b := a.heard(a.about(e, item.TypeShellCallOutput), kind, part)
			*b = append(*b, s...)
		}
	}
}

// assemble builds the item of a slot without a done event, from its added item and
// the events about it. It returns the zero Item if there is nothing to build from.
func (s *slot) assemble(status string) item.Item {
	// The item comes from the final response, so earlier events do not matter.
	if s.final {
		return s.added
	}
	if s.said.empty() && status != item.StatusCompleted && !s.holds() {
		return item.Item{}
	}
	base := s.base()
	v, err := base.Decode()
	if err != nil || !s.fill(v, status) {
		return s.added
	}
	it, err := item.New(v)
	if err != nil {
		return s.added
	}
	return it
}

// holds reports whether the added item is a message or reasoning that already has
// content.
func (s *slot) holds() bool {
	switch s.added.Type() {
	case item.TypeMessage:
		m, err := item.As[item.Message](s.added)
		return err == nil && (m.Content.Text != "" || len(m.Content.Parts) > 0)
	case item.TypeReasoning:
		r, err := item.As[item.Reasoning](s.added)
		return err == nil && (len(r.Summary) > 0 || len(r.Content) > 0 || r.EncryptedContent != "")
	}
	return false
}

// base returns the added item, or an empty one of the type that the deltas imply.
func (s *slot) base() item.Item {
	if !s.added.IsZero() {
		return s.added
	}
	switch s.typ {
	case item.TypeMessage:
		return item.Must(&item.Message{ID: clean(s.id), Role: item.RoleAssistant, Content: item.Parts()})
	case item.TypeReasoning:
		return item.Must(&item.Reasoning{ID: clean(s.id)})
	}
	return item.Item{} // a call cannot be made up without its name
}

// fill adds what events reported to v. It returns false for a type that such events
// do not exist for.
func (s *slot) fill(v item.Value, status string) bool {
	switch v := v.(type) {
	case *item.Message:
		v.Status = status
		if !s.said.empty() {
			v.Content = item.Parts(s.messageParts(v.Content.Parts)...)
		}
	case *item.FunctionCall:
		v.Status = status
		v.Arguments = s.joined(EventArgumentsDelta, v.Arguments)
	case *item.CustomToolCall:
		// The status is optional here. Do not add one if the server does not use it.
		if v.Status != "" {
			v.Status = status
		}
		v.Input = s.joined(EventCustomInputDelta, v.Input)
	case *item.Reasoning:
		if v.Status != "" {
			v.Status = status
		}
		v.Summary = s.reasoningParts(v.Summary, EventSummaryTextDelta, EventSummaryPartDone)
		v.Content = s.reasoningParts(v.Content, EventReasoningTextDelta, EventPartDone)
	default:
		return s.fillHosted(v, status)
	}
	return true
}

// fillHosted is fill for calls that the endpoint runs, including its shell.
func (s *slot) fillHosted(v item.Value, status string) bool {
	switch v := v.(type) {
	case *item.MCPCall:
		v.Arguments = s.joined(EventMCPArgumentsDelta, v.Arguments)
		s.settle(&v.Status, status)
	case *item.CodeInterpreterCall:
		v.Code = s.joined(EventCodeDelta, v.Code)
		s.settle(&v.Status, status)
	case *item.ShellCall:
		s.commands(v)
		s.settle(&v.Status, status)
	case *item.ShellCallOutput:
		s.outputs(v)
		s.settle(&v.Status, status)
	case *item.WebSearchCall:
		s.settle(&v.Status, "")
	case *item.FileSearchCall:
		s.settle(&v.Status, "")
	case *item.ImageGenerationCall:
		s.settle(&v.Status, "")
	default:
		return false
	}
	// Without events about its contents, the added item is all that is known.
	return !s.said.empty() || s.state != ""
}

// settle sets an item's status to the state that an event reported. Without one it
// sets the status to other, if the item has a status and deltas arrived for it.
func (s *slot) settle(v *string, other string) {
	switch {
	case s.state != "":
		*v = s.state
	case other != "" && *v != "" && !s.said.empty():
		*v = other
	}
}

// joined returns the text that the deltas built, or otherwise if there was none.
func (s *slot) joined(kind EventType, otherwise string) string {
	if b := s.texts.get(textKey{kind, 0}); b != nil {
		return string(b)
	}
	return otherwise
}

// text returns the text of a part, and whether there is one.
func (s *slot) text(kind EventType, part int) (string, bool) {
	b := s.texts.get(textKey{kind, part})
	if b == nil {
		return "", false
	}
	return string(b), true
}

// indexes returns the parts that events of the given kinds were about, in order.
func (s *slot) indexes(kinds ...EventType) []int {
	var list []int
	for key := range s.texts.keys() {
		if slices.Contains(kinds, key.kind) {
			list = append(list, key.part)
		}
	}
	for key := range maps.Keys(s.whole) {
		if slices.Contains(kinds, key.kind) {
			list = append(list, key.part)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// messageParts merges what events reported about the parts of a message into parts.
func (s *slot) messageParts(parts []item.Part) []item.Part {
	for _, i := range s.indexes(EventTextDelta, EventRefusalDelta, EventPartDone) {
		// A finished part takes precedence over deltas.
		p := s.wholePart(EventPartDone, i)
		text, isText := s.text(EventTextDelta, i)
		if out, ok := p.(*item.OutputText); ok {
			// The finished part may lack the text that the deltas had.
			if out.Text == "" {
				out.Text = text
			}
			s.annotate(out, i)
		}
		if p == nil && isText {
			out := &item.OutputText{Text: text, Annotations: "[]"}
			s.annotate(out, i)
			p = out
		}
		if p == nil {
			refusal, _ := s.text(EventRefusalDelta, i)
			p = &item.Refusal{Refusal: refusal}
		}
		parts = placed(parts, i, p)
	}
	return parts
}

// wholePart returns the part that a done event gave, or nil.
func (s *slot) wholePart(kind EventType, i int) item.Part {
	raw, ok := s.whole[textKey{kind, i}]
	if !ok {
		return nil
	}
	p, err := partValues.Read(raw)
	if err != nil {
		return nil
	}
	return p
}

// annotate adds the annotations that arrived in events of their own to p, unless p
// has annotations already.
func (s *slot) annotate(p *item.OutputText, i int) {
	list := s.annotations[i]
	if len(list) == 0 || p.Annotations != "" && p.Annotations != "[]" {
		return
	}
	joined := make([]string, len(list))
	for i, one := range list {
		joined[i] = string(one)
	}
	p.Annotations = item.JSON("[" + strings.Join(joined, ",") + "]")
}

// reasoningParts is like messageParts, for the summary or the content of reasoning.
func (s *slot) reasoningParts(parts []item.Part, delta, done EventType) []item.Part {
	for _, i := range s.indexes(delta, done) {
		p := s.wholePart(done, i)
		if p == nil {
			text, _ := s.text(delta, i)
			if delta == EventSummaryTextDelta {
				p = &item.SummaryText{Text: text}
			} else {
				p = &item.ReasoningText{Text: text}
			}
		}
		parts = placed(parts, i, p)
	}
	return parts
}

// placed stores p at index i, or at the end if the list is shorter.
func placed(parts []item.Part, i int, p item.Part) []item.Part {
	if i < len(parts) {
		parts[i] = p
		return parts
	}
	return append(parts, p)
}

// commands sets the commands of a shell call.
func (s *slot) commands(v *item.ShellCall) {
	list := s.indexes(EventShellCommandDelta)
	if len(list) == 0 {
		return
	}
	if v.Action == nil {
		v.Action = new(item.ShellAction)
	}
	// The commands in the events replace those of the added item.
	v.Action.Commands = nil
	for _, i := range list {
		text, _ := s.text(EventShellCommandDelta, i)
		v.Action.Commands = append(v.Action.Commands, text)
	}
}

// outputs sets the outputs of a shell call's commands.
func (s *slot) outputs(v *item.ShellCallOutput) {
	var list []item.ShellOutput
	for _, i := range s.indexes(shellStdout, shellStderr, EventShellOutputDone) {
		if raw, ok := s.whole[textKey{EventShellOutputDone, i}]; ok {
			// Wrapped in an event, the output can be decoded like any record.
			var event ShellOutputDoneEvent
			if decodeRecord(`{"output":`+raw+`}`, &event) == nil && event.Output != nil {
				list = append(list, event.Output...)
				continue
			}
		}
		stdout, _ := s.text(shellStdout, i)
		stderr, _ := s.text(shellStderr, i)
		list = append(list, item.ShellOutput{Stdout: stdout, Stderr: stderr})
	}
	if list != nil {
		v.Output = list
	}
}
