// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// form is everything that decides how a history is rewritten. It is the key of the derived list.
type form struct {
	profile *endpoint.Profile
	blind   bool // the model does not accept images
	part    bool // the endpoint holds the beginning of the history, so roles cannot be checked here
	check   bool // only report whether anything changes
	joined  int  // number of times a message was joined to the last one of an earlier request
}

// input rewrites the history if the profile requires it. The rewritten history is kept with the
// list, so items that were sent before are not rewritten again. A history that needs no change is
// sent unchanged. New items are always checked for ones that no endpoint accepts.
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

// derive rewrites a list. If a message must be joined to the last one of an earlier request, it
// rewrites the whole list again and remembers that.
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

// rewrite is the function for [item.List.Derive]. In a check, it appends an empty object for each
// change.
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
			w.append(item.Item{}, true) // the message is part of the instructions
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

// behindBatch reports whether an item follows the calls and outputs of a reply. Deferred items of
// the batch come before it.
func (w *rewriter) behindBatch(i int, it item.Item) bool {
	switch {
	case it.IsOutput():
		return false
	case it.IsCall():
		return i > 0 && w.src.At(i-1).IsOutput()
	}
	return true
}

// rewriter is one pass over the new items of a history.
type rewriter struct {
	form
	p        *endpoint.Profile
	src, dst *item.List
	at       int         // index of the current item in src
	told     []item.Item // calls and outputs of this batch, as text
	late     []item.Part // images and files from outputs of this batch
	failure  error
	alternator
}

// put appends the rewritten form of an item; a zero item is left out.
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

// append adds an item to the result or, in a check, an object for a change.
func (w *rewriter) append(it item.Item, changed bool) {
	switch {
	case !w.check:
		w.dst.Append(it)
	case changed:
		_ = w.dst.AppendRaw([]byte("{}")) // always a valid object
	}
}

func (w *rewriter) refuse(problem string) error {
	return &endpoint.RefusedError{By: w.p.Name, Param: fmt.Sprintf("input[%d]", w.at), Problem: problem}
}

func (w *rewriter) item(it item.Item) error {
	switch change := w.change(it); change {
	case endpoint.Keep:
	case endpoint.Refuse:
		return w.refuse("this endpoint does not accept items of type " + string(it.Type()))
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

// change returns what to do with a whole item. A call and its output are treated alike.
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

// validName reports whether name matches ^[A-Za-z0-9_-]{1,64}$.
func validName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// maxBetween is the maximum number of items between a call and its output.
const maxBetween = 1000

// callOf returns the call that an output answers.
func (w *rewriter) callOf(output item.Item) (item.Item, bool) {
	id := output.CallID()
	for i := w.at - 1; i >= max(w.at-maxBetween, 0); i-- {
		if it := w.src.At(i); it.IsCall() && it.CallID() == id {
			return it, true
		}
	}
	return item.Item{}, false
}

// reasoning keeps the reasoning items that the endpoint accepts.
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

// message gives a message the role and the form that the endpoint accepts.
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

// asText replaces an item that the endpoint does not accept by a message with its content. Messages
// for calls and outputs are deferred until the remaining calls are answered, because nothing may
// come between a call and its output.
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

func textMember(it item.Item, name string) string {
	v, _ := it.Member(name)
	s, _ := v.Unquote()
	return s
}

// outputOf returns the content of an output that is text or parts.
func outputOf(it item.Item) (item.Content, bool) {
	switch it.Type() {
	case item.TypeFunctionCallOutput:
		v, err := item.As[item.FunctionCallOutput](it)
		if err == nil {
			return v.Output, true
		}
	case item.TypeCustomToolCallOutput:
		v, err := item.As[item.CustomToolCallOutput](it)
		if err == nil {
			return v.Output, true
		}
	}
	return item.Content{}, false
}

// output gives an output the form that the endpoint accepts.
func (w *rewriter) output(it item.Item) error {
	if w.p.Outputs != endpoint.OutputString && w.takesAllParts() {
		w.put(it, false)
		return nil
	}
	raw, _ := it.Member("output")
	if raw == "" || raw[0] != '[' {
		w.put(it, false)
		return nil
	}
	content, ok := outputOf(it)
	if !ok {
		w.put(it, false) // unknown content is sent unchanged
		return nil
	}
	if w.p.Outputs == endpoint.OutputString {
		text, err := w.textOf(content, it.CallID())
		if err != nil {
			return err
		}
		sent, err := it.With("output", item.Quote(text))
		w.put(sent, true)
		return err
	}
	parts, changed, err := w.parts(content.Parts, "")
	if err != nil || !changed {
		w.put(it, false)
		return err
	}
	list, err := item.Parts(parts...).JSON()
	if err != nil {
		return err
	}
	sent, err := it.With("output", list)
	w.put(sent, true)
	return err
}

// textOf returns the text of an output. It defers the output's images and files to a message after
// the batch.
func (w *rewriter) textOf(content item.Content, callID string) (string, error) {
	if content.IsText() {
		return content.Text, nil
	}
	parts, _, err := w.parts(content.Parts, "")
	if err != nil {
		return "", err
	}
	var lines []string
	images := 0
	for _, p := range parts {
		switch p := p.(type) {
		case *item.InputText:
			lines = append(lines, p.Text)
		case *item.InputImage, *item.InputFile:
			if images++; images == 1 {
				w.late = append(w.late, &item.InputText{Text: "From the output of " + callID + ":"})
			}
			w.late = append(w.late, p)
		default:
			lines = append(lines, item.Parts(p).Display())
		}
	}
	if images > 0 {
		lines = append(lines, fmt.Sprintf("(%d of its parts, images or files, follow in the next message)", images))
	}
	return strings.Join(lines, "\n"), nil
}

// flush appends the deferred items: the messages for calls and outputs, and one message with the
// images and files.
func (w *rewriter) flush() error {
	for _, it := range w.told {
		w.put(it, true)
	}
	w.told = nil
	if len(w.late) == 0 {
		return nil
	}
	message, err := item.UserParts(w.late...)
	if err != nil { // the endpoint judges what a history has
		message, err = item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(w.late...)})
	}
	w.late = nil
	if err == nil {
		w.put(message, true)
	}
	return err
}

// parts replaces the parts that the endpoint or the model does not accept by text that describes
// them. The role "" means a tool's output. An image in a user message is refused, not replaced, if
// the model does not accept images.
func (w *rewriter) parts(parts []item.Part, role item.Role) ([]item.Part, bool, error) {
	changed := false
	out := slices.Clone(parts)
	for i, p := range parts {
		why := w.untaken(p)
		switch {
		case why == "":
		case role == item.RoleUser && w.blind && p.PartType() == imageType:
			return nil, false, w.refuse("the message holds an image, and the model does not accept images")
		default:
			changed = true
			text := fmt.Sprintf("%s (not shown: %s)", item.Parts(p).Display(), why)
			out[i] = &item.InputText{Text: text}
			if role == item.RoleAssistant {
				out[i] = &item.OutputText{Text: text, Annotations: "[]"}
			}
		}
	}
	return out, changed, nil
}

// takesAllParts reports whether every part is accepted.
func (how form) takesAllParts() bool {
	p := how.profile
	return p.Parts == nil && !how.blind && p.Images == endpoint.AnySource && p.Files == endpoint.AnySource
}

const imageType = "input_image"

// untaken returns why a part is not accepted, or "".
func (w *rewriter) untaken(p item.Part) string {
	if w.p.Parts != nil && !slices.Contains(w.p.Parts, p.PartType()) {
		return "this endpoint takes no " + p.PartType()
	}
	switch p := p.(type) {
	case *item.InputImage:
		if w.blind {
			return "the model takes no images"
		}
		return unreachable(w.p.Images, p.ImageURL, p.FileID)
	case *item.InputFile:
		return unreachable(w.p.Files, p.FileURL, p.FileID)
	}
	return ""
}

// unreachable returns why a source is not accepted, or "".
func unreachable(takes endpoint.Source, url, fileID string) string {
	remote := url != "" && !strings.HasPrefix(url, "data:")
	switch {
	case takes == endpoint.NoneOfThem:
		return "this endpoint takes none"
	case takes != endpoint.AnySource && fileID != "":
		return "this endpoint stores no files"
	case takes == endpoint.DataOnly && remote:
		return "this endpoint fetches no URLs"
	}
	return ""
}
