// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// hosted reports whether a declaration is of a tool that the endpoint runs. With a
// name, the type is one of the original system's.
func hosted(n *node) bool { return n.tag == "tool" && n.has("type") && !n.has("name") }

// Kinds of values of options.
const (
	textOption = iota
	numberOption
	flagOption
	listOption // names between commas or white space
)

// hostedOptions are the options of hosted tools that may be attributes. All others are
// members of the JSON object inside the element.
var hostedOptions = map[string]map[string]int{
	item.ToolWebSearch:        {"search_context_size": textOption, "external_web_access": flagOption},
	item.ToolWebSearchPreview: {"search_context_size": textOption},
	item.ToolFileSearch:       {"vector_store_ids": listOption, "max_num_results": numberOption},
	item.ToolCodeInterpreter:  {"container": textOption},
	item.ToolImageGeneration: {
		"model": textOption, "size": textOption, "quality": textOption, "background": textOption, "output_format": textOption,
	},
	item.ToolMCP: {
		"server_label": textOption, "server_description": textOption, "server_url": textOption, "connector_id": textOption, "allowed_tools": listOption,
	},
	item.ToolToolSearch:   {},
	item.ToolProgrammatic: {},
}

// ranHere are types of tools that a program runs, with what to write instead.
var ranHere = map[string]string{
	item.ToolFunction:        `a function is a tool with a name: <tool name="…"/>`,
	item.ToolCustom:          `a custom tool is a tool with a name: <tool name="…"/>`,
	item.ToolNamespace:       "namespaces can be declared in Go only, because programs run their tools",
	item.ToolShell:           `write <tool name="shell"/>`,
	item.ToolLocalShell:      `write <tool name="local_shell"/>`,
	item.ToolApplyPatch:      `write <tool name="apply_patch" form="api"/>`,
	item.ToolComputer:        "a Go program can operate a computer: see tool.Computer",
	item.ToolComputerPreview: "a Go program can operate a computer: see tool.Computer",
}

// secretMembers are members that would put a secret into a file, from where it reaches
// logs and transcripts.
var secretMembers = []string{"authorization", "headers"}

// hostedTool reads the declaration of a tool that the endpoint runs.
func (c *compiler) hostedTool(n *node) {
	typ := strings.Trim(n.value("type"), space)
	t := &Tool{Element: c.element(n), Approval: n.value("approval")}
	c.file.Tools = append(c.file.Tools, t)
	if a, ok := n.attr("approval"); ok && typ != item.ToolMCP {
		c.failAttr(n, a, "the endpoint runs this tool without asking", "leave out approval, or the tool")
	}
	for _, name := range []string{"command", "agent", "mcp_server"} {
		if n.has(name) {
			c.fail(n, "<tool> has type and "+name, "a tool is one of them")
			return
		}
	}
	if !c.hostedType(n, typ) {
		return
	}
	members, ok := c.hostedMembers(n, typ)
	if !ok {
		return
	}
	def, err := item.ParseTool([]byte(members))
	if err != nil {
		c.fail(n, fmt.Sprintf("<tool type=%q>: %v", excerpt(typ), err), "")
		return
	}
	if problem, hint := missing(def); problem != "" {
		c.fail(n, fmt.Sprintf("<tool type=%q>: %s", excerpt(typ), problem), hint)
		return
	}
	t.Hosted = def
}

// hostedType reports whether a declaration has a type that the endpoint may run. An
// unknown type may be one that is newer than this program, unless it is a known one in
// another spelling.
func (c *compiler) hostedType(n *node, typ string) bool {
	a, _ := n.attr("type")
	known := slices.Sorted(maps.Keys(hostedOptions))
	if typ == "" {
		c.failAttr(n, a, "type is empty", `such as type="web_search"; the types are `+strings.Join(known, ", "))
		return false
	}
	if hint, here := ranHere[typ]; here {
		c.fail(n, fmt.Sprintf("<tool type=%q> is not run by the endpoint", excerpt(typ)), hint)
		return false
	}
	if _, ok := hostedOptions[baseType(typ)]; ok {
		return true
	}
	for _, name := range slices.Concat(known, datedTypes, slices.Sorted(maps.Keys(ranHere))) {
		if spelled(typ) == spelled(name) {
			c.failAttr(n, a, "there is no type "+excerpt(typ), cmp.Or(ranHere[name], "did you mean "+name+"?"))
			return false
		}
	}
	if name := suggest(typ, strings.Join(known, " ")); name != "" {
		c.warn(n, a.start, n.excerpt(), fmt.Sprintf("<tool>: the type %s is not known and is sent as it is", excerpt(typ)), "did you mean "+name+"?")
	}
	return true
}

// datedTypes are types with the date of a version.
var datedTypes = []string{item.ToolWebSearch20250826, item.ToolWebSearchPreview20250311}

// baseType returns a type without the date of a version.
func baseType(typ string) string {
	for _, base := range []string{item.ToolWebSearchPreview, item.ToolWebSearch} {
		if strings.HasPrefix(typ, base+"_20") {
			return base
		}
	}
	return typ
}

// spelled returns a type without case and separators.
func spelled(typ string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(typ))
}

// hostedMembers returns the definition as JSON: the members of the body, and those of
// the attributes.
func (c *compiler) hostedMembers(n *node, typ string) (text string, ok bool) {
	body := "{}"
	if len(n.nodes) > 0 && strings.Trim(n.nodes[0].text, space) != "" {
		body = strings.Trim(n.nodes[0].text, space)
	}
	it, ok := c.hostedBody(n, typ, body)
	if !ok {
		return "", false
	}
	members := []string{`"type":` + string(item.Quote(typ))}
	if inner := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(body, "{"), "}"), space); inner != "" {
		if _, has := it.Member("type"); has {
			c.fail(n, fmt.Sprintf("<tool type=%q>: the JSON has a type, too", excerpt(typ)), "the attribute names it")
			return "", false
		}
		members = append(members, inner)
	}
	for i := range n.attrs {
		a := &n.attrs[i]
		if a.Name == "type" || a.Name == "approval" {
			continue
		}
		if member, valid := c.hostedMember(n, typ, it, a); valid {
			members = append(members, member)
		} else {
			ok = false
		}
	}
	if _, has := it.Member("container"); typ == item.ToolCodeInterpreter && !has && !n.has("container") {
		members = append(members, `"container":{"type":"auto"}`)
	}
	return "{" + strings.Join(members, ",") + "}", ok
}

// hostedBody reads the JSON that the element of a hosted tool holds. A file must not hold secrets.
func (c *compiler) hostedBody(n *node, typ, body string) (it item.Item, ok bool) {
	it, err := item.ParseString(body)
	if err != nil {
		c.fail(n, fmt.Sprintf("<tool type=%q> does not hold a JSON object: %v", excerpt(typ), err), `such as <tool type="web_search">{"filters": {"allowed_domains": ["go.dev"]}}</tool>`)
		return it, false
	}
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil { // a member given twice, too
		c.fail(n, fmt.Sprintf("<tool type=%q> does not hold a JSON object with each member once: %v", excerpt(typ), err), "")
		return it, false
	}
	if name := secretIn(value, n.attrs); name != "" {
		// Without an excerpt, which would show the secret.
		c.errs = append(c.errs, &Error{
			src: n.src, offset: n.start, Message: fmt.Sprintf("<tool type=%q>: %s must not be in a file, because copies of the file would hold the secret", excerpt(typ), name),
			Hint: "set it in a Go program, or use mcp_server for a server with a login",
		})
		return it, false
	}
	return it, true
}

// hostedMember returns an attribute as a member of the definition, whose other members are those of it.
func (c *compiler) hostedMember(n *node, typ string, it item.Item, a *Attr) (member string, ok bool) {
	options := hostedOptions[baseType(typ)]
	kind, known := options[a.Name]
	if !known {
		c.failAttr(n, a, fmt.Sprintf("a tool of type %s has no attribute %s", excerpt(typ), a.Name), optionHint(a.Name, options))
		return "", false
	}
	if _, has := it.Member(a.Name); has {
		c.failAttr(n, a, a.Name+" is given twice", "as an attribute, or in the JSON")
		return "", false
	}
	if shape := jsonShape(a.Value); shape != "" && a.Name != "server_description" { // it would be sent as a name
		c.failAttr(n, a, a.Name+" is JSON, which stands inside the element", fmt.Sprintf("such as <tool type=%q>{%q: %s}</tool>", excerpt(typ), a.Name, shape))
		return "", false
	}
	value, problem := optionValue(kind, a)
	if problem != "" {
		c.failAttr(n, a, a.Name+" is "+problem, "")
	}
	return string(item.Quote(a.Name)) + ":" + value, problem == ""
}

// jsonShape returns the outline of a text that is a JSON object or a list, and "" of every other text.
func jsonShape(text string) string {
	text = strings.Trim(text, space)
	if text == "" || !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return ""
	}
	return map[byte]string{'{': "{…}", '[': "[…]"}[text[0]]
}

// optionHint says which attributes a type has, given one that it does not have.
func optionHint(name string, options map[string]int) string {
	names := slices.Sorted(maps.Keys(options))
	if s := suggest(name, strings.Join(names, " ")); s != "" {
		return "did you mean " + s + "?"
	}
	if len(names) == 0 {
		return "it has no attributes; its options are members of the JSON inside the element"
	}
	return "its attributes are " + strings.Join(names, ", ") + "; all other options are members of the JSON inside the element"
}

// secretIn returns the name of a member or an attribute that would hold a secret, at any
// depth and however it is written, or "".
func secretIn(value any, attrs []Attr) string {
	var names []string
	for i := range attrs {
		names = append(names, attrs[i].Name)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if found := secretIn(inner, nil); found != "" {
				return found
			}
			names = append(names, name)
		}
	case []any:
		for _, inner := range v {
			if found := secretIn(inner, nil); found != "" {
				return found
			}
		}
	}
	for _, name := range names {
		if i := slices.IndexFunc(secretMembers, func(s string) bool { return strings.EqualFold(s, name) }); i >= 0 {
			return secretMembers[i]
		}
	}
	return ""
}

// optionValue returns the JSON of an option, or what is wrong with it.
func optionValue(kind int, a *Attr) (value, problem string) {
	text := strings.Trim(a.Value, space)
	switch kind {
	case numberOption:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fmt.Sprintf("not a number: %q", excerpt(text))
		}
		return strconv.FormatInt(n, 10), ""
	case flagOption:
		switch {
		case a.Bare, text == "true":
			return "true", ""
		case text == "false":
			return "false", ""
		}
		return "", fmt.Sprintf("%q, want true or false", excerpt(text))
	case listOption:
		var names []string
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(space, r) }) {
			names = append(names, string(item.Quote(name)))
		}
		return "[" + strings.Join(names, ",") + "]", ""
	}
	if text == "" {
		return `""`, "empty"
	}
	return string(item.Quote(text)), ""
}

// labelCharacters are those of a server's label. A rule names the server's tools by a
// pattern that begins with the label.
const labelCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// missingHints say how to give what a tool lacks, by the member's name.
var missingHints = map[string]string{
	"vector_store_ids":                      `such as vector_store_ids="vs_123"`,
	"server_label":                          `such as server_label="maps"`,
	"server_url, connector_id or tunnel_id": `such as server_url="https://maps.example/mcp"; to run a server yourself, write mcp_server`,
	"container":                             `such as container="cntr_123"; without a container it gets a new one`,
}

// missing returns what a definition lacks that the endpoint requires, and a hint.
func missing(def item.Tool) (problem, hint string) {
	if d, ok := def.(*item.MCPTool); ok {
		switch {
		case d.RequireApproval != "" && d.RequireApproval != item.ApprovalAlways:
			return "require_approval is not for files, because the endpoint would then call the server without asking you", `approval="allow" answers its questions with yes`
		case strings.Trim(d.ServerLabel, labelCharacters) != "":
			return "its server_label may have only letters, digits, _ and -, because rules name its tools by it", missingHints["server_label"]
		}
	}
	if _, member := item.MissingOption(def); member != "" {
		return "it has no " + member, missingHints[member]
	}
	return "", ""
}
