// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// shape returns the request that an upstream receives, and notes about what it does not
// receive of the history. The error is an [*endpoint.RefusedError] that names what the
// upstream cannot do. What else its profile requires, the client does.
func (b *Backend) shape(r *server.Request, u *upstream) (*api.Request, []string, error) {
	own := *r.Request
	own.Model = u.sent(r.Model)
	// The server has these, and the upstream gets the whole history.
	own.PreviousResponseID, own.Conversation, own.Background, own.Stream, own.Metadata = "", "", nil, nil, ""
	own.Extra = slices.DeleteFunc(slices.Clone(own.Extra), func(m item.Member) bool { return m.Value == "null" })
	for _, name := range []string{"input", "stream", "background", "metadata", "type", "generate", "stream_id", "event_id"} {
		own.Extra.Delete(name)
	}
	chat := u.Dialect.Info().Name == endpoint.APIChat
	if own.Store = new(false); chat {
		own.Store = nil
	}
	p := past{b: b, u: u, r: r, profile: u.profile(), chat: chat, list: new(item.List), did: map[string]int{}}
	if err := p.all(); err != nil {
		return nil, nil, err
	}
	own.Input = p.list
	if len(own.Tools) == 0 && own.ToolChoice != "" {
		own.ToolChoice = "" // auto or none: some servers take neither without tools
	}
	switch {
	case chat:
		if err := p.asked(&own); err != nil {
			return nil, nil, err
		}
		own.Extra = append(own.Extra, r.Chat...)
	case len(r.Chat) > 0:
		return nil, nil, p.refuse(r.Chat[0].Name, "the Responses API, by which this upstream is asked, does not have it")
	}
	return &own, p.notes(), nil
}

// asked refuses what a request asks for and Chat Completions does not have. It removes
// what has no effect there.
func (p *past) asked(own *api.Request) error {
	own.StreamOptions = nil
	if own.Truncation == "disabled" {
		own.Truncation = ""
	}
	if len(own.Tools) == 0 {
		own.ParallelToolCalls, own.ToolChoice = nil, ""
	}
	if c := own.Reasoning; c != nil && c.Summary == "auto" { // as much as there is
		less := *c
		less.Summary = ""
		own.Reasoning = &less
	}
	// These are about items that the upstream cannot make.
	own.Include = slices.DeleteFunc(slices.Clone(own.Include), func(v string) bool { return v != api.IncludeLogprobs })
	probe := *own
	probe.Input = item.NewList(item.User("-"))
	_, losses, err := completions.AppendRequest(nil, &probe, completions.OptionsFor(&p.profile))
	var shape *item.ShapeError
	switch {
	case errors.As(err, &shape):
		return p.refuse(shape.Path, shape.Problem)
	case err != nil:
		return err
	}
	for _, l := range losses {
		if l.Kind == completions.LostMember || l.Kind == completions.LostContent {
			return p.refuse(l.Path, strings.TrimSuffix(l.What, " and is left out"))
		}
	}
	return nil
}

func (p *past) refuse(param, problem string) error {
	by := p.profile.Name
	if p.chat {
		by = "Chat Completions"
	}
	return &endpoint.RefusedError{By: by, Param: param, Problem: problem}
}

// past makes the history that an upstream receives.
type past struct {
	b       *Backend
	u       *upstream
	r       *server.Request
	profile endpoint.Profile
	chat    bool

	list *item.List
	told []item.Item // texts that wait, because nothing may come between a call and its output
	did  map[string]int
}

func (p *past) notes() (list []string) {
	if len(p.did) == 0 {
		return nil
	}
	for _, what := range slices.Sorted(maps.Keys(p.did)) {
		list = append(list, fmt.Sprintf("%d %s", p.did[what], what))
	}
	return list
}

func (p *past) all() error {
	items := p.r.Items
	said := 0 // how many items end with the last one that a model has made
	for i, it := range items {
		if it.IsCall() || it.Role() == item.RoleAssistant || it.Type() == item.TypeReasoning {
			said = i + 1
		}
	}
	for i, it := range items {
		switch {
		case it.IsOutput():
		case it.IsCall() && (i == 0 || !items[i-1].IsOutput()):
		default:
			p.flush()
		}
		if of, sealed := sealOf(it); sealed {
			keep, err := p.readable(it, of, i)
			if err != nil {
				return err
			}
			if !keep {
				continue
			}
		}
		if p.knows(it) {
			p.list.Append(it)
			continue
		}
		text, err := p.asText(i)
		own := i >= len(items)-p.r.Own
		v, unread := it.Decode()
		switch {
		case err != nil:
			return err
		case text == nil && own && unread == nil && isUnknown(v) && (it.ID() == "" || i >= said): // no model has made it: it is asked for now
			return p.refuse(p.place(i)+".type", fmt.Sprintf("the API has no item of the type %q, and the upstream would not get it", it.Type()))
		case it.Type() == item.TypeMCPApprovalResponse && own:
			return p.refuse(p.place(i), "it keeps no response of this gateway, so a request for approval cannot be answered here; ask it without the gateway")
		case text == nil:
			p.did[string(it.Type())+" left out"]++
		default:
			p.did[string(it.Type())+" became text"]++
			p.told = append(p.told, text...)
		}
	}
	p.flush()
	return nil
}

func (p *past) flush() {
	p.list.Append(p.told...)
	p.told = nil
}

// readable reports whether the upstream may have an item with an encrypted text. It may if
// it made it, or if there is no other upstream that could have. Without a compaction of
// unknown origin the history would be lost, so the first upstream of the model gets it.
func (p *past) readable(it item.Item, of seal, i int) (bool, error) {
	maker := p.b.seals.maker(of)
	if maker == p.u.number || maker == unknown && len(p.b.ups) == 1 {
		return true, nil
	}
	if it.Type() == item.TypeReasoning {
		p.did["encrypted reasoning of another upstream left out"]++
		return false, nil
	}
	if list, err := p.b.candidates(p.r.Model); maker == unknown && err == nil && list[0] == p.u {
		return true, nil
	}
	return false, p.refuse(p.place(i), "another upstream made this compaction, and only that one can read it")
}

// place returns the name of an item in errors.
func (p *past) place(i int) string {
	if own := i - (len(p.r.Items) - p.r.Own); own >= 0 {
		return fmt.Sprintf("input[%d]", own)
	}
	return "previous_response_id"
}

// ordinary reports whether every server knows the items of a type.
func ordinary(t item.Type) bool {
	switch t {
	case item.TypeMessage, item.TypeReasoning, item.TypeFunctionCall, item.TypeFunctionCallOutput,
		item.TypeCustomToolCall, item.TypeCustomToolCallOutput:
		return true
	}
	return false
}

// knows reports whether the upstream is sent an item as it is. An upstream of an unknown
// kind knows the items that it made itself, those of the tools that the request declares,
// and those that this program does not know.
func (p *past) knows(it item.Item) bool {
	t := it.Type()
	switch {
	case ordinary(t):
		return true
	case p.chat:
		return false
	case p.profile.Items != nil:
		return slices.Contains(p.profile.Items, string(t))
	case p.profile.Name != endpoint.Careful.Name && p.profile.Name != endpoint.Careful.Fallback, p.u.makes(t):
		return true
	}
	if v, err := it.Decode(); err != nil || v.ItemType() == "" || isUnknown(v) {
		return true
	}
	return p.declares(t)
}

func isUnknown(v item.Value) bool {
	_, unknown := v.(*item.Unknown)
	return unknown
}

// declares reports whether the request has a tool whose calls have a type, such as
// web_search for web_search_call.
func (p *past) declares(t item.Type) bool {
	name, _, _ := strings.Cut(string(t), "_call")
	name = strings.TrimSuffix(name, "_output")
	return slices.ContainsFunc(p.r.Tools, func(tool item.Tool) bool {
		have := tool.ToolType()
		return strings.HasPrefix(have, name) || strings.HasPrefix(string(t), have+"_")
	})
}
