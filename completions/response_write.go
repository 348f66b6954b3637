// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// AppendResponse appends a response to dst as a chat completion with one choice, whose message
// holds the whole reply. On error it returns dst unchanged; the error is an [*item.ShapeError] with
// the place of an unreadable item.
func AppendResponse(dst []byte, r *api.Response, o Options) ([]byte, []Loss, error) {
	if r == nil {
		return dst, nil, &item.ShapeError{Problem: "the response is nil"}
	}
	var losses []Loss
	at := place{to: &losses}
	a, err := o.answer(r.Output, at.at("output"))
	if err != nil {
		return dst, nil, err
	}
	w := appendTo(dst)
	w.open('{')
	o.writeHead(w, r, "chat.completion")
	w.name("choices")
	w.open('[')
	w.open('{')
	w.number("index", 0)
	w.name("message")
	o.writeAnswer(w, a)
	w.text("finish_reason", finishOf(r, a.isCalling()))
	if a.logprobs != "" {
		w.raw("logprobs", `{"content":`+a.logprobs+`}`)
	} else {
		w.raw("logprobs", "null") // the schema requires it
	}
	w.close('}')
	w.close(']')
	if r.Usage != nil {
		writeUsage(w, r.Usage)
	}
	if r.Error != nil {
		body, err := (&api.ErrorBody{Error: r.Error}).AppendJSON(nil)
		if err != nil {
			return dst, nil, err
		}
		w.raw("error", member(item.JSON(body), "error"))
	}
	w.optText("service_tier", r.ServiceTier)
	w.extra(r.Extra)
	w.close('}')
	if err := echoes(r, at); err != nil {
		return dst, nil, err
	}
	return w.buf, losses, nil
}

// echoes reports the members that a response repeats from its request; a chat completion does not
// have them.
func echoes(r *api.Response, at place) error {
	rest := *r
	rest.Output, rest.Extra = nil, nil
	body, err := rest.AppendJSON(nil)
	if err != nil {
		return err
	}
	o := at.open(item.JSON(body))
	for _, name := range []string{"id", "object", "created_at", "status", "model", "usage", "error", "incomplete_details", "service_tier"} {
		o.takeAny(name)
	}
	o.rest()
	return nil
}

// writeHead writes the common members of a completion and its chunks.
func (o Options) writeHead(w *writer, r *api.Response, kind string) {
	w.text("id", r.ID)
	w.text("object", kind)
	created := int64(0)
	if r.CreatedAt != nil {
		created = int64(*r.CreatedAt)
	}
	w.number("created", created)
	w.text("model", r.Model)
}

// answer is all items of a response as one message.
type answer struct {
	turn
	annotations item.JSON
	logprobs    item.JSON
}

func (o Options) answer(output []item.Item, at place) (*answer, error) {
	a := &answer{}
	m := &messages{options: o}
	for i, it := range output {
		at := at.index(i)
		var err error
		switch it.Type() {
		case item.TypeMessage:
			err = a.message(m, it, at)
		case item.TypeReasoning:
			err = a.reasoning(m, it, at)
		case item.TypeFunctionCall, item.TypeCustomToolCall:
			var c calling
			if c, err = readCall(it, at); err == nil {
				writeCall(&a.calls, c)
			}
		default:
			at.lose(fmt.Sprintf("%s has no counterpart and is left out", it))
		}
		if err != nil {
			return nil, placed(err, at)
		}
	}
	return a, nil
}

func (a *answer) message(m *messages, it item.Item, at place) error {
	v, err := item.As[item.Message](it)
	if err != nil {
		return err
	}
	at.identity(v.ID, v.Status, v.Extra)
	if a.speaks() {
		at.move("joined with the message before")
	}
	for i, p := range v.Content.Parts {
		t, ok := p.(*item.OutputText)
		if !ok {
			continue
		}
		a.keep(t, at.at("content").index(i), len(a.said) == 0)
		plain := *t
		plain.Annotations, plain.Logprobs = "", ""
		v.Content.Parts[i] = &plain
	}
	said, refusal := m.sayable(v.Content, at.at("content"))
	a.said, a.refusal = append(a.said, said...), joined(a.refusal, refusal)
	return nil
}

// keep keeps the members beside a text, which must be the first text: a choice has these members
// for the whole text.
func (a *answer) keep(t *item.OutputText, at place, first bool) {
	for name, v := range map[string]struct {
		given item.JSON
		kept  *item.JSON
	}{"annotations": {t.Annotations, &a.annotations}, "logprobs": {t.Logprobs, &a.logprobs}} {
		switch {
		case blank(v.given) || v.given.Valid() != nil:
		case first && *v.kept == "":
			*v.kept = trim(v.given)
		default:
			at.at(name).lose(noCounterpart)
		}
	}
}

func (a *answer) reasoning(m *messages, it item.Item, at place) error {
	v, err := item.As[item.Reasoning](it)
	if err != nil {
		return err
	}
	if m.options.Reasoning == "" {
		at.lose("Chat Completions has no reasoning")
		return nil
	}
	a.addReasoning(v, m.options, at)
	return nil
}

func (o Options) writeAnswer(w *writer, a *answer) {
	w.open('{')
	w.text("role", string(item.RoleAssistant))
	var texts []string
	for _, p := range a.said {
		texts = append(texts, p.(*item.OutputText).Text)
	}
	if len(texts) == 0 {
		w.raw("content", "null")
	} else {
		w.text("content", strings.Join(texts, "\n"))
	}
	if a.refusal == "" {
		w.raw("refusal", "null")
	} else {
		w.text("refusal", a.refusal)
	}
	if a.annotations != "" {
		w.raw("annotations", writeAnnotations(a.annotations))
	}
	o.writeReasoning(w, &a.turn)
	if a.isCalling() {
		w.name("tool_calls")
		w.buf = append(append(append(w.buf, '['), a.turn.calls.buf...), ']')
	}
	w.close('}')
}
