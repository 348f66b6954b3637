// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package reach finds what an item makes an endpoint do: use tools, and fetch from addresses. The endpoint may
// run on the person's machine, and then it reaches what only this machine reaches. Files of agents, imports
// and transcripts need one rule.
package reach

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Tools returns the tools that an item gives to the model and that are not run by the client, such
// as an MCP server to which the endpoint connects. Most items give none. If plain is false, endpoints may read
// the tools of the item in different ways, so that nobody knows what they are.
func Tools(it item.Item) (list []item.Tool, plain bool) {
	members, ok := membersOf(it.JSON())
	defs, n := called(members, "tools")
	kind, types := called(members, "type")
	switch {
	case !ok:
		return nil, false
	case n == 0:
		return nil, true
	case n > 1 || types != 1:
		return nil, false
	case kind == string(item.TypeMCPListTools):
		return nil, true // what a server has, and no definitions
	}
	given, err := item.ParseString(`{"type":"additional_tools","role":"developer","tools":` + defs + `}`)
	if err != nil {
		return nil, false
	}
	v, err := item.As[item.AdditionalTools](given)
	if err != nil || !plainly(defs) {
		return nil, false
	}
	return toolsOf(v.Tools), true
}

// plainly reports whether a list of definitions can be read in one way only.
func plainly(defs string) bool {
	var list []jsontext.Value
	if json.Unmarshal([]byte(defs), &list, jsontext.AllowInvalidUTF8(true)) != nil { // a name that is there twice, at any depth, is an error
		return false
	}
	for _, def := range list {
		members, ok := membersOf(string(def))
		kind, types := called(members, "type")
		if !ok || types != 1 {
			return false
		}
		if kind == item.ToolNamespace {
			if inner, n := called(members, "tools"); n != 1 || !plainly(inner) {
				return false
			}
		}
	}
	return true
}

// Plain reports whether a JSON object can be read in one way only: it has no member twice, at any depth, and none
// of its own members has the name of another in other letters.
func Plain(object string) bool {
	members, ok := membersOf(object)
	for _, m := range members {
		if _, n := called(members, m.name); n != 1 {
			return false
		}
	}
	return ok && jsontext.Value(object).IsValid(jsontext.AllowInvalidUTF8(true))
}

type member struct{ name, value string }

// membersOf returns the members of an object, also those that are there twice, and reports whether it is one.
func membersOf(object string) (list []member, ok bool) {
	d := jsontext.NewDecoder(strings.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		list = append(list, member{name, string(value)})
	}
	return list, d.PeekKind() == '}'
}

// called returns the value of a member, a text without its quotes, and how many members an endpoint may take
// for it. Some endpoints ignore letter case, so one that is written in other letters counts as two.
func called(list []member, name string) (value string, n int) {
	for _, m := range list {
		switch {
		case m.name == name:
			n++
			value = m.value
			if text, ok := item.JSON(value).Unquote(); ok {
				value = text
			}
		case strings.EqualFold(m.name, name):
			n += 2
		}
	}
	return value, n
}

func toolsOf(defs []item.Tool) (list []item.Tool) {
	for _, def := range defs {
		if space, ok := def.(*item.NamespaceTool); ok {
			list = append(list, toolsOf(space.Tools)...)
		} else if ByEndpoint(def) {
			list = append(list, def)
		}
	}
	return list
}

// ByEndpoint reports whether the client runs no calls of a tool. A namespace counts if this is so of one of
// its tools.
func ByEndpoint(def item.Tool) bool {
	switch d := def.(type) {
	case *item.FunctionTool, *item.CustomTool:
		return false
	case *item.NamespaceTool:
		return len(toolsOf(d.Tools)) > 0
	}
	return true
}

// Hosted reports whether an item gives tools to the model and the endpoint may run one of them.
func Hosted(it item.Item) bool {
	list, plain := Tools(it)
	return len(list) > 0 || !plain
}

// Of returns a definition of a tool as an item, so that one rule is for both.
func Of(def item.Tool) item.Item {
	it, _ := item.New(&item.AdditionalTools{Role: item.RoleDeveloper, Tools: []item.Tool{def}}) // one that cannot be encoded is not sent
	return it
}

// separators are the characters that spellings of a member's name differ in.
var separators = strings.NewReplacer("_", "", "-", "")

// Unasked reports whether an item gives a tool to the model whose calls an endpoint makes without asking for
// approval, or with other words than the API has for it.
func Unasked(it item.Item) bool {
	d := jsontext.NewDecoder(strings.NewReader(it.JSON()), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind, n := d.StackIndex(d.StackDepth())
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		if kind != '{' || n%2 != 0 || t.Kind() != '"' {
			continue
		}
		switch name := t.String(); strings.ToLower(separators.Replace(name)) {
		case "requireapproval":
			value, err := d.ReadValue()
			if err != nil || name != "require_approval" || string(value) != string(item.ApprovalAlways) {
				return true
			}
		case "parameters", "outputschema", "inputschema": // schemas of functions may name anything
			if d.SkipValue() != nil {
				return true
			}
		}
	}
}

// Unreadable stands for an address in an item that cannot be read.
const Unreadable = "what cannot be read"

// Sites returns the sites from which an item makes an endpoint fetch, each once: the scheme and the host of
// its [URLs]. Of an address without a host, also the path of a local file, it returns the beginning. An
// address for which read returns true is left out; read may be nil.
func Sites(it item.Item, read func(address string) bool) (sites []string) {
	known := map[string]bool{}
	for _, address := range URLs(it.JSON()) {
		if read != nil && read(address) {
			continue
		}
		site := Unreadable
		if address != "" {
			site = SiteOf(address)
		}
		if !known[site] {
			known[site] = true
			sites = append(sites, site)
		}
	}
	return sites
}

// URLs returns the addresses in a JSON value from which an endpoint may fetch, at any depth and in lists: the values of members whose
// name says so (image_url, file_data, uri, href), and every other text that is an address as a whole and is not for people or the model
// to read, because items and parts of later versions may call an address what they like. What a reply cites is none, nor is data: the annotations
// of a text, and the action and the sources of a search of the web.
// Names are compared without case, as some servers do. One that is "" stands for what cannot be read.
func URLs(raw string) []string {
	if lower := escapes.Replace(strings.ToLower(raw)); !slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(lower, sign) }) {
		return nil
	}
	members, _ := membersOf(raw)
	kind, types := called(members, "type")
	// A text may have half a character; the name of a member that has one could be taken for any.
	w := walk{d: jsontext.NewDecoder(strings.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	w.call = types == 1 && slices.Contains(calls, item.Type(kind))
	w.strange = types > 1 || types == 1 && !isKnown(kind)
	if !w.value("", false) {
		w.urls(w.cited)
		w.list = append(w.list, "")
	}
	return w.list
}

// signs are in small letters; a text without any of them has no address.
var signs = []string{"url", "uri", "href", "src", fileData, "//", `\/`, `\u`, "http:", "https:", "file:"}

// escapes takes out of JSON what hides the beginning of an address; see [unhidden].
var escapes = strings.NewReplacer(`\\`, "/", `\t`, "", `\n`, "", `\r`, "")

// A walk collects the addresses of a JSON value.
type walk struct {
	d       *jsontext.Decoder
	call    bool // of an item that is a call, or what came of one
	strange bool // of an item of a type that this version does not know
	list    []string
	cited   []string // by an action, if the object around it is a search of the web
}

// isKnown reports whether package item knows the type of an item.
func isKnown(kind string) bool {
	it, err := item.ParseString(`{"type":` + string(item.Quote(kind)) + `}`)
	if err != nil {
		return false
	}
	v, _ := it.Decode() // an error is about the members that are missing
	_, unknown := v.(*item.Unknown)
	return !unknown
}

// value reads the value of a member, and reports whether it can be read. Below free members, as in the schema of a function, only
// those whose name says so are addresses.
func (w *walk) value(member string, free bool) bool {
	t, err := w.d.ReadToken()
	if err != nil {
		return false
	}
	switch t.Kind() {
	case '[':
		for w.d.PeekKind() > 0 && w.d.PeekKind() != ']' {
			if !w.value(member, free) {
				return false
			}
		}
	case '{':
		return w.object(member, free)
	case '"':
		w.text(member, t.String(), free)
		return true
	default:
		return true
	}
	_, err = w.d.ReadToken()
	return err == nil
}

// object reads the rest of an object. Its member url is an address, unless the object is a citation, which its type and its place say.
func (w *walk) object(member string, free bool) bool {
	var urls, types []string
	outer := w.cited
	w.cited = nil
	for w.d.PeekKind() == '"' {
		t, err := w.d.ReadToken()
		if err != nil {
			return false
		}
		name := strings.ToLower(t.String())
		if strings.ContainsRune(name, utf8.RuneError) {
			w.list = append(w.list, "")
		}
		if name == "type" && w.d.PeekKind() != '"' {
			types = append(types, "")
		}
		if w.d.PeekKind() != '"' || name != "url" && name != "type" {
			inner := name
			if name == "url" && (!free || named(member)) {
				inner = "image_url" // a list, or an object
			}
			if !w.value(inner, free || slices.Contains(freeMembers, name)) {
				return false
			}
			continue
		}
		if t, err = w.d.ReadToken(); err != nil {
			return false
		}
		if name == "url" {
			urls = append(urls, t.String())
		} else {
			types = append(types, t.String())
		}
	}
	kind := ""
	if len(types) == 1 {
		kind = types[0]
	}
	w.judge(member, kind, urls, free)
	w.cited = append(outer, w.cited...)
	_, err := w.d.ReadToken()
	return err == nil
}

// judge decides about the members url of an object, and about what is cited inside it.
func (w *walk) judge(member, kind string, urls []string, free bool) {
	action := member == "action" && slices.Contains(actions, kind)
	search := kind == string(item.TypeWebSearchCall) && w.d.StackDepth() == 1
	if !action {
		if !search {
			w.urls(w.cited)
		}
		w.cited = nil
	}
	switch {
	case member == "annotations" && kind == "url_citation":
		return
	case !free && (action || member == "sources" && kind == "url"):
		w.cited = append(w.cited, urls...)
		return
	}
	if named(member) || !free {
		w.urls(urls)
	}
}

// urls adds the values of members that hold addresses.
func (w *walk) urls(values []string) {
	for _, u := range values {
		w.text("image_url", u, false)
	}
}

// text adds the value of a member if it is an address.
func (w *walk) text(member, value string, free bool) {
	is := named(member)
	switch {
	case value == "", strings.EqualFold(value[:min(len(value), len("data:"))], "data:"):
		return
	case member == fileData:
		is = !isBase64(value) && !item.HasHeld(value)
	case !is && !free && (w.strange || !slices.Contains(wordMembers, member)) && !(w.call && slices.Contains(callMembers, member)):
		is = isAddress(value)
	}
	if is {
		w.list = append(w.list, value)
	}
}

// fileData is a member that holds data, for which some servers accept an address.
const fileData = "file_data"

var (
	// actions are the types of what a search of the web did; a member url says where.
	actions = []string{"search", "open_page", "find_in_page"}
	// freeMembers hold what people choose, for which no server has a meaning of its own.
	freeMembers = []string{"parameters", "input_schema", "output_schema", "schema", "attributes", "metadata"}
	// wordMembers hold texts to read or to run at the client, which may consist of an address. Of items that this version knows, no endpoint
	// fetches them: OpenAI's API, and those of vLLM, SGLang, llama.cpp, Ollama, LM Studio, OpenRouter, Mistral, DashScope and Gemini, say by
	// other names what is fetched: url, uri, href, src, path, image, video, audio, file_data and the like, which all count. That holds for parts of a type
	// that this version does not know, too: a prompt that consists of an address is common, and to ask about each would teach people to say yes.
	// What an item of an unknown type means, nobody here can say, and such items are rare, so in them these members count as well.
	wordMembers = []string{
		"text", "content", "instructions", "refusal", "reasoning", "name", "title", "description",
		"code", "logs", "command", "commands", "stdout", "stderr", "diff", "pattern", "definition", "error", "message", "reason",
	}
	// callMembers hold such texts in calls and in what came of them.
	callMembers = []string{"input", "output", "arguments", "query", "queries"}
	// calls are the types of these items.
	calls = []item.Type{
		item.TypeFunctionCall, item.TypeFunctionCallOutput, item.TypeCustomToolCall, item.TypeCustomToolCallOutput,
		item.TypeProgram, item.TypeProgramOutput, item.TypeLocalShellCall, item.TypeLocalShellCallOutput,
		item.TypeShellCall, item.TypeShellCallOutput, item.TypeApplyPatchCall, item.TypeApplyPatchCallOutput,
		item.TypeComputerCall, item.TypeComputerCallOutput, item.TypeToolSearchCall, item.TypeToolSearchOutput,
		item.TypeMCPApprovalRequest, item.TypeMCPApprovalResponse, item.TypeMCPCall,
		item.TypeFileSearchCall, item.TypeWebSearchCall, item.TypeImageGenerationCall, item.TypeCodeInterpreterCall,
	}
)

// named reports whether the name of a member, in small letters, says that it holds an address. That of url is judged with its object.
func named(member string) bool {
	return member == "src" || strings.HasSuffix(member, "uri") || strings.HasSuffix(member, "href") || strings.HasSuffix(member, "url") && member != "url"
}

// unhidden makes an address what browsers and many servers read: without tabs and ends of lines, and with slashes for backslashes.
var unhidden = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/")

// isAddress reports whether a text begins with a scheme, or with a host after two slashes, as addresses do.
func isAddress(text string) bool {
	text = strings.TrimLeftFunc(unhidden.Replace(text), func(r rune) bool { return r < ' ' || unicode.IsSpace(r) })
	text = strings.ToLower(strings.TrimSpace(text))
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(text, "//") && len(text) > 2:
		return !strings.Contains(text, " ")
	case !found || scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "":
		return false
	}
	return strings.HasPrefix(rest, "//") || scheme == "http" || scheme == "https" || scheme == "file"
}

// isBase64 reports whether a text is data in base64, and not a path that could be taken for it. Data
// that begins with a slash is a JPEG.
func isBase64(s string) bool {
	if len(s)%4 != 0 || strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "/9j/") {
		return false
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for _, c := range []byte(s) {
		if c >= 0x80 || !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", rune(c)) {
			return false
		}
	}
	return true
}

// SiteOf returns the scheme and the host of an address, or the beginning of one without a host.
func SiteOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return Excerpt(address)
	}
	return Excerpt(strings.ToLower(u.Scheme + "://" + u.Host))
}

// Excerpt returns the beginning of a text that a stranger wrote, of a length that people read.
func Excerpt(text string) string {
	const most = 200 // bytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
