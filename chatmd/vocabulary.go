// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/typo"
)

// space is the white space of the language. Other Unicode spaces are text.
const space = " \t\r\n"

const byteOrderMark = "\uFEFF"

// mode says how the content of an element is read.
type mode int

const (
	textMode   mode = iota // text, fences, comments and the inline tags that are allowed there
	emptyMode              // no content
	listMode               // white space, comments and the elements that are allowed there
	opaqueMode             // anything up to the closing tag, kept unchanged
)

// tags is the vocabulary: the attributes of each tag and how its content is read. A
// tool declaration may be opaque, see [node.mode].
var tags = map[string]struct {
	mode  mode
	attrs string
}{
	"config": {emptyMode, "model max_tokens temperature reasoning_effort id show_tool_call base_url profile " +
		"tool_choice parallel_tool_calls tool_output max_turns budget collapse_reads auto_compact store description"},
	"tool": {listMode, "name command agent mcp_server server include includes strict optional client_id_env client_secret_env credentials " +
		"description local approval timeout start_timeout max_output parallel polling type form shell sandbox hosts"},
	"read": {emptyMode, "id path description"},

	"system":    {textMode, messageAttrs},
	"developer": {textMode, messageAttrs},
	"user":      {textMode, messageAttrs},
	"assistant": {textMode, assistantAttrs},
	"msg":       {textMode, "role name tool_call function_call " + assistantAttrs + " " + callAttrs + " output"},

	"tool_call":     {textMode, callAttrs},
	"tool_response": {textMode, "tool_call_id id status type output null members"},
	"reasoning":     {textMode, "id status encrypted content null members"},
	"summary":       {textMode, "type"},
	"item":          {textMode, "type"},

	"doc":    {emptyMode, "src local strip markdown sha256"},
	"img":    {emptyMode, "src local detail file_id"},
	"file":   {emptyMode, "src local filename detail file_id"},
	"agent":  {textMode, "src local"},
	"import": {emptyMode, "src namespace local"},

	RunTag:      {emptyMode, "agent resumes conversation of_session " + setupAttrs},
	TurnTag:     {emptyMode, "number continues conversation " + setupAttrs},
	TurnEndTag:  {emptyMode, "number status reason class response_id model service_tier request_id conversation profile window usage cost"},
	CallTag:     {emptyMode, "tool_call_id state repeatable"},
	DecisionTag: {emptyMode, "kind items by reason member kept content failure before after usage cost"},
	NoticeTag:   {emptyMode, "kind turn item_id tool_call_id text"},
	NestedTag:   {emptyMode, "tool_call_id turns tokens cost"},
	OwnTag:      {emptyMode, ""},

	"script":            {opaqueMode, ""},
	"shell_access":      {opaqueMode, ""},
	"moderator_runtime": {opaqueMode, ""},
}

const (
	setupAttrs     = "program model rehearsal endpoint api transport profile settings instructions tools files"
	messageAttrs   = "id status phase content null members"
	assistantAttrs = messageAttrs + " annotations logprobs refusal"
	callAttrs      = "tool_call_id function_name namespace id status type null members"
)

// knows reports whether attr belongs to the tag.
func knows(tag, attr string) bool {
	for name := range strings.FieldsSeq(tags[tag].attrs) {
		if name == attr {
			return true
		}
	}
	return false
}

// topTags are the tags allowed at the top level, in the order in which a hint lists
// them.
const topTags = "config tool system developer user assistant msg tool_call tool_response reasoning item import " +
	"script shell_access moderator_runtime"

func isTop(tag string) bool {
	if IsMark(tag) {
		return true
	}
	for t := range strings.FieldsSeq(topTags) {
		if t == tag {
			return true
		}
	}
	return false
}

// placement says how a tag is read in the content of an element.
type placement int

const (
	literal   placement = iota // text
	child                      // an element of the content
	misplaced                  // a mistake
	nextTop                    // a top-level element: the element before it was not closed
)

// place returns how the vocabulary tag is read inside parent. Words that people use
// as their own tags in prompts, such as <summary> or <file>, are text where they
// have no meaning.
func place(parent, tag string) placement {
	message := parent == "system" || parent == "developer" || parent == "user" || parent == "msg" || parent == "agent"
	body := message || parent == "assistant" || parent == "tool_call" || parent == "tool_response"
	switch tag {
	case "system", "developer", "user", "assistant", "msg", "tool_call", "tool_response", "reasoning":
		return nextTop
	case "config", "tool":
		return either(body || parent == "tool", misplaced, literal)
	case "doc":
		return either(body || parent == "item", child, literal)
	case "img", "file":
		if message || parent == "tool_response" {
			return child
		}
		return either(body, misplaced, literal)
	case "agent":
		return either(message, child, either(body, misplaced, literal))
	case "import":
		return either(message, child, literal)
	case "summary":
		return either(parent == "reasoning", child, literal)
	case "read":
		return either(parent == "tool", child, literal)
	}
	return literal
}

// placeIn is like [place] for the content of an element, and treats the long form of
// a message according to its role.
func placeIn(parent *node, tag string) placement {
	if tag == "import" && parent.tag == "msg" {
		switch strings.ToLower(parent.value("role")) {
		case "user", "system", "developer":
		default:
			return literal
		}
	}
	return place(parent.tag, tag)
}

func either(cond bool, yes, no placement) placement {
	if cond {
		return yes
	}
	return no
}

// home says where a misplaced tag belongs.
func home(tag string) string {
	switch tag {
	case "doc":
		return "<doc/> belongs inside a message, a tool call or a tool response"
	case "img", "file":
		return "<" + tag + "/> belongs inside a message or a tool response"
	case "agent":
		return "<agent> belongs inside a message"
	case "summary":
		return "<summary> belongs inside <reasoning>"
	case "read":
		return "<read/> belongs inside <tool name=\"read_file\">"
	}
	return "<" + tag + "> belongs at the top level"
}

// Suggest returns the word of a space-separated list that was probably meant, or "".
// It is for hints in messages.
func Suggest(word, list string) string { return suggest(word, list) }

// suggest returns the word of the list that was probably meant, or "".
func suggest(word, list string) string {
	word = strings.ToLower(word)
	best, distance := "", max(2, len(word)/3)+1
	if len(word) > 40 {
		return ""
	}
	for w := range strings.FieldsSeq(list) {
		d := typo.Distance(word, w)
		if d < distance && d < len(w) {
			best, distance = w, d
		}
	}
	return best
}
