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

// Failure describes why an endpoint refused a request or broke off its reply.
type Failure struct {
	// Class, Code, Status and Param are the error's. Reason is its message in short,
	// for the model.
	Class, Code, Param, Reason string
	Status                     int
	// Sent reports whether the request may have had an effect.
	Sent bool
	// Skip is the number of the view's items that the request left out. Mapped
	// reports whether the request's input was rewritten before it was sent, so that
	// Param does not refer to the input. Item is the index of the refused item in the
	// request, or -1 if it is unknown.
	Skip   int
	Mapped bool
	Item   int
}

// Mend decides whether the model can be asked again after the endpoint refused the
// request, with one of these changes:
//
//   - without the reasoning that the endpoint cannot read, once in a run;
//   - with the whole history, if it holds a compaction of another endpoint, or if the
//     endpoint does not know the conversation;
//   - without the one member that the endpoint does not accept;
//   - with a marker in place of the refused item, once for each item, or without the
//     reasoning if that item is reasoning.
//
// It returns the decision, which the caller must record, or nil. The caller must make
// sure that nothing of a reply has arrived, and that the request may be repeated.
func (s *State) Mend(f *Failure) session.Body {
	if f == nil || f.Sent {
		return nil
	}
	switch f.Class {
	case classEncryptedContent:
		list := s.view.Items()
		if packed := s.view.OpaqueCompaction(); !s.run.dropped && reasoningIn(list, list.Len()) > 0 {
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

// unreadable returns the decision to leave out the reasoning, once in a run, if the
// refused item i is reasoning: a marker cannot replace reasoning.
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

// forgotten returns the decision that follows when the endpoint does not know the
// conversation of the turn; nil if the turn has no conversation.
func (s *State) forgotten(f *Failure) session.Body {
	id := s.InConversation()
	if id == "" || f.Code == "model_not_found" {
		return nil
	}
	return session.Noticed{Turn: s.turn, Kind: session.NoticeWholeHistory, Text: fmt.Sprintf(
		"the endpoint does not know the conversation %s (%s): from now on each request carries the whole history, outside the conversation", id, f.Reason)}
}

// culprit returns the index of the refused item, and reports whether a marker can
// replace it. The item is the one that the error names, or the only image if the
// error is about an image. The index is -1 if it is unknown.
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

// spare returns the member of item i that the error names, if the item is valid
// without it, and "" otherwise.
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

// Blamed returns the entry of the refused item, or 0 if the error does not name it.
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

// placeIn parses an error's param, such as input[3].output or input.3, into an index
// into the input and the member of the item, if the param names one.
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

// fits reports whether a marker would replace the member at fault.
func fits(it item.Item, member string) bool {
	if it.Type() == item.TypeMessage {
		return member == "" || member == "content"
	}
	return member == "" || member == "output"
}

// replaceable reports whether a marker can replace item i and has not replaced it
// yet.
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

// imageCodes are the error codes that blame an image of the input without naming it.
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

// onlyImage returns the index of the only item with images that the endpoint has not
// accepted before. If it has accepted all items, it returns the only item with
// images.
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

// holdsImage reports whether a message or an output contains an image.
func holdsImage(it item.Item) bool {
	var content item.Content
	// Only these items have content; As skips the others without decoding them.
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

// Suspects returns the entries whose images may be the reason why a request was
// refused: those that no endpoint has accepted yet, or all if every one was accepted
// before. It returns nil if the endpoint names another reason.
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

// mayBeImages reports whether a server might refuse images with this status. It
// excludes statuses that certainly mean something else.
func mayBeImages(f *Failure) bool {
	switch f.Class {
	case classBadRequest, classServer, classNotFound, classTooLarge:
	default:
		return false
	}
	switch f.Status {
	case 400, 413, 415, 422, 500, 501:
		return true
	case 404: // a gateway may have no model of this name that accepts images
		return f.Code != "model_not_found"
	}
	return false
}
