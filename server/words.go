// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// maxSafetyIdentifier is the API's limit for safety_identifier, in characters.
const maxSafetyIdentifier = 64

// The values that the API has for members which a response repeats.
var (
	serviceTiers = []string{"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}
	truncations  = []string{"auto", "disabled"}
	efforts      = []string{api.EffortNone, api.EffortMinimal, api.EffortLow, api.EffortMedium, api.EffortHigh, api.EffortXHigh, api.EffortMax}
	summaries    = []string{api.SummaryAuto, api.SummaryConcise, api.SummaryDetailed}
	contexts     = []string{"auto", "current_turn", "all_turns"}
	verbosities  = []string{"low", "medium", "high"}
	formats      = []string{api.TextPlain, api.TextJSONObject, api.TextJSONSchema}
	choices      = []string{"none", "auto", "required"}
	modes        = []string{"auto", "required"}
	syntaxes     = []string{"lark", "regex"}
)

// checkWords checks the members of a request that have one of several values, and that the response
// repeats. A backend that ignores them would otherwise make a response that its client cannot read.
func checkWords(req *api.Request) *Error {
	reasoning := req.Reasoning
	if reasoning == nil {
		reasoning = new(api.ReasoningConfig)
	}
	for _, one := range []struct {
		at, value string
		allowed   []string
	}{
		{"service_tier", req.ServiceTier, serviceTiers},
		{"truncation", req.Truncation, truncations},
		{"reasoning.effort", reasoning.Effort, efforts},
		{"reasoning.summary", reasoning.Summary, summaries},
		{"reasoning.context", reasoning.Context, contexts},
		{"reasoning.generate_summary", reasoning.GenerateSummary, summaries},
	} {
		if wrong := oneOf(one.at, one.value, one.allowed); wrong != nil {
			return wrong
		}
	}
	if wrong := mistyped("reasoning", reasoning.Extra, "effort", "summary", "generate_summary", "context"); wrong != nil {
		return wrong
	}
	if n := utf8.RuneCountInString(req.SafetyIdentifier); n > maxSafetyIdentifier {
		return Invalid("string_above_max_length", "safety_identifier",
			"Invalid 'safety_identifier': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", maxSafetyIdentifier, n)
	}
	for i, t := range req.Tools {
		at, wrong := "tools["+strconv.Itoa(i)+"]", (*Error)(nil)
		switch t := t.(type) {
		case *item.FunctionTool:
			wrong = mistyped(at, t.Extra, "description", "strict")
		case *item.CustomTool:
			wrong = oneOf(at+".format.syntax", memberOf(t.Format, "syntax"), syntaxes)
		}
		if wrong != nil {
			return wrong
		}
	}
	if wrong := checkChoice(req.ToolChoice); wrong != nil {
		return wrong
	}
	return checkText(req.Text)
}

// checkChoice checks the words of a tool choice. Its tools are for the backend to judge.
func checkChoice(choice item.JSON) *Error {
	at, allowed := "tool_choice", choices
	word, isWord := choice.Unquote()
	if !isWord && memberOf(choice, "type") == "allowed_tools" {
		at, word, allowed = "tool_choice.mode", memberOf(choice, "mode"), modes
	}
	wrong := oneOf(at, word, allowed)
	if isWord && word == "" {
		wrong = Invalid("invalid_value", at, "Invalid value: ''.")
	}
	if wrong != nil {
		wrong.Message = strings.Replace(wrong.Message, "Invalid value:", "Invalid value for '"+at+"':", 1)
	}
	return wrong
}

// memberOf returns a member of an object that is a string, or "".
func memberOf(object item.JSON, name string) (value string) {
	if v, err := item.ParseString(string(object)); err == nil {
		member, _ := v.Member(name)
		value, _ = member.Unquote()
	}
	return value
}

// checkText checks the format of the text that the model should produce.
func checkText(text item.JSON) *Error {
	if text == "" || text == "null" {
		return nil
	}
	v, err := api.ParseTextConfig(text)
	if err != nil || text[0] != '{' {
		return Invalid("invalid_type", "text", "Invalid type for 'text': expected an object.")
	}
	if wrong := mistyped("text", v.Extra, "format", "verbosity"); wrong != nil {
		return wrong
	}
	if wrong := oneOf("text.verbosity", v.Verbosity, verbosities); wrong != nil || v.Format == nil {
		return wrong
	}
	f := v.Format
	if f.Type == "" {
		return Invalid("missing_required_parameter", "text.format.type", "Missing required parameter: 'text.format.type'.")
	}
	if wrong := oneOf("text.format.type", f.Type, formats); wrong != nil || f.Type != api.TextJSONSchema {
		return wrong
	}
	switch {
	case !toolName.MatchString(f.Name):
		return Invalid("invalid_value", "text.format.name", "Invalid 'text.format.name': %q does not match '%s'.", f.Name, toolName)
	case !strings.HasPrefix(string(f.Schema), "{"):
		return Invalid("missing_required_parameter", "text.format.schema", "Missing required parameter: 'text.format.schema', an object.")
	}
	return mistyped("text.format", f.Extra, "description", "strict")
}

// oneOf checks a value that may be missing.
func oneOf(at, value string, allowed []string) *Error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	last := len(allowed) - 1
	return Invalid("invalid_value", at, "Invalid value: '%s'. Supported values are: '%s' and '%s'.", value, strings.Join(allowed[:last], "', '"), allowed[last])
}

// mistyped refuses members that could not be read as what they are.
func mistyped(at string, rest item.Extra, names ...string) *Error {
	for _, m := range rest {
		if slices.Contains(names, m.Name) && m.Value != "null" {
			return Invalid("invalid_type", at+"."+m.Name, "Invalid type for '%s.%s'.", at, m.Name)
		}
	}
	return nil
}
