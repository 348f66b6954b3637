// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "github.com/antiphon-go/antiphon/internal/jsonx"

// Tool is a tool's definition as a request carries it: the struct of its type,
// such as [*FunctionTool], [*CustomTool] or [*MCPTool], or [*UnknownTool].
// Schema: Tool.
type Tool interface {
	// ToolType returns the type member.
	ToolType() string
	record
}

// FunctionTool defines a function with a JSON Schema for its arguments, which
// passes through unchanged; so does OutputSchema, for what it returns. Strict is
// written when it is not nil; the schema asks for it, so set it. Schemas:
// FunctionTool, FunctionToolParam.
type FunctionTool struct {
	Name         string
	Description  string
	Parameters   JSON
	OutputSchema JSON
	Strict       *bool
	// DeferLoading holds the definition back until the model finds the tool by a
	// search, see [ToolSearchTool].
	DeferLoading *bool
	// AllowedCallers is [AllowDirect], [AllowProgrammatic] or both.
	AllowedCallers []string
	Extra          Extra
}

// CustomTool defines a tool whose input is text, with a format that may hold a
// grammar, see [FormatGrammar]. Schema: CustomToolParam.
type CustomTool struct {
	Name           string
	Description    string
	Format         JSON
	DeferLoading   *bool
	AllowedCallers []string
	Extra          Extra
}

// UnknownTool is a definition of a type that this version does not know, kept
// byte for byte.
type UnknownTool struct {
	Raw JSON
}

// ToolType returns "function".
func (*FunctionTool) ToolType() string { return "function" }

// ToolType returns "custom".
func (*CustomTool) ToolType() string { return "custom" }

// ToolType returns the type member, or "".
func (t *UnknownTool) ToolType() string {
	if t == nil {
		return ""
	}
	return typeOfRaw(t.Raw)
}

func (t *FunctionTool) fields(c *codec) {
	c.typ("function")
	c.needText("name", &t.Name, &t.Extra)
	c.optString("description", &t.Description)
	c.raw("parameters", &t.Parameters)
	c.optBool("strict", &t.Strict)
	c.raw("output_schema", &t.OutputSchema)
	c.optBool("defer_loading", &t.DeferLoading)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.end(&t.Extra)
}

func (t *CustomTool) fields(c *codec) {
	c.typ("custom")
	c.needText("name", &t.Name, &t.Extra)
	c.optString("description", &t.Description)
	c.raw("format", &t.Format)
	c.optBool("defer_loading", &t.DeferLoading)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.end(&t.Extra)
}

// fields is never reached: an unknown tool is its raw text.
func (t *UnknownTool) fields(*codec) {}

func parseTool(s string) (Tool, error) {
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want a tool"}
	}
	known := newTool(typeOf(s))
	if _, function := known.(*FunctionTool); function {
		if _, named := memberOf(s, "name"); !named {
			known = nil // the nested form of Chat Completions, say
		}
	}
	if known == nil {
		return &UnknownTool{Raw: JSON(s)}, nil
	}
	if err := decodeRecord(s, known); err != nil {
		return nil, err
	}
	return known, nil
}

func appendTool(dst []byte, t Tool) ([]byte, error) {
	if u, ok := t.(*UnknownTool); ok {
		v, err := trimValue(string(u.Raw))
		return append(dst, v...), err
	}
	return appendRecord(dst, t)
}

// parseGrouped is parseTool inside a namespace, which holds no other: groups that
// nest without end would be read without end.
func parseGrouped(s string) (Tool, error) {
	if s[0] == '{' && typeOf(s) == ToolNamespace {
		return &UnknownTool{Raw: JSON(s)}, nil
	}
	return parseTool(s)
}

// tools is a list of definitions, left out when nil.
func (c *codec) tools(name string, v *[]Tool, parse func(s string) (Tool, error)) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, appendTool)
		}
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '[' {
		return
	}
	list := []Tool{}
	jsonx.EachElement(m.Value, func(s string) {
		t, err := parse(s)
		if err != nil {
			c.fail(name, indexed(len(list), err))
		}
		list = append(list, t)
	})
	*v, m.Taken = list, true
}
