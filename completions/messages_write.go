// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// FromItems converts items to a list of chat messages. The reasoning, texts and calls of one turn
// of the model become one message. The losses include ids and states of items, which messages do
// not have.
//
// Outputs of tools become text. Their images and files follow in one user message after all outputs
// of the same calls; the text holds a marker for each.
//
// The error is an [*item.ShapeError] with the place of an unreadable item or an unknown role, or
// [ErrNothing].
func FromItems(list *item.List, o Options) ([]byte, []Loss, error) {
	var losses []Loss
	dst := new(item.List)
	if err := o.write(dst, list, 0, place{&losses, "input"}); err != nil {
		return nil, nil, err
	}
	if dst.Len() == 0 {
		return nil, losses, fmt.Errorf("input: %w", ErrNothing)
	}
	text, err := dst.MarshalJSON()
	return text, losses, err
}

// write appends to dst the messages for the items of src from an index on.
func (o Options) write(dst, src *item.List, from int, at place) error {
	m := &messages{options: o, dst: dst, src: src, at: at}
	for i := from; i < src.Len(); i++ {
		if err := m.item(i); err != nil {
			return err
		}
	}
	return m.end()
}

// messages converts items in order. The model's turn stays open until another kind of item comes.
// Items that must not come between calls and their outputs wait until after the outputs.
type messages struct {
	options Options
	dst     *item.List
	src     *item.List
	at      place // position in the input

	turn    turn
	behind  []thought
	waiting []string // calls of the last turn without an output
	until   int      // index of one of their outputs
	later   []int    // items waiting for the outputs
	pending writer   // parts of the user message that follows the outputs

	origins *[]origin // origins of the messages; nil if not needed
	now     int       // the current item
	shown   []int     // the items whose parts are in pending
}

// add appends a message that was made from the items of an origin.
func (m *messages) add(text []byte, from origin) error {
	if m.origins != nil {
		*m.origins = append(*m.origins, from)
	}
	return m.dst.AppendRaw(text)
}

// mark records the current item, if origins are needed.
func (m *messages) mark(list *[]int) {
	if m.origins != nil {
		*list = append(*list, m.now)
	}
}

func (m *messages) item(i int) error {
	m.now = i
	it := m.src.At(i)
	at := m.at.index(i)
	if !it.IsOutput() && m.must(i) {
		at.move("moved: outputs follow their calls at once")
		m.later = append(m.later, i)
		return nil
	}
	switch it.Type() {
	case item.TypeMessage:
		return m.message(it, at)
	case item.TypeReasoning:
		return placed(m.reasoning(it, at), at)
	case item.TypeFunctionCall, item.TypeCustomToolCall:
		return placed(m.call(it, at), at)
	case item.TypeFunctionCallOutput, item.TypeCustomToolCallOutput:
		return placed(m.output(it, at), at)
	}
	at.lose(fmt.Sprintf("%s has no counterpart and is left out", it))
	return nil
}

// must reports whether an item has to wait for outputs of earlier calls.
func (m *messages) must(i int) bool {
	open := m.waiting
	if len(open) == 0 && !m.speaks(i) {
		open = m.turn.ids
	}
	if len(open) == 0 {
		return false
	}
	if i < m.until && slices.Contains(open, m.src.At(m.until).CallID()) {
		return true
	}
	for k := i + 1; k < m.src.Len(); k++ {
		if it := m.src.At(k); it.IsOutput() && slices.Contains(open, it.CallID()) {
			m.until = k
			return true
		}
	}
	m.waiting = nil // the outputs never come
	return false
}

// speaks reports whether the item is from the model and may join its turn.
func (m *messages) speaks(i int) bool {
	switch it := m.src.At(i); it.Type() {
	case item.TypeMessage:
		return it.Role() == item.RoleAssistant
	case item.TypeFunctionCallOutput, item.TypeCustomToolCallOutput:
		return false
	}
	return true
}

func (m *messages) message(it item.Item, at place) error {
	v, err := item.As[item.Message](it)
	if err != nil {
		return placed(err, at)
	}
	at.identity(v.ID, v.Status, v.Extra)
	switch v.Role {
	case item.RoleAssistant:
		if v.Phase != "" {
			at.at("phase").lose(noCounterpart)
		}
		return m.spoken(v, at.at("content"))
	case item.RoleUser, item.RoleSystem, item.RoleDeveloper:
	default:
		return shapeError(at.path+".role", fmt.Sprintf("unknown role %q", v.Role))
	}
	if err := m.end(); err != nil {
		return err
	}
	w := newWriter()
	w.open('{')
	w.text("role", m.options.role(v.Role))
	if !m.content(w, v.Content, at.at("content")) {
		return nil
	}
	w.close('}')
	return m.add(w.buf, origin{content: []int{m.now}})
}

// content writes the content of a message that is not from the model, and reports whether there is
// any.
func (m *messages) content(w *writer, c item.Content, at place) bool {
	switch {
	case c.IsText() && c.Text == "", !c.IsText() && len(c.Parts) == 0:
		at.lose("says nothing and is left out")
		return false
	case c.IsText(), len(c.Parts) == 1 && allText(c):
		m.options.writeText(w, "content", c, at)
		return true
	}
	w.name("content")
	w.open('[')
	n := 0
	for i, p := range c.Parts {
		if writePart(w, p, at.index(i)) {
			n++
		}
	}
	w.close(']')
	return n > 0
}

// output writes the output of a call.
func (m *messages) output(it item.Item, at place) error {
	id := it.CallID()
	if err := m.close(); err != nil {
		return err
	}
	out, err := readOutput(it, at)
	if err != nil {
		return err
	}
	w := newWriter()
	w.open('{')
	w.text("role", roleTool)
	w.text("tool_call_id", id)
	m.outputContent(w, out, at.at("output"))
	w.close('}')
	if err := m.add(w.buf, origin{content: []int{m.now}}); err != nil {
		return err
	}
	if i := slices.Index(m.waiting, id); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	if len(m.waiting) > 0 {
		return nil
	}
	return m.resume()
}

// resume continues after the outputs of a turn's calls, with their images and the waiting items.
func (m *messages) resume() error {
	m.waiting = nil
	if err := m.flush(); err != nil {
		return err
	}
	later := m.later
	m.later = nil
	for _, i := range later {
		if err := m.item(i); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the message with the images and files that outputs could not hold.
func (m *messages) flush() error {
	if len(m.pending.buf) == 0 {
		return nil
	}
	w := newWriter()
	w.open('{')
	w.text("role", string(item.RoleUser))
	w.name("content")
	w.buf = append(append(append(w.buf, '['), m.pending.buf...), "]}"...)
	shown := m.shown
	m.pending, m.shown = writer{}, nil
	return m.add(w.buf, origin{content: shown, parts: true})
}

func readOutput(it item.Item, at place) (item.Content, error) {
	if it.Type() == item.TypeCustomToolCallOutput {
		v, err := item.As[item.CustomToolCallOutput](it)
		if err != nil {
			return item.Content{}, err
		}
		at.identity(v.ID, v.Status, v.Extra)
		at.origin("", v.CreatedBy, v.Caller)
		return v.Output, nil
	}
	v, err := item.As[item.FunctionCallOutput](it)
	if err != nil {
		return item.Content{}, err
	}
	at.identity(v.ID, v.Status, v.Extra)
	at.origin(v.Namespace, v.CreatedBy, v.Caller)
	if v.Name != "" {
		at.at("name").label()
	}
	return v.Output, nil
}

// outputContent writes an output as text, and keeps its images and files for the message that
// follows.
func (m *messages) outputContent(w *writer, c item.Content, at place) {
	if allText(c) {
		m.options.writeText(w, "content", c, at)
		return
	}
	shown := make([]item.Part, len(c.Parts))
	for i, p := range c.Parts {
		shown[i] = p
		if _, ok := textOf(p, place{}); ok {
			continue
		}
		shown[i] = &item.InputText{Text: item.Parts(p).Display()}
		if writePart(&m.pending, p, at.index(i)) {
			m.mark(&m.shown)
			at.index(i).move("follows in a user message, with a marker in its place")
		}
	}
	m.options.writeText(w, "content", item.Parts(shown...), at)
}

// end closes the model's turn and its pending messages.
func (m *messages) end() error {
	if err := m.close(); err != nil {
		return err
	}
	if err := m.resume(); err != nil {
		return err
	}
	return m.close()
}

// identity reports the ids and states of items as lost, unless this package made them up.
func (p place) identity(id, status string, x item.Extra) {
	made := isMade(id)
	if id != "" && !made {
		p.at("id").label()
	}
	if status != "" && !(made && status == item.StatusCompleted) {
		p.at("status").label()
	}
	p.extra(x)
}

// origin reports the caller of a call and the namespace of its tool as lost.
func (p place) origin(namespace, createdBy string, caller *item.Caller) {
	if namespace != "" {
		p.at("namespace").label()
	}
	if caller != nil {
		p.at("caller").label()
	}
	if createdBy != "" {
		p.at("created_by").label()
	}
}
