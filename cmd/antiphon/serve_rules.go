// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// offeredTools are the names of the tools of each file that is served, as the file is at the start.
type offeredTools struct {
	files  [][]string
	unsure bool // a file has tools that are known only in a run
	sure   []bool
}

func (o *offeredTools) add(f *agentfile.File) {
	names, all := f.ToolNames()
	o.files, o.sure = append(o.files, append(names, tool.ReadOutputName)), append(o.sure, all)
	o.unsure = o.unsure || !all
}

// names returns the names of all tools, each once.
func (o *offeredTools) names() []string {
	list := slices.Concat(o.files...)
	slices.Sort(list)
	return slices.Compact(list)
}

// check refuses a rule about a tool that no file has: a typing error would let calls run.
func (o *offeredTools) check(rules []session.Rule) error {
	names := o.names()
	var wrong []error
	for _, r := range rules {
		if o.unsure || strings.ContainsAny(r.Tool, `*?[\`) || slices.Contains(names, r.Tool) {
			continue
		}
		err := fmt.Errorf("%s: no agent that is served has a tool %s", r.From, show.Visible(r.Tool))
		if i := slices.IndexFunc(names, func(name string) bool { return host.Nearly(name, r.Tool) }); i >= 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, show.Visible(names[i]))
		} else {
			err = fmt.Errorf("%w; the tools: %s", err, show.Visible(strings.Join(names, ", ")))
		}
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// others returns what the rules say about tools that the file at i does not have and another one has, or may
// have. A rule about a tool that the file has now must match it in each run: a renamed tool would escape it.
func (o *offeredTools) others(i int, rules []session.Rule) (list []string) {
	for _, r := range rules {
		matches := func(name string) bool { ok, err := path.Match(r.Tool, name); return ok && err == nil }
		if slices.ContainsFunc(o.files[i], matches) {
			continue
		}
		for j, names := range o.files {
			if k := slices.IndexFunc(names, matches); j != i && k >= 0 {
				list = append(list, names[k])
			} else if j != i && !o.sure[j] {
				list = append(list, r.Tool)
			}
		}
	}
	return list
}
