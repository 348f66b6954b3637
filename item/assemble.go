// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"maps"
	"slices"
)

// assemble builds the item of a slot that saw no done event from its added
// item and what was said of it. It returns the zero Item when nothing was said.
func (s *slot) assemble(status string) Item {
	if s.final {
		return s.added
	}
	if s.said.empty() && status != StatusCompleted && !s.holds() {
		return Item{}
	}
	base := s.base()
	v := newSpoken(base.typ)
	if v == nil || decodeRecord(base.raw, v) != nil || !s.fill(v, status) {
		return s.added
	}
	it, err := New(v)
	if err != nil {
		return s.added
	}
	return it
}

// holds reports whether the added item is a message or reasoning that says
// something by itself.
func (s *slot) holds() bool {
	switch s.added.typ {
	case TypeMessage:
		m, err := As[Message](s.added)
		return err == nil && (m.Content.Text != "" || len(m.Content.Parts) > 0)
	case TypeReasoning:
		r, err := As[Reasoning](s.added)
		return err == nil && (len(r.Summary) > 0 || len(r.Content) > 0 || r.EncryptedContent != "")
	}
	return false
}

// newSpoken returns an empty value of a type that is said piece by piece, nil
// for others. It names them all, rather than [newValue], so that a program that
// only streams does not link every type.
func newSpoken(t Type) Value {
	switch t {
	case TypeMessage:
		return new(Message)
	case TypeFunctionCall:
		return new(FunctionCall)
	case TypeCustomToolCall:
		return new(CustomToolCall)
	case TypeReasoning:
		return new(Reasoning)
	case TypeMCPCall:
		return new(MCPCall)
	case TypeCodeInterpreterCall:
		return new(CodeInterpreterCall)
	case TypeShellCall:
		return new(ShellCall)
	case TypeShellCallOutput:
		return new(ShellCallOutput)
	case TypeWebSearchCall:
		return new(WebSearchCall)
	case TypeFileSearchCall:
		return new(FileSearchCall)
	case TypeImageGenerationCall:
		return new(ImageGenerationCall)
	}
	return nil
}

// base is the added item, or an empty one of the kind that the deltas show.
func (s *slot) base() Item {
	if !s.added.IsZero() {
		return s.added
	}
	switch s.typ {
	case TypeMessage:
		return Must(&Message{ID: clean(s.id), Role: RoleAssistant, Content: Parts()})
	case TypeReasoning:
		return Must(&Reasoning{ID: clean(s.id)})
	}
	return Item{} // a call without a name cannot be made up
}

// fill puts what was said into v, and reports false for a type that nothing is
// said of.
func (s *slot) fill(v Value, status string) bool {
	switch v := v.(type) {
	case *Message:
		v.Status = status
		if !s.said.empty() {
			v.Content = Parts(s.messageParts(v.Content.Parts)...)
		}
	case *FunctionCall:
		v.Status = status
		v.Arguments = s.joined(EventArgumentsDelta, v.Arguments)
	case *CustomToolCall:
		if v.Status != "" {
			v.Status = status
		}
		v.Input = s.joined(EventCustomInputDelta, v.Input)
	case *Reasoning:
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

// fillHosted is fill for calls that the endpoint runs, and for its shell.
func (s *slot) fillHosted(v Value, status string) bool {
	switch v := v.(type) {
	case *MCPCall:
		v.Arguments = s.joined(EventMCPArgumentsDelta, v.Arguments)
		s.settle(&v.Status, status)
	case *CodeInterpreterCall:
		v.Code = s.joined(EventCodeDelta, v.Code)
		s.settle(&v.Status, status)
	case *ShellCall:
		s.commands(v)
		s.settle(&v.Status, status)
	case *ShellCallOutput:
		s.outputs(v)
		s.settle(&v.Status, status)
	case *WebSearchCall:
		s.settle(&v.Status, "")
	case *FileSearchCall:
		s.settle(&v.Status, "")
	case *ImageGenerationCall:
		s.settle(&v.Status, "")
	default:
		return false
	}
	return !s.said.empty() || s.state != ""
}

// settle sets an item's status to what an event said it is, or, when something
// was said of the item, to the other.
func (s *slot) settle(v *string, other string) {
	switch {
	case s.state != "":
		*v = s.state
	case other != "" && *v != "" && !s.said.empty():
		*v = other
	}
}

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

// indexes returns the parts of which events of the kinds told, in order.
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

func (s *slot) messageParts(parts []Part) []Part {
	for _, i := range s.indexes(EventTextDelta, EventRefusalDelta, EventPartDone) {
		p := s.wholePart(EventPartDone, i)
		text, isText := s.text(EventTextDelta, i)
		if out, ok := p.(*OutputText); ok {
			if out.Text == "" {
				out.Text = text
			}
			s.annotate(out, i)
		}
		if p == nil && isText {
			out := &OutputText{Text: text, Annotations: "[]"}
			s.annotate(out, i)
			p = out
		}
		if p == nil {
			refusal, _ := s.text(EventRefusalDelta, i)
			p = &Refusal{Refusal: refusal}
		}
		parts = placed(parts, i, p)
	}
	return parts
}

// wholePart returns the part that a done event gave, or nil.
func (s *slot) wholePart(kind EventType, i int) Part {
	raw, ok := s.whole[textKey{kind, i}]
	if !ok {
		return nil
	}
	p, err := parsePart(raw)
	if err != nil {
		return nil
	}
	return p
}

// annotate gives a part the annotations that came by themselves, unless it has
// some.
func (s *slot) annotate(p *OutputText, i int) {
	list := s.annotations[i]
	if len(list) == 0 || p.Annotations != "" && p.Annotations != "[]" {
		return
	}
	if j, err := listJSON(list, func(dst []byte, one JSON) ([]byte, error) { return append(dst, one...), nil }); err == nil {
		p.Annotations = j
	}
}

func (s *slot) reasoningParts(parts []Part, delta, done EventType) []Part {
	for _, i := range s.indexes(delta, done) {
		p := s.wholePart(done, i)
		if p == nil {
			text, _ := s.text(delta, i)
			if delta == EventSummaryTextDelta {
				p = &SummaryText{Text: text}
			} else {
				p = &ReasoningText{Text: text}
			}
		}
		parts = placed(parts, i, p)
	}
	return parts
}

// placed puts p at index i, or at the end when the list is shorter.
func placed(parts []Part, i int, p Part) []Part {
	if i < len(parts) {
		parts[i] = p
		return parts
	}
	return append(parts, p)
}

// commands puts the commands of a shell call together.
func (s *slot) commands(v *ShellCall) {
	list := s.indexes(EventShellCommandDelta)
	if len(list) == 0 {
		return
	}
	if v.Action == nil {
		v.Action = new(ShellAction)
	}
	v.Action.Commands = nil
	for _, i := range list {
		text, _ := s.text(EventShellCommandDelta, i)
		v.Action.Commands = append(v.Action.Commands, text)
	}
}

// outputs puts the outputs of a shell call's commands together.
func (s *slot) outputs(v *ShellCallOutput) {
	var list []ShellOutput
	for _, i := range s.indexes(shellStdout, shellStderr, EventShellOutputDone) {
		if raw, ok := s.whole[textKey{EventShellOutputDone, i}]; ok {
			var event ShellOutputDoneEvent
			if decodeRecord(`{"output":`+raw+`}`, &event) == nil && event.Output != nil {
				list = append(list, event.Output...)
				continue
			}
		}
		stdout, _ := s.text(shellStdout, i)
		stderr, _ := s.text(shellStderr, i)
		list = append(list, ShellOutput{Stdout: stdout, Stderr: stderr})
	}
	if list != nil {
		v.Output = list
	}
}
