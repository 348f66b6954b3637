// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import "strings"

// Recover returns the length of the complete part of a transcript: len(src), or the
// offset of the last element if [Append] was writing it when the program or the
// machine stopped. A caller that continues the file cuts it there and keeps the rest
// for the person to see.
//
// Text that a person typed stays. The end of a file counts as torn only if it is the
// beginning of something that Append writes: a tag without its end, on one line; a
// user, system, developer or assistant element without an id whose text is in a
// fence; a call, a response, a reasoning item or a reply with an id. An unlabelled
// fence that is not closed counts only if it contains no closing tag of an element.
// Any other unclosed element stays, and [Parse] reports it. The rule cannot
// distinguish a torn element from one of these kinds whose end a person deleted.
func Recover(src []byte) int {
	s := string(src)
	_, p := parseTree(&source{text: s}, "")
	if p.tail >= 0 && torn(s[p.tail:]) {
		return p.tail
	}
	return len(src)
}

// writtenTags are the elements that Append and AppendMark write.
const writtenTags = "user system developer assistant tool_call tool_response reasoning item " +
	RunTag + " " + TurnTag + " " + TurnEndTag + " " + CallTag + " " + DecisionTag + " " + NoticeTag + " " + NestedTag + " " + OwnTag

// torn reports whether the tail of a file, which is the beginning of an element, is
// the beginning of something that Append writes.
func torn(tail string) bool {
	name := tail[1:wordEnd(tail, 1)]
	whole := len(name)+1 < len(tail)
	known := false
	for tag := range strings.FieldsSeq(writtenTags) {
		known = known || tag == name || !whole && strings.HasPrefix(tag, name)
	}
	if !known || !whole {
		return known
	}
	end := strings.IndexAny(tail[1:], "<>\n") + 1
	if end == 0 {
		return true
	}
	if tail[end] != '>' {
		return false
	}
	plain := (name == "assistant" || name == "reasoning") && strings.Contains(tail[:end], " id=")
	return tornBody(tail, end+1, plain)
}

func wordEnd(s string, i int) int {
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	return i
}

// tornBody reports whether s[i:] is the beginning of content that Append writes.
// plain allows text without a fence.
func tornBody(s string, i int, plain bool) bool {
	for {
		i = skipSpace(s, i)
		if i == len(s) {
			return true
		}
		if n, closer := fenceAt(s, i); n > 0 {
			end := strings.Index(s[i+n:], closer)
			if end < 0 {
				return closer != "|RAW" || !holdsClosingTag(s[i+n:])
			}
			i += n + end + len(closer)
			continue
		}
		if s[i] != '<' {
			if !plain {
				return tornMark(s[i:])
			}
			i = find(s, i, "<")
			continue
		}
		end := strings.IndexAny(s[i+1:], "<>\n")
		if end < 0 {
			return true
		}
		if i += 1 + end; s[i] != '>' {
			return false
		}
		i++
	}
}

// tornMark reports whether s is the beginning of a fence's opening mark.
func tornMark(s string) bool {
	if len(s) < len("RAW:") {
		return strings.HasPrefix("RAW:", s)
	}
	return strings.HasPrefix(s, "RAW:") && strings.Trim(s[len("RAW:"):], "x") == ""
}
