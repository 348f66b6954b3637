// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Config is the config element. A value that is not given is empty or nil, and is
// not sent.
type Config struct {
	Element

	Model           string
	MaxTokens       *int64 // of one reply
	Temperature     *float64
	ReasoningEffort string
	ID              string
	ShowToolCall    bool

	BaseURL           string
	Profile           string
	ToolChoice        string // "auto", "none", "required" or the name of a tool
	ParallelToolCalls *bool
	ToolOutput        string // "envelope", "plain" or ""
	MaxTurns          *int64
	Budget            *int64 // tokens of one run
	CollapseReads     bool
	AutoCompact       bool
	Store             *bool
	Description       string // what the agent does, for those who choose one
}

// config reads a config element. Only the first one is used.
func (c *compiler) config(n *node) {
	cfg := &Config{
		Element:         c.element(n),
		Model:           c.filled(n, "model"),
		MaxTokens:       c.count(n, "max_tokens"),
		Temperature:     c.number(n, "temperature", 2),
		ReasoningEffort: n.value("reasoning_effort"),
		ID:              n.value("id"),
		ShowToolCall:    c.flag(n, "show_tool_call"),

		BaseURL:       c.filled(n, "base_url"),
		Profile:       c.filled(n, "profile"),
		Description:   c.filled(n, "description"),
		ToolChoice:    n.value("tool_choice"),
		ToolOutput:    c.oneOf(n, "tool_output", "envelope plain"),
		MaxTurns:      c.count(n, "max_turns"),
		Budget:        c.count(n, "budget"),
		CollapseReads: c.flag(n, "collapse_reads"),
		AutoCompact:   c.flag(n, "auto_compact"),

		ParallelToolCalls: c.optFlag(n, "parallel_tool_calls"),
		Store:             c.optFlag(n, "store"),
	}
	if c.file.Config == nil {
		c.file.Config = cfg
		return
	}
	first := c.file.Config.Position
	c.warn(n, n.start, n.excerpt(), "a second <config> is ignored", fmt.Sprintf("the <config> in line %d is used", first.Line))
}

// filled reads a text that must not be empty, because without the attribute a
// default would be used that the author did not intend.
func (c *compiler) filled(n *node, name string) string {
	a, ok := n.attr(name)
	if !ok {
		return ""
	}
	if strings.Trim(a.Value, space) == "" && (a.Bare || a.to > a.from) { // a broken attribute has another error
		c.failAttr(n, a, name+" is empty", "give it a value, or leave it out")
	}
	return a.Value
}

// count reads a whole number above zero, or returns nil if the attribute is not
// given.
func (c *compiler) count(n *node, name string) *int64 {
	a, ok := n.attr(name)
	if !ok {
		return nil
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(strings.Trim(a.Value, space), "_", ""), 10, 64)
	if err != nil || v <= 0 {
		c.failAttr(n, a, fmt.Sprintf("%s is not a whole number above zero: %q", name, excerpt(a.Value)), `such as `+name+`="1000"`)
		return nil
	}
	return &v
}

// number reads a number from zero to most, or returns nil if the attribute is not
// given.
func (c *compiler) number(n *node, name string, most float64) *float64 {
	a, ok := n.attr(name)
	if !ok {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(a.Value, space), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		c.failAttr(n, a, fmt.Sprintf("%s is not a number: %q", name, excerpt(a.Value)), `such as `+name+`="0.7"`)
		return nil
	}
	if v < 0 {
		c.failAttr(n, a, fmt.Sprintf("%s is below zero: %q", name, excerpt(a.Value)), `such as `+name+`="0.7"`)
		return nil
	}
	if v > most {
		c.failAttr(n, a, fmt.Sprintf("%s is above %v: %q", name, most, excerpt(a.Value)), `such as `+name+`="0.7"`)
		return nil
	}
	return &v
}

// flag reads a flag: it is true if the attribute is present, unless its value is
// "false".
func (c *compiler) flag(n *node, name string) bool {
	a, ok := n.attr(name)
	if !ok {
		return false
	}
	switch a.Value {
	case "", "true", "false", name:
	default:
		c.warn(n, a.start, excerpt(n.src.text[a.start:a.to]), fmt.Sprintf("<%s>: the flag %s is on: its value is neither true nor false", n.tag, name), `off is `+name+`="false"`)
	}
	return a.Value != "false"
}

// optFlag is like flag, but returns nil if the attribute is not given.
func (c *compiler) optFlag(n *node, name string) *bool {
	if !n.has(name) {
		return nil
	}
	return new(c.flag(n, name))
}
