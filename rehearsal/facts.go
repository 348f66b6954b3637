// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// facts is the content of a request, in the form that turns need.
type facts struct {
	request *api.Request
	items   []item.Item
	at      position
	calls   []fact
	// userImages are the images of all user messages.
	userImages []*item.InputImage
	lastUser   string
	system     []string
}

// fact is one call and its output.
type fact struct {
	name   string
	args   string
	output item.Content
	round  int // the round of the call
}

// position identifies the next turn.
type position struct {
	round int // number of user messages after a reply of the model
	turn  int // number of the model's turns since then
	total int // number of all turns of the model
}

// factsOf collects the facts of a checked request.
func factsOf(req *api.Request, items []item.Item) (*facts, error) {
	f := &facts{request: req, items: items}
	if req.Instructions != "" {
		f.system = append(f.system, req.Instructions)
	}
	var count counter
	byID := map[string]int{}
	var behind []int // calls with the most recent outputs
	for _, it := range items {
		v, err := it.Decode()
		if err != nil {
			return nil, err
		}
		if m, ok := v.(*item.Message); ok && f.carried(m, behind, byID) {
			continue
		}
		count.add(it)
		if it.IsOutput() {
			if i, ok := byID[it.CallID()]; ok {
				behind = append(behind, i)
			}
		} else {
			behind = nil
		}
		switch v := v.(type) {
		case *item.Message:
			if !session.IsBreakNote(it) { // it is not a person's message
				f.message(v)
			}
		case *item.FunctionCall:
			byID[v.CallID] = len(f.calls)
			f.calls = append(f.calls, fact{name: v.Name, args: v.Arguments, round: count.round})
		case *item.CustomToolCall:
			byID[v.CallID] = len(f.calls)
			f.calls = append(f.calls, fact{name: v.Name, args: v.Input, round: count.round})
		case *item.FunctionCallOutput:
			f.calls[byID[v.CallID]].output = v.Output
		case *item.CustomToolCallOutput:
			f.calls[byID[v.CallID]].output = v.Output
		}
	}
	f.at = count.end()
	return f, nil
}

func (f *facts) message(m *item.Message) {
	switch m.Role {
	case item.RoleUser:
		f.lastUser = textOf(m.Content)
		for _, p := range m.Content.Parts {
			if img, ok := p.(*item.InputImage); ok {
				f.userImages = append(f.userImages, img)
			}
		}
	case item.RoleSystem, item.RoleDeveloper:
		f.system = append(f.system, textOf(m.Content))
	}
}

// textOf returns the texts of a content, without images and files.
func textOf(c item.Content) string {
	if c.IsText() {
		return c.Text
	}
	var texts []string
	for _, p := range c.Parts {
		switch p := p.(type) {
		case *item.InputText:
			texts = append(texts, p.Text)
		case *item.OutputText:
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// question returns the last line of a text that is not blank. If documents precede
// it, this is the actual question.
func question(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// counter finds the position by walking over the history. A group of items from the
// model is a complete turn if it contains a call, or a message that did not break
// off and does not introduce a call. Other groups are remains of a stream that broke
// off, and their turn is played again.
type counter struct {
	position
	open  bool // inside a group of items from the model
	whole bool // the group is a complete turn
	said  bool // the model has replied since the last user message
}

func (c *counter) add(it item.Item) {
	switch {
	case session.IsBreakNote(it):
		c.open, c.whole = false, false
	case it.Type() == item.TypeMessage && it.Role() == item.RoleUser:
		c.close()
		if c.said {
			c.round, c.turn, c.said = c.round+1, 0, false
		}
	case it.Type() == item.TypeMessage && it.Role() != item.RoleAssistant:
		// Instructions may come at any time and do not belong to a turn.
	case it.IsOutput():
		c.close()
	default:
		c.open, c.said = true, true
		c.whole = c.whole || endsTurn(it)
	}
}

func endsTurn(it item.Item) bool {
	phase, _ := it.Member("phase")
	switch it.Type() {
	case item.TypeReasoning:
		return false
	case item.TypeMessage:
		return it.Status() != item.StatusIncomplete && phase != item.Quote(phaseCommentary)
	}
	return true
}

// close ends a group of items from the model.
func (c *counter) close() {
	if c.open && c.whole {
		c.turn++
		c.total++
	}
	c.open, c.whole = false, false
}

func (c *counter) end() position {
	c.close()
	return c.position
}
