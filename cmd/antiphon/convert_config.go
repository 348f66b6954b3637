// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/completions"
)

// configured lists the attributes of a <config> that are parameters of a request.
var configured = []string{"model", "max_tokens", "temperature", "reasoning_effort", "parallel_tool_calls", "store"}

// takeConfig sets the parameters of a request from a <config>.
func takeConfig(r *api.Request, c *chatmd.Config) {
	r.Model, r.MaxOutputTokens, r.Temperature = c.Model, c.MaxTokens, c.Temperature
	r.ParallelToolCalls, r.Store = c.ParallelToolCalls, c.Store
	if c.ReasoningEffort != "" {
		r.Reasoning = &api.ReasoningConfig{Effort: c.ReasoningEffort}
	}
}

// settings records the loss of the other attributes of a <config>, except a tool
// choice that was copied to the request.
func (d *document) settings(c *chatmd.Config, choice bool) {
	if c == nil {
		return
	}
	for _, a := range c.Attrs {
		if !slices.Contains(configured, a.Name) && !(a.Name == "tool_choice" && choice) {
			d.elsewhere = append(d.elsewhere, completions.Loss{Path: "<config " + a.Name + ">", What: "is not part of the conversation and is left out"})
		}
	}
}

// appendConfig writes the parameters that a <config> can hold and removes them from
// the request.
func appendConfig(out []byte, r *api.Request) []byte {
	var w configWriter
	if w.text("model", r.Model, func(c *chatmd.Config) string { return c.Model }) {
		r.Model = ""
	}
	if n := r.MaxOutputTokens; n != nil && w.keeps("max_tokens", strconv.FormatInt(*n, 10), func(c *chatmd.Config) bool { return same(c.MaxTokens, n) }) {
		r.MaxOutputTokens = nil
	}
	if t := r.Temperature; t != nil && w.keeps("temperature", strconv.FormatFloat(*t, 'g', -1, 64), func(c *chatmd.Config) bool { return same(c.Temperature, t) }) {
		r.Temperature = nil
	}
	if e := r.Reasoning; e != nil && w.text("reasoning_effort", e.Effort, func(c *chatmd.Config) string { return c.ReasoningEffort }) {
		rest := *e
		rest.Effort = ""
		if r.Reasoning = &rest; reflect.ValueOf(rest).IsZero() {
			r.Reasoning = nil
		}
	}
	if b := r.ParallelToolCalls; b != nil && w.keeps("parallel_tool_calls", strconv.FormatBool(*b), func(c *chatmd.Config) bool { return same(c.ParallelToolCalls, b) }) {
		r.ParallelToolCalls = nil
	}
	if b := r.Store; b != nil && w.keeps("store", strconv.FormatBool(*b), func(c *chatmd.Config) bool { return same(c.Store, b) }) {
		r.Store = nil
	}
	if c := r.ToolChoice; c == api.ChoiceAuto || c == api.ChoiceNone { // the others refer to tools, which it does not contain
		mode, _ := c.Unquote()
		if w.text("tool_choice", mode, func(c *chatmd.Config) string { return c.ToolChoice }) {
			r.ToolChoice = ""
		}
	}
	if len(w.attrs) == 0 {
		return out
	}
	return append(out, "<config"+w.attrs+"/>\n"...)
}

func same[T comparable](a, b *T) bool { return a != nil && b != nil && *a == *b }

// A configWriter collects the attributes of a <config>.
type configWriter struct{ attrs string }

// attrEscaper escapes what would end the value of an attribute or change it.
var attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", `\`, "&#92;", "\n", "&#10;", "\r", "&#13;", "\t", "&#9;")

// keeps adds an attribute if a reader would get the same value back, and reports
// whether it did.
func (w *configWriter) keeps(name, value string, got func(*chatmd.Config) bool) bool {
	attr := " " + name + `="` + attrEscaper.Replace(value) + `"`
	file, err := chatmd.Parse("", []byte("<config"+attr+"/>\n"))
	if err != nil || file.Config == nil || !got(file.Config) {
		return false
	}
	w.attrs += attr
	return true
}

func (w *configWriter) text(name, value string, got func(*chatmd.Config) string) bool {
	return value != "" && w.keeps(name, value, func(c *chatmd.Config) bool { return got(c) == value })
}
