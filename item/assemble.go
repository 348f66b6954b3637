// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"maps"
	"slices"
)

// assemble builds the item of a slot that saw no done event from its added
// item and its deltas. It returns the zero Item when nothing was said.
func (s *slot) assemble(status string) Item {
	if s.final {
		return s.added
	}
	if len(s.texts) == 0 && status != StatusCompleted {
		return Item{}
	}
	v, err := s.base().Decode()
	if err != nil {
		return s.added
	}
	switch v := v.(type) {
	case *Message:
		v.Status = status
		if len(s.texts) > 0 {
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
		v.Summary = s.replaced(v.Summary, EventSummaryTextDelta)
		v.Content = s.replaced(v.Content, EventReasoningTextDelta)
	default:
		return s.added
	}
	it, err := New(v)
	if err != nil {
		return s.added
	}
	return it
}

// base is the added item, or an empty one of the kind that the deltas show.
func (s *slot) base() Item {
	if !s.added.IsZero() {
		return s.added
	}
	for key := range s.texts {
		switch key.kind {
		case EventTextDelta, EventRefusalDelta:
			return Must(&Message{ID: clean(s.id), Role: RoleAssistant, Content: Parts()})
		case EventReasoningTextDelta, EventSummaryTextDelta:
			return Must(&Reasoning{ID: clean(s.id)})
		}
	}
	return Item{} // a call without a name cannot be made up
}

func (s *slot) joined(kind EventType, otherwise string) string {
	if b := s.texts[textKey{kind, 0}]; b != nil {
		return b.String()
	}
	return otherwise
}

// indexes returns the parts that deltas of the kinds built, in order.
func (s *slot) indexes(kinds ...EventType) []int {
	var list []int
	for key := range maps.Keys(s.texts) {
		if slices.Contains(kinds, key.kind) {
			list = append(list, key.part)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *slot) messageParts(parts []Part) []Part {
	for _, i := range s.indexes(EventTextDelta, EventRefusalDelta) {
		var p Part
		if b := s.texts[textKey{EventTextDelta, i}]; b != nil {
			p = &OutputText{Text: b.String(), Annotations: "[]"}
		} else {
			p = &Refusal{Refusal: s.texts[textKey{EventRefusalDelta, i}].String()}
		}
		parts = placed(parts, i, p)
	}
	return parts
}

func (s *slot) replaced(parts []Part, kind EventType) []Part {
	for _, i := range s.indexes(kind) {
		text := s.texts[textKey{kind, i}].String()
		if kind == EventSummaryTextDelta {
			parts = placed(parts, i, &SummaryText{Text: text})
		} else {
			parts = placed(parts, i, &ReasoningText{Text: text})
		}
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
