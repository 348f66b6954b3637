// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// A shape is what the API allows as a value. Only the members of a request that the response repeats
// have shapes: a backend that ignores nonsense in them would otherwise make a response that its client
// cannot read. TestShapes compares them with the schema of the API.
type shape struct {
	kind     string   // "a string", "a number", "an integer", "a boolean", "an array" or "an object"
	or       *shape   // a value of another kind is also allowed
	null     bool     // null is also allowed
	words    []string // the allowed strings; nil: all
	pattern  *lazyregexp.Regexp
	least    int64 // the smallest number of characters or elements, and the smallest integer
	most     int64 // the largest number of characters or elements, and the largest integer; 0 means no limit
	each     *shape
	members  members // of an object; nil: any
	required []string
	variants map[string]*shape // of an object, by its type
	open     bool              // other types are also allowed
}

type members map[string]*shape

var (
	anyText = &shape{kind: "a string"}
	boolean = &shape{kind: "a boolean"}
	number  = &shape{kind: "a number"}
	integer = &shape{kind: "an integer", least: math.MinInt64}
	texts   = listOf(anyText)
	free    = &shape{kind: "an object"} // such as a JSON Schema
)

func oneOf(list ...string) *shape     { return &shape{kind: "a string", words: list} }
func listOf(of *shape) *shape         { return &shape{kind: "an array", each: of} }
func textOf(least, most int64) *shape { return &shape{kind: "a string", least: least, most: most} }

func fields(m members, required ...string) *shape {
	return &shape{kind: "an object", members: m, required: required}
}

// byType returns the shape of an object that its type decides.
func byType(variants map[string]*shape) *shape { return &shape{kind: "an object", variants: variants} }

func (s shape) orNull() *shape {
	s.null = true
	return &s
}

func (s shape) count(least, most int64) *shape {
	s.least, s.most = least, most
	return &s
}

func (s shape) orElse(other *shape) *shape {
	s.or = other
	return &s
}

type bodyShape struct {
	name string
	*shape
}

// bodyShapes are the shapes of the members of a request.
var bodyShapes = []bodyShape{
	{"service_tier", oneOf("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")},
	{"truncation", oneOf("auto", "disabled")},
	{"safety_identifier", textOf(0, 64)},
	{"reasoning", fields(members{
		"mode":             anyText,
		"effort":           oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max").orNull(),
		"summary":          oneOf("auto", "concise", "detailed").orNull(),
		"context":          oneOf("auto", "current_turn", "all_turns").orNull(),
		"generate_summary": oneOf("auto", "concise", "detailed").orNull(),
	})},
	{"text", fields(members{"verbosity": oneOf("low", "medium", "high").orNull(), "format": byType(map[string]*shape{
		"text":        fields(nil),
		"json_object": fields(nil),
		"json_schema": fields(members{
			"name": {kind: "a string", pattern: toolName}, "schema": free, "description": anyText, "strict": boolean.orNull(),
		}, "name", "schema"),
	})})},
	{"tools", listOf(toolShape())},
	{"tool_choice", choices},
}

// callers are the allowed_callers of tools.
var callers = listOf(oneOf("direct", "programmatic")).orNull().count(1, 0)

// toolShape returns the shape of the definition of a tool. Tools of other types are for an upstream to judge.
func toolShape() *shape {
	function := members{
		"name": anyText, "description": anyText.orNull(), "parameters": free.orNull(), "output_schema": free.orNull(),
		"strict": boolean.orNull(), "defer_loading": boolean, "allowed_callers": callers.count(0, 0),
	}
	custom := fields(members{"name": anyText, "description": anyText, "defer_loading": boolean, "allowed_callers": callers, "format": byType(map[string]*shape{
		"text":    fields(nil),
		"grammar": fields(members{"syntax": oneOf("lark", "regex"), "definition": anyText}, "syntax", "definition"),
	})}, "name")
	grouped := maps.Clone(function)
	grouped["name"] = &shape{kind: "a string", pattern: lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)}
	grouped["allowed_callers"] = callers

	place := members{
		"type": oneOf("approximate"), "country": anyText.orNull(), "region": anyText.orNull(), "city": anyText.orNull(), "timezone": anyText.orNull(),
	}
	size := oneOf("low", "medium", "high")
	search := fields(members{
		"external_web_access": boolean, "search_context_size": size, "user_location": fields(place).orNull(),
		"filters": fields(members{"allowed_domains": texts.orNull()}).orNull(),
	})
	preview := fields(members{
		"search_context_size": size, "search_content_types": listOf(oneOf("text", "image")), "user_location": fields(place, "type").orNull(),
	})
	return &shape{kind: "an object", open: true, variants: map[string]*shape{
		"function": fields(function, "name"),
		"custom":   custom,
		"namespace": fields(members{
			"name": textOf(1, 0), "description": anyText,
			"tools": listOf(&shape{kind: "an object", open: true, variants: map[string]*shape{"function": fields(grouped, "name"), "custom": custom}}).count(1, 0),
		}, "name", "description", "tools"),
		"tool_search": fields(members{"execution": oneOf("server", "client"), "description": anyText.orNull(), "parameters": free.orNull()}),
		"file_search": fileSearchShape(),
		"computer":    fields(nil),
		"computer_use_preview": fields(members{
			"environment": oneOf("windows", "mac", "linux", "ubuntu", "browser"), "display_width": integer, "display_height": integer,
		}, "environment", "display_width", "display_height"),
		"web_search":                    search,
		"web_search_2025_08_26":         search,
		"web_search_preview":            preview,
		"web_search_preview_2025_03_11": preview,
		"mcp":                           mcpShape(),
		"code_interpreter": fields(members{"allowed_callers": callers, "container": byType(map[string]*shape{
			"auto": fields(container()),
		}).orElse(anyText)}, "container"),
		"programmatic_tool_calling": fields(nil),
		"image_generation": fields(members{
			"model": anyText, "size": anyText, "quality": oneOf("low", "medium", "high", "auto"), "output_format": oneOf("png", "webp", "jpeg"),
			"output_compression": integer.count(0, 100), "partial_images": integer.count(0, 3), "moderation": oneOf("auto", "low"),
			"background": oneOf("transparent", "opaque", "auto"), "input_fidelity": oneOf("high", "low").orNull(),
			"input_image_mask": fields(members{"image_url": anyText, "file_id": anyText}), "action": oneOf("generate", "edit", "auto"),
		}),
		"local_shell": fields(nil),
		"shell":       fields(members{"allowed_callers": callers, "environment": shellShape().orNull()}),
		"apply_patch": fields(members{"allowed_callers": callers}),
	}}
}

// container returns the members of a new container.
func container() members {
	secret := fields(members{"domain": textOf(1, 0), "name": textOf(1, 0), "value": textOf(1, 10<<20)}, "domain", "name", "value")
	return members{
		"file_ids": texts.count(0, 50), "memory_limit": oneOf("1g", "4g", "16g", "64g").orNull(),
		"network_policy": byType(map[string]*shape{
			"disabled":  fields(nil),
			"allowlist": fields(members{"allowed_domains": texts.count(1, 0), "domain_secrets": listOf(secret).count(1, 0)}, "allowed_domains"),
		}),
	}
}

// shellShape returns the shape of the place where commands of a shell run.
func shellShape() *shape {
	auto := container()
	auto["skills"] = listOf(byType(map[string]*shape{
		"skill_reference": fields(members{"skill_id": textOf(1, 64), "version": anyText}, "skill_id"),
		"inline": fields(members{"name": anyText, "description": anyText, "source": byType(map[string]*shape{
			"base64": fields(members{"media_type": oneOf("application/zip"), "data": textOf(1, 70_254_592)}, "media_type", "data"),
		})}, "name", "description", "source"),
	})).count(0, 200)
	local := fields(members{"name": anyText, "description": anyText, "path": anyText}, "name", "description", "path")
	return byType(map[string]*shape{
		"container_auto":      fields(auto),
		"container_reference": fields(members{"container_id": anyText}, "container_id"),
		"local":               fields(members{"skills": listOf(local).count(0, 200)}),
	})
}

// fileSearchShape returns the shape of a search in files, whose filters nest.
func fileSearchShape() *shape {
	filters, value := map[string]*shape{}, anyText.orElse(number)
	for _, word := range []string{"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"} {
		filters[word] = fields(members{"key": anyText, "value": listOf(value).orElse(anyText.orElse(number.orElse(boolean)))}, "key", "value")
	}
	for _, word := range []string{"and", "or"} {
		filters[word] = fields(members{"filters": listOf(byType(filters))}, "filters")
	}
	return fields(members{
		"vector_store_ids": texts, "max_num_results": integer, "filters": byType(filters).orNull(),
		"ranking_options": fields(members{
			"ranker": oneOf("auto", "default-2024-11-15"), "score_threshold": number,
			"hybrid_search": fields(members{"embedding_weight": number, "text_weight": number}, "embedding_weight", "text_weight"),
		}),
	}, "vector_store_ids")
}

// mcpShape returns the shape of the tools of an MCP server.
func mcpShape() *shape {
	filter := fields(members{"tool_names": texts, "read_only": boolean})
	approval := fields(members{"always": filter, "never": filter})
	return fields(members{
		"server_label": anyText, "server_url": anyText, "server_description": anyText, "authorization": anyText,
		"connector_id": oneOf("connector_dropbox", "connector_gmail", "connector_googlecalendar", "connector_googledrive",
			"connector_microsoftteams", "connector_outlookcalendar", "connector_outlookemail", "connector_sharepoint"),
		"tunnel_id":        {kind: "a string", pattern: lazyregexp.New(`^tunnel_[a-z0-9]{32}$`)},
		"headers":          (&shape{kind: "an object", each: anyText}).orNull(),
		"allowed_tools":    texts.orElse(filter).orNull(),
		"allowed_callers":  callers,
		"require_approval": oneOf("always", "never").orElse(approval).orNull(),
		"defer_loading":    boolean,
	}, "server_label")
}

// choices is the shape of a tool choice. It may also have the type of another tool: see [checkShapes].
var choices = func() *shape {
	variants := map[string]*shape{
		"allowed_tools": fields(members{"mode": oneOf("auto", "required"), "tools": listOf(free)}, "mode", "tools"),
		"function":      fields(members{"name": anyText}, "name"),
		"custom":        fields(members{"name": anyText}, "name"),
		"mcp":           fields(members{"server_label": anyText, "name": anyText.orNull()}, "server_label"),
	}
	for _, hosted := range []string{
		"file_search", "web_search_preview", "web_search_preview_2025_03_11", "computer", "computer_use", "computer_use_preview",
		"image_generation", "code_interpreter", "programmatic_tool_calling", "apply_patch", "shell",
	} {
		variants[hosted] = fields(nil)
	}
	return (&shape{kind: "an object", open: true, variants: variants}).orElse(oneOf("none", "auto", "required"))
}()

// of returns the shape of a value of the kind that v has: s, or another one that is also allowed. It is nil for null
// where that is allowed.
func (s *shape) of(v string) (*shape, bool) {
	if v == "null" && s.null {
		return nil, true
	}
	for ; s != nil; s = s.or {
		if s.fits(v) {
			return s, true
		}
	}
	return nil, false
}

// fits reports whether a value has the kind of a shape.
func (s *shape) fits(v string) bool {
	switch s.kind {
	case "a string":
		return v[0] == '"'
	case "a number":
		return jsonx.IsNumber(v)
	case "an integer":
		_, whole := jsonx.Integer(v)
		return jsonx.IsNumber(v) && whole
	case "a boolean":
		return v == "true" || v == "false"
	case "an array":
		return v[0] == '['
	default:
		return v[0] == '{'
	}
}

// wrong returns the first error in the value of the member at.
func (s *shape) wrong(at, v string) (wrong *Error) {
	one, ok := s.of(v)
	switch {
	case !ok:
		return Invalid("invalid_type", at, "Invalid type for '%s': expected %s, but got %s instead.", at, s.kinds(), jsonx.KindOf(v))
	case one == nil:
		return nil
	case one.variants != nil:
		return one.wrongVariant(at, v)
	}
	switch v[0] {
	case '"':
		return one.wrongText(at, jsonx.Unquote(v))
	case '[':
		n := 0
		jsonx.EachElement(v, func(value string) {
			if wrong == nil && one.each != nil {
				wrong = one.each.wrong(fmt.Sprintf("%s[%d]", at, n), value)
			}
			n++
		})
		if wrong == nil {
			wrong = one.wrongSize(at, "array", "length", int64(n))
		}
	case '{':
		wrong = one.wrongMembers(at, v)
	default:
		if n, whole := jsonx.Integer(v); whole && one.kind == "an integer" {
			wrong = one.wrongSize(at, "integer", "value", n)
		}
	}
	return wrong
}

// kinds names the kinds that a value may have.
func (s *shape) kinds() string {
	kinds := s.kind
	for s = s.or; s != nil; s = s.or {
		kinds += " or " + s.kind
	}
	return kinds
}

func (s *shape) wrongVariant(at, v string) *Error {
	at += ".type"
	typ, ok := jsonx.MemberOf(v, "type")
	switch {
	case !ok || typ == "null":
		return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	case typ[0] != '"':
		return Invalid("invalid_type", at, "Invalid type for '%s': expected a string, but got %s instead.", at, jsonx.KindOf(typ))
	}
	word := jsonx.Unquote(typ)
	if one := s.variants[word]; one != nil {
		return one.wrongMembers(strings.TrimSuffix(at, ".type"), v)
	}
	if s.open {
		return nil
	}
	return notOneOf(at, word, slices.Sorted(maps.Keys(s.variants)))
}

func (s *shape) wrongMembers(at, v string) (wrong *Error) {
	if s.members == nil && s.each == nil { // long, such as the schema of a function
		return nil
	}
	for _, name := range s.required {
		if value, ok := jsonx.MemberOf(v, name); !ok || value == "null" {
			at += "." + name
			return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
		}
	}
	jsonx.EachMember(v, func(literal, value string) {
		name := jsonx.Unquote(literal)
		one := s.members[name]
		if s.members == nil {
			one = s.each
		}
		if wrong == nil && one != nil && value != "null" { // null is not a value
			wrong = one.wrong(at+"."+name, value)
		}
	})
	return wrong
}

func (s *shape) wrongText(at, v string) *Error {
	switch {
	case s.words != nil && !slices.Contains(s.words, v):
		return notOneOf(at, v, s.words)
	case s.pattern != nil && !s.pattern.MatchString(v):
		return Invalid("invalid_value", at, "Invalid '%s': %.100q does not match '%s'.", at, v, s.pattern)
	}
	return s.wrongSize(at, "string", "length", int64(utf8.RuneCountInString(v)))
}

// wrongSize returns an error for a size that is too small or too large.
func (s *shape) wrongSize(at, kind, what string, n int64) *Error {
	below, above, bound := "too short", "too long", what
	if kind == "integer" {
		below, above = "below minimum value", "above maximum value"
	}
	switch {
	case n < s.least:
		return Invalid(kind+"_below_min_"+bound, at, "Invalid '%s': %s %s. Expected a minimum %s of %d, but got %d instead.", at, kind, below, what, s.least, n)
	case s.most > 0 && n > s.most:
		return Invalid(kind+"_above_max_"+bound, at, "Invalid '%s': %s %s. Expected a maximum %s of %d, but got %d instead.", at, kind, above, what, s.most, n)
	}
	return nil
}

func notOneOf(at, value string, allowed []string) *Error {
	supported := "'" + allowed[0] + "'"
	if last := len(allowed) - 1; last > 0 {
		supported = "'" + strings.Join(allowed[:last], "', '") + "' and '" + allowed[last] + "'"
	}
	return Invalid("invalid_value", at, "Invalid value for '%s': '%.100s'. Supported values are: %s.", at, value, supported)
}

// known returns a value that has no error without the parts that the shape does not name: members, and
// objects of other types. ok is false if nothing is left that the shape allows.
func (s *shape) known(v string) (_ string, ok bool) {
	one, _ := s.of(v)
	if one == nil {
		return v, v == "null" && s.null
	}
	if one.variants != nil {
		typ, _ := jsonx.MemberOf(v, "type")
		if one = one.variants[jsonx.Unquote(typ)]; one == nil {
			return "", false
		}
		return one.knownMembers(v, true)
	}
	switch {
	case v[0] == '[' && one.each != nil:
		return one.knownElements(v)
	case v[0] == '{' && one.members != nil:
		return one.knownMembers(v, false)
	}
	return v, true
}

func (s *shape) knownElements(v string) (_ string, ok bool) {
	var all []string
	same := true
	jsonx.EachElement(v, func(value string) {
		part, ok := s.each.known(value)
		if ok {
			all = append(all, part)
		}
		same = same && ok && part == value
	})
	if same {
		return v, true
	}
	return "[" + strings.Join(all, ",") + "]", int64(len(all)) >= s.least
}

// knownMembers returns an object with the members that a shape names, and its type if that decides its shape.
func (s *shape) knownMembers(v string, typed bool) (_ string, ok bool) {
	var all []string
	same, lost := true, false
	jsonx.EachMember(v, func(literal, value string) {
		name, part, ok := jsonx.Unquote(literal), value, false
		if one := s.members[name]; one != nil {
			part, ok = one.known(value)
		} else {
			ok = typed && name == "type"
		}
		if ok {
			all = append(all, literal+":"+part)
		}
		lost = lost || !ok && slices.Contains(s.required, name)
		same = same && ok && part == value
	})
	if same {
		return v, true
	}
	return "{" + strings.Join(all, ",") + "}", !lost
}
