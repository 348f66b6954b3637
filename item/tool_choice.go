// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "github.com/antiphon-go/antiphon/internal/jsonx"

// The tool choices that are a word, or that are the same for every request.
// Others are objects, see [ChooseFunction]. Schemas: ToolChoiceOptions,
// SpecificApplyPatchParam, SpecificFunctionShellParam,
// SpecificProgrammaticToolCallingParam.
const (
	ChoiceAuto     JSON = `"auto"`
	ChoiceNone     JSON = `"none"`
	ChoiceRequired JSON = `"required"`

	ChoiceApplyPatch   JSON = `{"type":"apply_patch"}`
	ChoiceShell        JSON = `{"type":"shell"}`
	ChoiceProgrammatic JSON = `{"type":"programmatic_tool_calling"}`
)

// The modes of a [ToolChoice].
const (
	ModeAuto     = "auto"
	ModeNone     = "none"
	ModeRequired = "required"
)

// The types of a [ToolChoice] that are not types of [Tool]. Schemas:
// ToolChoiceAllowed, ToolChoiceTypes.
const (
	ChoiceTypeAllowed     = "allowed_tools"
	ChoiceTypeComputerUse = "computer_use"
)

// ToolChoice is a view of [Request.ToolChoice]. A choice that is a word has it
// as the Mode and no Type. Schema: ToolChoiceParam.
type ToolChoice struct {
	// Type is the type of the tool that the model must use, or
	// [ChoiceTypeAllowed].
	Type string
	Mode string
	// Name is that of a function, a custom tool, or one tool of an MCP server.
	Name        string
	ServerLabel string
	// Tools lists the tools allowed, each a definition cut down to what names it.
	Tools []JSON
	Extra Extra
}

// ChooseFunction returns the tool choice that forces the named function.
// Schema: ToolChoiceFunction.
func ChooseFunction(name string) JSON {
	return `{"type":"function","name":` + Quote(name) + `}`
}

// ChooseCustom returns the tool choice that forces the named custom tool.
// Schema: ToolChoiceCustom.
func ChooseCustom(name string) JSON {
	return `{"type":"custom","name":` + Quote(name) + `}`
}

// ChooseMCP returns the tool choice that forces a tool of an MCP server; any of
// them when name is empty. Schema: ToolChoiceMCP.
func ChooseMCP(serverLabel, name string) JSON {
	if name == "" {
		return `{"type":"mcp","server_label":` + Quote(serverLabel) + `}`
	}
	return `{"type":"mcp","server_label":` + Quote(serverLabel) + `,"name":` + Quote(name) + `}`
}

// ChooseHosted returns the tool choice that forces a hosted tool by its type,
// such as [ToolFileSearch]. Schema: ToolChoiceTypes.
func ChooseHosted(typ string) JSON { return `{"type":` + Quote(typ) + `}` }

// ChooseAllowed returns the tool choice that keeps the model to some of the
// request's tools; it must use one when the mode is [ModeRequired], and may when
// it is [ModeAuto]. A tool is named as the other choices name it:
//
//	item.ChooseAllowed(item.ModeAuto, item.ChooseFunction("get_weather"), item.ChooseMCP("maps", ""))
//
// Schema: ToolChoiceAllowed.
func ChooseAllowed(mode string, tools ...JSON) JSON {
	list := "["
	for i, t := range tools {
		if i > 0 {
			list += ","
		}
		list += string(t)
	}
	return `{"type":"allowed_tools","mode":` + Quote(mode) + `,"tools":` + JSON(list) + `]}`
}

// ParseToolChoice reads a tool choice. Types that this version does not know
// are not errors. An absent choice is the zero ToolChoice.
func ParseToolChoice(j JSON) (ToolChoice, error) {
	var v ToolChoice
	if j == "" {
		return v, nil
	}
	value, err := trimValue(string(j))
	if err != nil {
		return v, err
	}
	switch value[0] {
	case '"':
		v.Mode = jsonx.Unquote(value)
	case '{':
		err = decodeRecord(value, &v)
	default:
		err = &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a tool choice"}
	}
	return v, err
}

// JSON returns the choice as [Request.ToolChoice] takes it.
func (v *ToolChoice) JSON() (JSON, error) {
	if v == nil {
		return "", errNil
	}
	if v.Type == "" && v.Mode != "" && len(v.Extra) == 0 {
		return Quote(v.Mode), nil
	}
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *ToolChoice) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("mode", &v.Mode)
	c.optString("name", &v.Name)
	c.optString("server_label", &v.ServerLabel)
	c.rawList("tools", &v.Tools)
	c.rest(&v.Extra)
}

// rawList is a list of any values, left out when nil.
func (c *codec) rawList(name string, v *[]JSON) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, func(dst []byte, one JSON) ([]byte, error) {
				value, err := trimValue(string(one))
				return append(dst, value...), err
			})
		}
		return
	}
	if m := c.find(name); m != nil && m.Value[0] == '[' {
		list := []JSON{}
		jsonx.EachElement(m.Value, func(s string) { list = append(list, JSON(s)) })
		*v, m.Taken = list, true
	}
}
