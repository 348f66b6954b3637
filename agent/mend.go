// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// ItemRefused is implemented by errors of a [Model] that does not send a
// request's input as it is, so that what an endpoint says of an item's place is
// not about that input. It returns the index of the item that was refused in
// the request's own input, or -1 if it cannot tell. Without it, the place is
// read from the error's Param, such as input[3].output.
type ItemRefused interface {
	error
	RefusedItem() int
}

// mend decides whether the model can be asked again for what it refused: with
// the reasoning left out that the endpoint cannot read, once a run; with the whole
// history instead of what another endpoint has made of it, or of a conversation
// that the endpoint does not know; without the one member that the endpoint does
// not take; with a marker for the one item that a request was refused for, once an
// item; or without the reasoning, if that item is reasoning. It returns that decision, to be recorded, or nil. Nothing of a reply may
// have come, and the decision takes one retry out of the budget that the client
// draws on too.
func (r *Run) mend(failure error) session.Body {
	var e *endpoint.Error
	if !errors.As(failure, &e) || e.Sent {
		return nil
	}
	var decision session.Body
	switch e.Class {
	case endpoint.EncryptedContent:
		list := r.state.View().Items()
		if packed := r.state.View().Packed(); !r.state.ReasoningDropped() && plan.ReasoningIn(list, list.Len()) > 0 {
			decision = session.ReasoningDropped{Reason: reasonOf(e)}
		} else if packed > 0 {
			decision = session.Restored{Seq: packed}
		} else {
			return nil
		}
	case endpoint.BadRequest:
		i, mendable := r.culprit(failure, e)
		member := r.spare(e, i)
		if !mendable && member == "" {
			return r.unreadable(e, i)
		}
		seq, _ := r.state.View().Seq(i)
		decision = session.Quarantined{Seq: seq, Member: member, Reason: reasonOf(e)}
	case endpoint.NotFound, endpoint.PreviousResponse:
		if decision = r.forgotten(e); decision == nil {
			return nil
		}
	default:
		return nil
	}
	if !r.budget.Take() {
		return nil
	}
	return decision
}

// unreadable leaves the reasoning out, once a run, if item i of it is what a
// request was refused for: no marker can take its place.
func (r *Run) unreadable(e *endpoint.Error, i int) session.Body {
	list := r.state.View().Items()
	if i < 0 || i >= list.Len() || list.At(i).Type() != item.TypeReasoning || r.state.ReasoningDropped() || !r.budget.Take() {
		return nil
	}
	return session.ReasoningDropped{Reason: reasonOf(e)}
}

// maxReason bounds what a model is told of an endpoint's words, in bytes.
const maxReason = 300

// reasonOf is what the endpoint said, in short.
func reasonOf(e *endpoint.Error) string {
	reason, _ := tool.Sanitize(cmp.Or(e.Message, e.Code, string(e.Class)))
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}

// culprit returns the index of the item that a request was refused for, if one
// is named, or is the only image that an error about an image can mean, and
// whether a marker can take its place. The index is -1 if none is.
func (r *Run) culprit(failure error, e *endpoint.Error) (i int, mendable bool) {
	var mapped ItemRefused
	switch i, member, named := placeIn(e.Param); {
	case errors.As(failure, &mapped):
		switch i = mapped.RefusedItem(); {
		case i < 0 && imageCodes[e.Code]:
			return r.onlyImage()
		case i < 0:
			return -1, false
		}
		i += r.skip
		return i, r.replaceable(i)
	case named:
		i += r.skip
		return i, r.replaceable(i) && fits(r.state.View().Items().At(i), member)
	case imageCodes[e.Code]:
		return r.onlyImage()
	}
	return -1, false
}

// spare returns the member of item i that a request was refused for, if one is
// named that the item can do without, and "" otherwise.
func (r *Run) spare(e *endpoint.Error, i int) string {
	if i < 0 || i >= r.state.View().Items().Len() {
		return ""
	}
	_, member, named := placeIn(e.Param)
	if !named || !session.Spare(r.state.View().Items().At(i), member) {
		return ""
	}
	return member
}

// blamed returns the entry of the item that a request was refused for, 0 if
// none is named.
func (r *Run) blamed(failure error) int64 {
	var e *endpoint.Error
	if !errors.As(failure, &e) || e.Class != endpoint.BadRequest || e.Sent {
		return 0
	}
	i, _ := r.culprit(failure, e)
	if i < 0 || i >= r.state.View().Items().Len() {
		return 0
	}
	seq, _ := r.state.View().Seq(i)
	return seq
}

// placeIn reads an error's param, such as input[3].output or input.3: an index
// into the input, and the member of the item that is meant, if one is.
func placeIn(param string) (index int, member string, ok bool) {
	rest, ok := strings.CutPrefix(param, "input")
	if !ok || rest == "" || rest[0] != '[' && rest[0] != '.' {
		return 0, "", false
	}
	behind := strings.TrimLeft(rest[1:], "0123456789")
	index, err := strconv.Atoi(rest[1 : len(rest)-len(behind)])
	if rest[0] == '[' {
		if behind, ok = strings.CutPrefix(behind, "]"); !ok {
			return 0, "", false
		}
	}
	if name, dotted := strings.CutPrefix(behind, "."); dotted {
		member = name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz_"))]
	}
	return index, member, err == nil
}

// fits reports whether a marker takes the place of what is wrong.
func fits(it item.Item, member string) bool {
	if it.Type() == item.TypeMessage {
		return member == "" || member == "content"
	}
	return member == "" || member == "output"
}

// replaceable reports whether a marker can take the place of item i, and none
// has.
func (r *Run) replaceable(i int) bool {
	list := r.state.View().Items()
	if i >= list.Len() {
		return false
	}
	if _, done := r.state.View().Seq(i); done {
		return false
	}
	_, ok := session.Marker(list.At(i), "")
	return ok
}

// imageCodes are the error codes that say that an image of the input is at
// fault, and not which.
var imageCodes = map[string]bool{
	"invalid_image":                true,
	"invalid_image_format":         true,
	"invalid_base64_image":         true,
	"invalid_image_url":            true,
	"invalid_image_mode":           true,
	"image_too_large":              true,
	"image_too_small":              true,
	"image_parse_error":            true,
	"image_file_too_large":         true,
	"image_file_not_found":         true,
	"unsupported_image_media_type": true,
	"empty_image_file":             true,
	"failed_to_download_image":     true,
}

// onlyImage returns the one item with images that the endpoint has not taken
// before; if it has taken all, the only one there is.
func (r *Run) onlyImage() (int, bool) {
	list := r.state.View().Items()
	for _, from := range []int{r.state.Accepted(), 0} {
		found := -1
		for i := from; i < list.Len(); i++ {
			if !r.replaceable(i) || !holdsImage(list.At(i)) {
				continue
			}
			if found >= 0 {
				return -1, false
			}
			found = i
		}
		if found >= 0 {
			return found, true
		}
	}
	return -1, false
}

// holdsImage reports whether an image is among the parts of a message or an
// output.
func holdsImage(it item.Item) bool {
	var content item.Content
	// Decode would link every type of item.
	if m, err := item.As[item.Message](it); err == nil {
		content = m.Content
	} else if o, err := item.As[item.FunctionCallOutput](it); err == nil {
		content = o.Output
	} else if o, err := item.As[item.CustomToolCallOutput](it); err == nil {
		content = o.Output
	}
	for _, p := range content.Parts {
		if _, ok := p.(*item.InputImage); ok {
			return true
		}
	}
	return false
}
