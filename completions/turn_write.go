// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// turn is an assistant message under construction.
type turn struct {
	thoughts []string
	details  []item.JSON // lists of reasoning details
	said     []item.Part // texts
	short    bool        // said was a text, not parts
	refusal  string
	calls    writer
	ids      []string // ids of the calls
	from     origin
}

func (t *turn) speaks() bool { return len(t.said) > 0 || t.refusal != "" }

func (t *turn) thinks() bool { return len(t.thoughts)+len(t.details) > 0 }

func (t *turn) isCalling() bool { return len(t.calls.buf) > 0 }

// reasoning adds a reasoning item to the turn, or opens one.
func (m *messages) reasoning(it item.Item, at place) error {
	v, err := item.As[item.Reasoning](it)
	if err != nil {
		return err
	}
	switch t := &m.turn; {
	case m.options.Reasoning == "":
		at.lose("reasoning is not sent back")
	case t.isCalling():
		at.move(reordered)
		t.addReasoning(v, m.options, at)
	case t.speaks():
		m.behind = append(m.behind, thought{v, at})
	default:
		t.addReasoning(v, m.options, at)
	}
	return nil
}

// thought is reasoning that came after the model's text. It belongs to what follows, or to the text
// before it if nothing follows.
type thought struct {
	value *item.Reasoning
	at    place
}

// goOn begins another turn if reasoning follows this one.
func (m *messages) goOn() error {
	if len(m.behind) == 0 {
		return nil
	}
	behind := m.behind
	m.behind = nil
	if err := m.close(); err != nil {
		return err
	}
	for _, v := range behind {
		m.turn.addReasoning(v.value, m.options, v.at)
	}
	return nil
}

// addReasoning adds the reasoning in the member that the options name.
func (t *turn) addReasoning(v *item.Reasoning, o Options, at place) {
	if t.thinks() {
		at.move("joined with the reasoning before")
	}
	x := slices.Clone(v.Extra)
	details, _ := x.Get(ReasoningDetails)
	text := thoughtsOf(v)
	if o.Reasoning == ReasoningDetails && details != "" {
		x.Delete(ReasoningDetails)
		t.details = append(t.details, details)
		if text == detailText(details) {
			text = "" // the text is already in the turn
		}
	}
	if text != "" {
		t.thoughts = append(t.thoughts, text)
	}
	at.identity(v.ID, v.Status, x)
	if v.EncryptedContent != "" {
		at.at("encrypted_content").lose(noCounterpart)
	}
	if len(v.Content) > 0 && len(v.Summary) > 0 {
		at.at("summary").lose(noCounterpart)
	}
}

// spoken adds a message of the model to the turn, or opens a turn.
func (m *messages) spoken(v *item.Message, at place) error {
	said, refusal := m.sayable(v.Content, at)
	if len(said) == 0 && refusal == "" {
		at.lose("says nothing and is left out")
		return nil
	}
	if err := m.goOn(); err != nil {
		return err
	}
	switch t := &m.turn; {
	case t.isCalling() && t.speaks():
		at.move("joined with the text before the calls")
	case t.isCalling():
		at.move(reordered)
	case t.speaks():
		if err := m.close(); err != nil {
			return err
		}
	}
	t := &m.turn
	t.short = v.Content.IsText() && !t.speaks()
	t.said = append(t.said, said...)
	t.refusal = joined(t.refusal, refusal)
	m.mark(&t.from.content)
	return nil
}

// sayable splits the content of a model's message into texts and a refusal.
func (m *messages) sayable(c item.Content, at place) (said []item.Part, refusal string) {
	if c.IsText() {
		if c.Text == "" {
			return nil, ""
		}
		return []item.Part{&item.OutputText{Text: c.Text}}, ""
	}
	for i, p := range c.Parts {
		at := at.index(i)
		if r, ok := p.(*item.Refusal); ok {
			at.extra(r.Extra)
			if refusal != "" {
				at.move("joined with the refusal before")
			}
			refusal = joined(refusal, r.Refusal)
			continue
		}
		s, ok := textOf(p, at)
		if !ok {
			at.loseContent(noCounterpart)
			continue
		}
		if refusal != "" {
			at.move(reordered)
		}
		said = append(said, &item.OutputText{Text: s})
	}
	return said, refusal
}

// joined returns two texts with a line break between them.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// call adds a call to the turn, or opens a turn.
func (m *messages) call(it item.Item, at place) error {
	c, err := readCall(it, at)
	if err != nil {
		return err
	}
	if err := m.goOn(); err != nil {
		return err
	}
	t := &m.turn
	writeCall(&t.calls, c)
	t.ids = append(t.ids, c.id)
	m.mark(&t.from.calls)
	return nil
}

func readCall(it item.Item, at place) (calling, error) {
	if it.Type() == item.TypeCustomToolCall {
		v, err := item.As[item.CustomToolCall](it)
		if err != nil {
			return calling{}, err
		}
		at.identity(v.ID, v.Status, v.Extra)
		at.origin(v.Namespace, v.CreatedBy, v.Caller)
		return calling{id: v.CallID, name: v.Name, input: v.Input, custom: true}, nil
	}
	v, err := item.As[item.FunctionCall](it)
	if err != nil {
		return calling{}, err
	}
	at.identity(v.ID, v.Status, v.Extra)
	at.origin(v.Namespace, v.CreatedBy, v.Caller)
	return calling{id: v.CallID, name: v.Name, input: v.Arguments}, nil
}

func writeCall(w *writer, c calling) {
	w.open('{')
	w.text("id", c.id)
	holder, input := "function", "arguments"
	if c.custom {
		holder, input = "custom", "input"
	} else if c.input == "" {
		c.input = "{}"
	}
	w.text("type", holder)
	w.name(holder)
	w.open('{')
	w.text("name", c.name)
	w.text(input, c.input)
	w.close('}')
	w.close('}')
}

// close writes the turn, if one is open.
func (m *messages) close() error {
	for _, v := range m.behind {
		v.at.move(reordered)
		m.turn.addReasoning(v.value, m.options, v.at)
	}
	t := m.turn
	m.turn, m.behind = turn{}, nil
	if !t.speaks() && !t.isCalling() {
		if t.thinks() { // R6
			m.at.lose("reasoning with nothing behind it is left out")
		}
		return nil
	}
	m.waiting = append(m.waiting, t.ids...)
	w := newWriter()
	w.open('{')
	w.text("role", m.options.role(item.RoleAssistant))
	switch {
	case len(t.said) == 0:
		w.raw("content", "null")
	case t.short && len(t.said) == 1:
		m.options.writeText(w, "content", item.Text(t.said[0].(*item.OutputText).Text), m.at)
	default:
		m.options.writeText(w, "content", item.Parts(t.said...), m.at)
	}
	w.optText("refusal", t.refusal)
	m.options.writeReasoning(w, &t)
	if t.isCalling() {
		w.name("tool_calls")
		w.buf = append(append(append(w.buf, '['), t.calls.buf...), ']')
	}
	w.close('}')
	return m.add(w.buf, t.from)
}

func (o Options) writeReasoning(w *writer, t *turn) {
	name := o.Reasoning
	if name == ReasoningDetails {
		name = ReasoningPlain
		if len(t.details) > 0 {
			w.name(ReasoningDetails)
			w.open('[')
			for _, list := range t.details {
				eachElement(list, func(_ int, d item.JSON) { w.raw("", d) })
			}
			w.close(']')
		}
	}
	w.optText(name, strings.Join(t.thoughts, "\n"))
}
