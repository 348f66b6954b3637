// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// form is what decides how a history is rewritten: the key of its derived list.
type form struct {
	profile *endpoint.Profile
	blind   bool // the model sees no images
	part    bool // of a history whose beginning the endpoint keeps: roles are counted there
	check   bool // only whether anything changes
	joined  int  // how often a message joined one that a request had ended with
}

// input rewrites the history where the profile wants it otherwise than it is.
// The rewritten history is kept with the list: what was sent once is not
// rewritten again. A history that needs no change is sent as it is. New items
// are looked at in any case, for one that no endpoint takes.
func (f *fitting) input() error {
	how := form{profile: f.p, blind: f.model.Images == endpoint.No, part: f.r.Conversation != "" || f.r.PreviousResponseID != ""}
	how.check = true
	changes, err := f.r.Input.Derive(how, how.rewrite)
	if err == nil && changes.Len() > 0 {
		how.check = false
		f.r.Input, err = how.derive(f.r.Input)
	}
	if err == nil && f.p.Alternate && !how.part {
		f.r.Input = endsWithUser(f.r.Input)
	}
	return err
}

// derive rewrites a list. Where a message joins one that an earlier request ended
// with, the list is rewritten anew, and remembered as such.
func (how form) derive(list *item.List) (*item.List, error) {
	const remembered = 4
	for how.joined = 0; how.joined < remembered; how.joined++ {
		if sent, err := list.Derive(how, how.rewrite); !errors.Is(err, errJoins) {
			return sent, err
		}
	}
	sent := new(item.List)
	err := how.rewrite(sent, list, 0)
	return sent, err
}

// rewrite is for [item.List.Derive]. To check, it appends an empty object for
// each change.
func (how form) rewrite(dst, src *item.List, from int) error {
	w := &rewriter{form: how, p: how.profile, src: src, dst: dst}
	lead := 0
	if w.p.Instructions == endpoint.Leading {
		lead = leading(src)
	}
	w.begin(from)
	for i := from; i < src.Len(); i++ {
		it := src.At(i)
		if w.behindBatch(i, it) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if i < lead {
			w.append(item.Item{}, true) // it is among the instructions
			continue
		}
		w.at = i
		if err := w.item(it); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.settle()
	return w.failure
}

// behindBatch reports whether an item comes after the calls and outputs of a
// reply: what was put by of them stands before it.
func (w *rewriter) behindBatch(i int, it item.Item) bool {
	switch {
	case it.IsOutput():
		return false
	case it.IsCall():
		return i > 0 && w.src.At(i-1).IsOutput()
	}
	return true
}

// rewriter is one pass over what a history has more than at the last one.
type rewriter struct {
	form
	p        *endpoint.Profile
	src, dst *item.List
	at       int         // the item's index in src
	told     []item.Item // calls and outputs of this batch that became text
	late     []item.Part // images and files of its outputs
	failure  error
	alternator
}

// put appends what an item became; a zero item is left out.
func (w *rewriter) put(it item.Item, changed bool) {
	if !it.IsZero() && len(w.p.OmitInItems) > 0 {
		less := it.Without(w.p.OmitInItems...)
		it, changed = less, changed || less != it
	}
	if w.p.OmitOutputOnly && !it.IsZero() {
		less := it.Without(endpoint.OutputOnly(string(it.Type()))...)
		it, changed = less, changed || less != it
	}
	if w.p.OutputIDs && it.IsOutput() && it.ID() == "" {
		named, err := it.With("id", item.Quote("fco_"+it.CallID()))
		if err == nil {
			it, changed = named, true
		}
	}
	if w.p.Alternate && !w.part {
		if err := w.alternate(it, changed); err != nil && w.failure == nil {
			w.failure = err
		}
		return
	}
	w.append(it, changed)
}

// append adds an item to what is sent, or, to check, an object for a change.
func (w *rewriter) append(it item.Item, changed bool) {
	switch {
	case !w.check:
		w.dst.Append(it)
	case changed:
		_ = w.dst.AppendRaw([]byte("{}")) // it is an object
	}
}

func (w *rewriter) refuse(problem string) error {
	return &endpoint.RefusedError{By: w.p.Name, Param: fmt.Sprintf("input[%d]", w.at), Problem: problem}
}

func (w *rewriter) item(it item.Item) error {
	switch change := w.change(it); change {
	case endpoint.Keep:
	case endpoint.Refuse:
		return w.refuse("this endpoint takes no items of type " + string(it.Type()))
	case endpoint.ToText:
		return w.asText(it)
	default:
		w.put(item.Item{}, true)
		return nil
	}
	switch it.Type() {
	case item.TypeMessage:
		return w.message(it)
	case item.TypeReasoning:
		return w.reasoning(it)
	case item.TypeFunctionCallOutput, item.TypeCustomToolCallOutput:
		return w.output(it)
	}
	w.put(it, false)
	return nil
}

// change is what becomes of an item as a whole. A call and its output fare
// alike.
func (w *rewriter) change(it item.Item) endpoint.Change {
	if w.p.Items == nil && !w.p.StrictNames && !w.p.ObjectArguments {
		return endpoint.Keep
	}
	if w.p.Items != nil && !slices.Contains(w.p.Items, string(it.Type())) {
		return w.p.OtherItems
	}
	if it.IsOutput() {
		if call, ok := w.callOf(it); ok {
			return w.change(call)
		}
	}
	switch it.Type() {
	case item.TypeFunctionCall:
		if w.p.ObjectArguments {
			args := textMember(it, "arguments")
			if v := item.JSON(strings.TrimSpace(args)); v == "" || v[0] != '{' || v.Valid() != nil {
				return endpoint.ToText
			}
		}
	case item.TypeCustomToolCall:
	default:
		return endpoint.Keep
	}
	if w.p.StrictNames && !validName(it.Name()) {
		return endpoint.ToText
	}
	return endpoint.Keep
}

// validName is ^[A-Za-z0-9_-]{1,64}$.
func validName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// maxBetween is how many items may stand between a call and its output.
const maxBetween = 1000

// callOf finds the call that an output answers: shortly before it.
func (w *rewriter) callOf(output item.Item) (item.Item, bool) {
	id := output.CallID()
	for i := w.at - 1; i >= max(w.at-maxBetween, 0); i-- {
		if it := w.src.At(i); it.IsCall() && it.CallID() == id {
			return it, true
		}
	}
	return item.Item{}, false
}

// reasoning keeps those that the endpoint takes.
func (w *rewriter) reasoning(it item.Item) error {
	whole := it
	keep := w.p.Reasoning == endpoint.ReasoningAll
	if w.p.Reasoning == endpoint.ReasoningText {
		r, err := item.As[item.Reasoning](it)
		if err != nil {
			return err
		}
		keep = len(r.Content) > 0
		it = it.Without("encrypted_content")
	}
	if !keep {
		it = item.Item{}
	}
	w.put(it, it != whole)
	return nil
}

// message gives a message the role and the form that the endpoint knows.
func (w *rewriter) message(it item.Item) error {
	role := it.Role()
	if !validRole(role) {
		return w.refuse(fmt.Sprintf("unknown role %q, want user, assistant, system or developer", role))
	}
	sent, err := w.typed(it, role)
	if err != nil {
		return err
	}
	short := w.p.ShortMessages && role == item.RoleAssistant
	if (short || !w.takesAllParts()) && hasParts(it) {
		m, err := item.As[item.Message](it)
		if err != nil {
			return err
		}
		parts, changed, err := w.parts(m.Content.Parts, role)
		switch {
		case err != nil:
			return err
		case short && m.ID == "":
			if sent, err = item.New(&item.Message{Role: role, Content: item.Text(item.Parts(parts...).Display())}); err != nil {
				return err
			}
		case changed:
			content, err := item.Parts(parts...).JSON()
			if err != nil {
				return err
			}
			if sent, err = sent.With("content", content); err != nil {
				return err
			}
		}
	}
	w.put(sent, sent != it)
	return nil
}

func hasParts(message item.Item) bool {
	content, _ := message.Member("content")
	return content != "" && content[0] == '['
}

func validRole(r item.Role) bool {
	switch r {
	case item.RoleUser, item.RoleAssistant, item.RoleSystem, item.RoleDeveloper:
		return true
	}
	return false
}

// typed sets the role and the type of a message.
func (w *rewriter) typed(it item.Item, role item.Role) (item.Item, error) {
	var err error
	if other, ok := w.p.Roles[string(role)]; ok {
		if it, err = it.With("role", item.Quote(other)); err != nil {
			return it, err
		}
	}
	if w.p.TypedMessages {
		if _, ok := it.Member("type"); !ok {
			return it.With("type", item.Quote(string(item.TypeMessage)))
		}
	}
	return it, nil
}

// asText says in a message what an item says that the endpoint does not take.
// Messages for calls and outputs wait until those that stay are answered, for
// nothing may stand between a call and its output.
func (w *rewriter) asText(it item.Item) error {
	switch {
	case it.IsCall():
		what := cmp.Or(textMember(it, "arguments"), textMember(it, "input"), it.JSON())
		w.told = append(w.told, item.Assistant(fmt.Sprintf("I call the tool %s:\n%s", cmp.Or(it.Name(), string(it.Type())), what)))
	case it.IsOutput():
		name := string(it.Type())
		if call, ok := w.callOf(it); ok {
			name = cmp.Or(call.Name(), string(call.Type()))
		}
		text := it.JSON()
		if content, ok := outputOf(it); ok {
			var err error
			if text, err = w.textOf(content, it.CallID()); err != nil {
				return err
			}
		}
		w.told = append(w.told, item.User(fmt.Sprintf("Output of the tool %s:\n%s", name, text)))
	default:
		w.put(item.Assistant(it.JSON()), true)
	}
	return nil
}
