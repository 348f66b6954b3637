// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Tool is a tool's definition as a request carries it: [*FunctionTool],
// [*CustomTool] or [*UnknownTool]. Schema: Tool.
type Tool interface {
	// ToolType returns the type member.
	ToolType() string
	record
}

// FunctionTool defines a function with a JSON Schema for its arguments, which
// passes through unchanged. Strict is written when it is not nil; the schema
// asks for it, so set it. Schema: FunctionTool.
type FunctionTool struct {
	Name        string
	Description string
	Parameters  JSON
	Strict      *bool
	Extra       Extra
}

// CustomTool defines a tool whose input is text, with a format that may hold a
// grammar. Schema: CustomToolParam.
type CustomTool struct {
	Name        string
	Description string
	Format      JSON
	Extra       Extra
}

// UnknownTool is a definition of a type without a struct, such as a hosted
// tool, kept byte for byte.
type UnknownTool struct {
	Raw JSON
}

// ToolType returns "function".
func (*FunctionTool) ToolType() string { return "function" }

// ToolType returns "custom".
func (*CustomTool) ToolType() string { return "custom" }

// ToolType returns the type member, or "".
func (t *UnknownTool) ToolType() string {
	v, _ := memberOf(string(t.Raw), "type")
	s, _ := v.Unquote()
	return s
}

func (t *FunctionTool) fields(c *codec) {
	c.typ("function")
	c.str("name", &t.Name)
	c.optString("description", &t.Description)
	c.raw("parameters", &t.Parameters)
	c.optBool("strict", &t.Strict)
	c.rest(&t.Extra)
}

func (t *CustomTool) fields(c *codec) {
	c.typ("custom")
	c.str("name", &t.Name)
	c.optString("description", &t.Description)
	c.raw("format", &t.Format)
	c.rest(&t.Extra)
}

// fields is never reached: an unknown tool is its raw text.
func (t *UnknownTool) fields(*codec) {}

func parseTool(s string) (Tool, error) {
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + kindOf(s) + ", want a tool"}
	}
	t := &UnknownTool{Raw: JSON(s)}
	var known Tool
	switch t.ToolType() {
	case "function":
		if _, named := memberOf(s, "name"); !named {
			return t, nil // the nested form of Chat Completions, say
		}
		known = new(FunctionTool)
	case "custom":
		known = new(CustomTool)
	default:
		return t, nil
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

// tools is a list of definitions, left out when nil.
func (c *codec) tools(name string, v *[]Tool) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, appendTool)
		}
		return
	}
	m := c.find(name)
	if m == nil || m.value[0] != '[' {
		return
	}
	list := []Tool{}
	eachElement(m.value, func(s string) {
		t, err := parseTool(s)
		if err != nil {
			c.fail(name, indexed(len(list), err))
		}
		list = append(list, t)
	})
	*v, m.taken = list, true
}

// The tool choices that are a word. Others are objects, see [ChooseFunction].
// Schema: ToolChoiceOptions.
const (
	ChoiceAuto     JSON = `"auto"`
	ChoiceNone     JSON = `"none"`
	ChoiceRequired JSON = `"required"`
)

// ChooseFunction returns the tool choice that forces the named function.
// Schema: ToolChoiceFunction.
func ChooseFunction(name string) JSON {
	return `{"type":"function","name":` + Quote(name) + `}`
}
