// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Tool is a tool declaration. Its Attrs hold all attributes as given.
type Tool struct {
	Element

	Name        string
	Description string
	Approval    string
	Timeout     time.Duration // 0 when not given
	// StartTimeout is how long an MCP server may take to start; 0 when not given.
	StartTimeout time.Duration
	MaxOutput    *int64
	Parallel     *bool
	// Polling means that the same call is meant to be made again and again. AskAgain is
	// when to make it again if a command says that its result is not there yet; 0 when not
	// given.
	Polling  bool
	AskAgain time.Duration
	// Roots are the read elements inside, in order.
	Roots []Root
	// Hosted is the definition of a tool that the endpoint runs; nil for all others.
	Hosted item.Tool
}

// Root is a read element: a named directory that the tool may read. Path is as
// written, with variables.
type Root struct {
	Element

	ID          string
	Path        string
	Description string
}

// unbuiltTool names the feature of the original system that the declaration uses, or
// returns "".
func unbuiltTool(n *node) string {
	if n.value("type") == "shell" && !hosted(n) {
		return `<tool type="shell">`
	}
	return ""
}

// kind checks that a declaration states exactly one kind of tool.
func (c *compiler) kind(n *node) {
	var kinds []string
	for _, name := range []string{"command", "agent", "mcp_server"} {
		if !n.has(name) {
			continue
		}
		kinds = append(kinds, name)
		if strings.Trim(n.value(name), space) == "" {
			c.fail(n, "<tool "+name+"> is empty", "")
		}
	}
	if len(kinds) > 1 {
		c.fail(n, "<tool> has "+strings.Join(kinds, " and "), "a tool is one of them")
	}
}

func (c *compiler) tool(n *node) {
	if hosted(n) {
		c.hostedTool(n)
		return
	}
	feature := unbuiltTool(n)
	if feature != "" {
		c.notBuilt(n, feature)
	} else if a, ok := n.attr("type"); ok {
		c.failAttr(n, a, "a tool has a type or a name", "one with a type is run by the endpoint and has no name; one with a name is run here and has no type")
	}
	c.kind(n)
	t := &Tool{
		Element:      c.element(n),
		Name:         strings.Trim(n.value("name"), space),
		Description:  strings.Trim(n.value("description"), space),
		Approval:     n.value("approval"),
		Timeout:      c.duration(n, "timeout"),
		StartTimeout: c.duration(n, "start_timeout"),
		MaxOutput:    c.count(n, "max_output"),
		Parallel:     c.optFlag(n, "parallel"),
	}
	if t.Name == "" && !n.has("mcp_server") {
		c.fail(n, "<tool> needs a name", `write <tool name="…"/>`)
	}
	if a, ok := n.attr("start_timeout"); ok && !n.has("mcp_server") {
		c.failAttr(n, a, "<tool>: start_timeout is for mcp_server", "timeout bounds a call")
	}
	c.polling(n, t)
	if feature == "" {
		c.roots(n, t)
	}
	c.file.Tools = append(c.file.Tools, t)
}

// polling reads the attribute polling: a flag or, for a command, a time.
func (c *compiler) polling(n *node, t *Tool) {
	a, ok := n.attr("polling")
	switch {
	case !ok:
	case n.has("agent"):
		c.failAttr(n, a, "polling is not for an agent", "give it to the tool of the agent that waits")
	case strings.ContainsAny(a.Value, "0123456789"):
		if t.Polling, t.AskAgain = true, c.duration(n, "polling"); !n.has("command") {
			c.failAttr(n, a, "only a command has a time to ask again", "for other tools polling is a flag")
		}
	default:
		t.Polling = c.flag(n, "polling")
	}
}

// duration reads a time such as 30s, or a number of seconds.
func (c *compiler) duration(n *node, name string) time.Duration {
	a, ok := n.attr(name)
	if !ok {
		return 0
	}
	value := strings.Trim(a.Value, space)
	if _, err := strconv.ParseUint(value, 10, 32); err == nil {
		value += "s"
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		c.failAttr(n, a, fmt.Sprintf("%s is not a duration: %q", name, excerpt(a.Value)), `such as `+name+`="30s"`)
		return 0
	}
	return d
}

// roots reads the content of a tool declaration.
func (c *compiler) roots(n *node, t *Tool) {
	seen := map[string]int{}
	for _, k := range n.nodes {
		switch {
		case k.kind == comment || k.kind == text && strings.Trim(k.text, space) == "":
		case k.kind != element:
			c.fail(n, "<tool> holds text", "only <read/> elements belong inside")
			return
		default:
			c.root(t, k, seen)
		}
	}
}

// root reads a root; seen holds the lines of earlier roots by id.
func (c *compiler) root(t *Tool, n *node, seen map[string]int) {
	if t.Name != "read_file" && t.Name != "get_contents" {
		c.fail(n, home("read")+fmt.Sprintf(", not inside %q", t.Name), "")
	}
	r := Root{
		Element:     c.element(n),
		ID:          c.required(n, "id"),
		Path:        c.required(n, "path"),
		Description: n.value("description"),
	}
	if line, ok := seen[r.ID]; ok && r.ID != "" {
		c.fail(n, fmt.Sprintf("two roots have the id %q", excerpt(r.ID)), fmt.Sprintf("the other is in line %d", line))
	}
	seen[r.ID] = r.Line
	t.Roots = append(t.Roots, r)
}
