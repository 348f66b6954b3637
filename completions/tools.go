// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// readTools reads the definitions of tools. They are flat in items and wrapped in Chat Completions.
func readTools(v item.JSON, at place) ([]item.Tool, error) {
	if blank(v) {
		return nil, nil
	}
	if v[0] != '[' {
		return nil, shapeError(at.path, "found "+kindOf(v)+", want a list of tools")
	}
	var list []item.Tool
	var err error
	eachElement(v, func(i int, e item.JSON) {
		if err == nil {
			var t item.Tool
			t, err = readTool(e, at.index(i))
			list = append(list, t)
		}
	})
	return list, err
}

func readTool(v item.JSON, at place) (item.Tool, error) {
	if v[0] != '{' {
		return nil, shapeError(at.path, "found "+kindOf(v)+", want a tool")
	}
	o := at.open(v)
	typ := o.text("type")
	function, custom := o.take("function"), o.take("custom")
	var t item.Tool
	var name string
	switch {
	case function != "" && function[0] == '{':
		f := readFunction(o.at("function").open(function))
		t, name = f, f.Name
	case custom != "" && custom[0] == '{':
		c := readCustom(o.at("custom").open(custom))
		t, name = c, c.Name
	case typ == "" || typ == item.ToolFunction || typ == item.ToolCustom:
		return nil, shapeError(at.path, "found no function and no custom tool")
	default:
		return &item.UnknownTool{Raw: v}, nil // a server's own type
	}
	if name == "" {
		return nil, shapeError(at.path, "found a tool without a name")
	}
	o.rest()
	return t, nil
}

// readFunction reads the definition of a function. A function without the member strict is not
// strict in Chat Completions but strict in the Responses API, so the item has strict false.
func readFunction(o *object) *item.FunctionTool {
	t := &item.FunctionTool{Name: o.text("name"), Description: o.text("description"), Parameters: o.take("parameters")}
	t.Strict = new(o.takeAny("strict") == "true")
	o.rest()
	return t
}

func readCustom(o *object) *item.CustomTool {
	t := &item.CustomTool{Name: o.text("name"), Description: o.text("description"), Format: o.take("format")}
	if grammar := member(t.Format, "grammar"); grammar != "" && grammar[0] == '{' {
		syntax, _ := member(grammar, "syntax").Unquote()
		definition, _ := member(grammar, "definition").Unquote()
		t.Format = item.FormatGrammar(syntax, definition)
	}
	o.rest()
	return t
}

// readFunctions reads the definitions in the form used before tools.
func readFunctions(v item.JSON, at place) []item.Tool {
	var list []item.Tool
	eachElement(v, func(i int, e item.JSON) {
		list = append(list, readFunction(at.index(i).open(e)))
	})
	if len(list) > 0 {
		at.move("the older form: become tools")
	}
	return list
}

// readChoice reads a tool choice, which Chat Completions wraps like the tools.
func readChoice(v item.JSON, at place) item.JSON {
	if blank(v) {
		return ""
	}
	if v[0] != '{' {
		return v
	}
	allowed := member(v, api.ChoiceTypeAllowed)
	if typ, _ := member(v, "type").Unquote(); typ != api.ChoiceTypeAllowed || allowed == "" {
		return readNamed(v)
	}
	o := at.at(api.ChoiceTypeAllowed).open(allowed)
	mode := o.text("mode")
	var tools []item.JSON
	eachElement(o.take("tools"), func(_ int, t item.JSON) { tools = append(tools, readNamed(t)) })
	o.rest()
	return api.ChooseAllowed(mode, tools...)
}

// readNamed reads a choice that names one tool. A choice in another API's form stays unchanged.
func readNamed(v item.JSON) item.JSON {
	name := func(holder string) string {
		s, _ := member(member(v, holder), "name").Unquote()
		return s
	}
	if f := name(item.ToolFunction); f != "" {
		return api.ChooseFunction(f)
	}
	if c := name(item.ToolCustom); c != "" {
		return api.ChooseCustom(c)
	}
	return v
}

// readFunctionChoice reads the choice in the form used before tools.
func readFunctionChoice(v item.JSON, at place) item.JSON {
	if blank(v) {
		return ""
	}
	at.move("the older form: becomes the tool choice")
	if name, ok := member(v, "name").Unquote(); ok {
		return api.ChooseFunction(name)
	}
	return v
}

// writeTools writes the definitions that Chat Completions has a form for. It returns their number,
// and the web search tool, which becomes an option.
func writeTools(w *writer, tools []item.Tool, at place) (n int, search *item.WebSearchTool) {
	for i, t := range tools {
		at := at.index(i)
		switch t := t.(type) {
		case *item.FunctionTool:
			writeFunction(w, t, at)
			n++
		case *item.CustomTool:
			writeCustom(w, t, at)
			n++
		case *item.WebSearchTool:
			search = t
		case *item.UnknownTool:
			if t.Raw.Valid() == nil {
				w.raw("", trim(t.Raw))
				n++
				break
			}
			at.lose("is not JSON and is left out")
		default:
			at.lose("a tool of the type " + t.ToolType() + " has no counterpart and is left out")
		}
	}
	return n, search
}

func writeFunction(w *writer, t *item.FunctionTool, at place) {
	w.open('{')
	w.text("type", item.ToolFunction)
	w.name("function")
	w.open('{')
	w.text("name", t.Name)
	w.optText("description", t.Description)
	w.optRaw("parameters", t.Parameters)
	if t.Strict != nil && *t.Strict { // false is the default of Chat Completions
		w.optBool("strict", t.Strict)
	}
	w.close('}')
	w.close('}')
	at.extra(t.Extra)
	if t.OutputSchema != "" {
		at.at("output_schema").lose(noCounterpart)
	}
	at.deferred(t.DeferLoading, t.AllowedCallers)
}

func writeCustom(w *writer, t *item.CustomTool, at place) {
	w.open('{')
	w.text("type", item.ToolCustom)
	w.name("custom")
	w.open('{')
	w.text("name", t.Name)
	w.optText("description", t.Description)
	if f, err := item.ParseCustomFormat(t.Format); err == nil && f.Type == "grammar" {
		w.name("format")
		w.open('{')
		w.text("type", "grammar")
		w.name("grammar")
		w.open('{')
		w.text("syntax", f.Syntax)
		w.text("definition", f.Definition)
		w.close('}')
		w.close('}')
		at.at("format").extra(f.Extra)
	} else {
		w.optRaw("format", t.Format)
	}
	w.close('}')
	w.close('}')
	at.extra(t.Extra)
	at.deferred(t.DeferLoading, t.AllowedCallers)
}

// deferred reports how a tool is loaded, and by which callers, as lost.
func (p place) deferred(load *bool, callers []string) {
	if load != nil {
		p.at("defer_loading").lose(noCounterpart)
	}
	if callers != nil {
		p.at("allowed_callers").lose(noCounterpart)
	}
}

// writeChoice returns the tool choice in the form of Chat Completions, or "" if it has none.
func writeChoice(j item.JSON, at place) item.JSON {
	c, err := api.ParseToolChoice(j)
	switch {
	case err != nil, c.Type == "":
		return j
	case c.Type == api.ChoiceTypeAllowed:
		return writeAllowed(c, at)
	}
	return writeNamed(c, j, at)
}

// writeNamed returns the choice j of one tool.
func writeNamed(c api.ToolChoice, j item.JSON, at place) item.JSON {
	switch {
	case c.Type == item.ToolFunction || c.Type == item.ToolCustom:
		at.extra(c.Extra)
		w := appendTo(nil)
		w.open('{')
		w.text("type", c.Type)
		w.name(c.Type)
		w.open('{')
		w.text("name", c.Name)
		w.close('}')
		w.close('}')
		return item.JSON(w.buf)
	case hosted(c.Type):
		at.lose("a choice of the type " + c.Type + " has no counterpart")
		return ""
	}
	return j // in another API's form
}

// hosted reports whether only the Responses API has the type.
func hosted(typ string) bool {
	switch typ {
	case item.ToolFileSearch, item.ToolWebSearch, item.ToolWebSearchPreview, item.ToolWebSearchPreview20250311,
		item.ToolWebSearch20250826, item.ToolComputer, item.ToolComputerPreview, api.ChoiceTypeComputerUse,
		item.ToolCodeInterpreter, item.ToolImageGeneration, item.ToolMCP, item.ToolShell, item.ToolApplyPatch,
		item.ToolProgrammatic:
		return true
	}
	return false
}

func writeAllowed(c api.ToolChoice, at place) item.JSON {
	w := appendTo(nil)
	w.open('{')
	w.text("type", c.Type)
	w.name(api.ChoiceTypeAllowed)
	w.open('{')
	w.text("mode", c.Mode)
	w.name("tools")
	w.open('[')
	for i, t := range c.Tools {
		named, err := api.ParseToolChoice(t)
		if err != nil {
			at.at("tools").index(i).lose("cannot be read: " + err.Error())
		} else if one := writeNamed(named, t, at.at("tools").index(i)); one != "" {
			w.raw("", one)
		}
	}
	w.close(']')
	w.close('}')
	w.close('}')
	at.extra(c.Extra)
	return item.JSON(w.buf)
}
