// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Failure is what an endpoint said when it refused a request, or broke off.
type Failure struct {
	// Class, Code, Status and Param are those of the error. Reason is what it says,
	// in short, for the model.
	Class, Code, Param, Reason string
	Status                     int
	// Sent says that the request may have had an effect.
	Sent bool
	// Skip is how many of the view's items the request left out. Mapped says that the
	// request's input was rewritten on its way, so that Param is not about the input;
	// Item is the index of the item that was refused in the request, -1 if that is
	// not known.
	Skip   int
	Mapped bool
	Item   int
}

// Mend decides whether the model can be asked again for what it refused: with
// the reasoning left out that the endpoint cannot read, once a run; with the whole
// history instead of what another endpoint has made of it, or of a conversation
// that the endpoint does not know; without the one member that the endpoint does
// not take; with a marker for the one item that a request was refused for, once an
// item; or without the reasoning, if that item is reasoning. It returns that
// decision, to be recorded, or nil. The caller sees to it that nothing of a reply
// has come, and that the question may be repeated at all.
func (s *State) Mend(f *Failure) session.Body {
	if f == nil || f.Sent {
		return nil
	}
	switch f.Class {
	case classEncryptedContent:
		list := s.view.Items()
		if packed := s.view.Packed(); !s.run.dropped && reasoningIn(list, list.Len()) > 0 {
			return session.ReasoningDropped{Reason: f.Reason}
		} else if packed > 0 {
			return session.Restored{Seq: packed}
		}
	case classBadRequest:
		i, mendable := s.culprit(f)
		member := s.spare(f, i)
		if !mendable && member == "" {
			return s.unreadable(f, i)
		}
		seq, _ := s.view.Seq(i)
		return session.Quarantined{Seq: seq, Member: member, Reason: f.Reason}
	case classNotFound, classPreviousResponse:
		return s.forgotten(f)
	}
	return nil
}

// unreadable leaves the reasoning out, once a run, if item i of it is what a
// request was refused for: no marker can take its place.
func (s *State) unreadable(f *Failure, i int) session.Body {
	list := s.view.Items()
	if i < 0 || i >= list.Len() || list.At(i).Type() != item.TypeReasoning || s.run.dropped {
		return nil
	}
	return session.ReasoningDropped{Reason: f.Reason}
}

// reasoningIn counts the reasoning among the first items of a list.
func reasoningIn(list *item.List, first int) (n int) {
	for i := range min(first, list.Len()) {
		if list.At(i).Type() == item.TypeReasoning {
			n++
		}
	}
	return n
}

// forgotten is the decision that follows when the endpoint does not know the
// conversation that a turn was a part of; nil if it was of none.
func (s *State) forgotten(f *Failure) session.Body {
	id := s.InConversation()
	if id == "" || f.Code == "model_not_found" {
		return nil
	}
	return session.Noticed{Turn: s.turn, Kind: session.NoticeWholeHistory, Text: fmt.Sprintf(
		"the endpoint does not know the conversation %s (%s): from here on the whole history goes with each request, and is not part of it", id, f.Reason)}
}

// culprit returns the index of the item that a request was refused for, if one
// is named, or is the only image that an error about an image can mean, and
// whether a marker can take its place. The index is -1 if none is.
func (s *State) culprit(f *Failure) (i int, mendable bool) {
	switch i, member, named := placeIn(f.Param); {
	case f.Mapped && f.Item < 0 && imageCodes[f.Code]:
		return s.onlyImage()
	case f.Mapped && f.Item < 0:
		return -1, false
	case f.Mapped:
		i = f.Item + f.Skip
		return i, s.replaceable(i)
	case named:
		i += f.Skip
		return i, s.replaceable(i) && fits(s.view.Items().At(i), member)
	case imageCodes[f.Code]:
		return s.onlyImage()
	}
	return -1, false
}

// spare returns the member of item i that a request was refused for, if one is
// named that the item can do without, and "" otherwise.
func (s *State) spare(f *Failure, i int) string {
	if i < 0 || i >= s.view.Items().Len() {
		return ""
	}
	_, member, named := placeIn(f.Param)
	if !named || !session.Spare(s.view.Items().At(i), member) {
		return ""
	}
	return member
}

// Blamed returns the entry of the item that a request was refused for, 0 if
// none is named.
func (s *State) Blamed(f *Failure) int64 {
	if f == nil || f.Class != classBadRequest || f.Sent {
		return 0
	}
	i, _ := s.culprit(f)
	if i < 0 || i >= s.view.Items().Len() {
		return 0
	}
	seq, _ := s.view.Seq(i)
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
func (s *State) replaceable(i int) bool {
	list := s.view.Items()
	if i >= list.Len() {
		return false
	}
	if _, done := s.view.Seq(i); done {
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
func (s *State) onlyImage() (int, bool) {
	list := s.view.Items()
	for _, from := range []int{s.accepted, 0} {
		found := -1
		for i := from; i < list.Len(); i++ {
			if !s.replaceable(i) || !holdsImage(list.At(i)) {
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

// Suspects returns the entries whose images a request may have been refused for:
// those that no endpoint has taken yet, or all, if it has taken all. There are
// none where the endpoint says what else is wrong.
func (s *State) Suspects(f *Failure) map[int64]bool {
	if f == nil || f.Sent || f.Mapped || f.Param != "" || imageCodes[f.Code] || !mayBeImages(f) || s.kept.open != nil && !notBegun(f.Class) {
		return nil
	}
	list := s.view.Items()
	for _, from := range []int{s.accepted, 0} {
		seqs := map[int64]bool{}
		for i := from; i < list.Len(); i++ {
			if s.replaceable(i) && holdsImage(list.At(i)) {
				seq, _ := s.view.Seq(i)
				seqs[seq] = true
			}
		}
		if len(seqs) > 0 {
			return seqs
		}
	}
	return nil
}

// mayBeImages reports whether a status is one that servers were seen to refuse
// images with, or might: none of those that mean something else for sure.
func mayBeImages(f *Failure) bool {
	switch f.Class {
	case classBadRequest, classServer, classNotFound, classTooLarge:
	default:
		return false
	}
	switch f.Status {
	case 400, 413, 415, 422, 500, 501:
		return true
	case 404: // gateways have no model of that name that sees
		return f.Code != "model_not_found"
	}
	return false
}
