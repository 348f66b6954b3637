// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// Options are what a file can name, such as places and profiles, and what may be
// done to load it. The zero value works.
type Options struct {
	// Workspace is ${workspace}: where tools work when a file declares no
	// roots. Empty means the file's own folder.
	Workspace string
	// Home is ${home}.
	Home string
	// Profiles is where a file's profile is looked up. Nil is the built-in
	// table.
	Profiles *endpoint.Table
	// Asker answers the tool ask_user. Nil means that nobody can.
	Asker toolkit.Asker
	// Allow are patterns over names of tools: whoever runs the file has answered
	// what it wants to be asked about them, so that approval="ask" says nothing.
	Allow []string

	// Runner runs the agents that stand in messages, whose answers become part of
	// the messages. Nil runs none, so that a file with such agents is not loaded.
	Runner *Runner
	// Check reads a file with all that is on this machine, to see what is wrong
	// with it. Nothing is run and nothing is fetched: what an agent or the
	// network would say is left out of Items.
	Check bool
	// Web says how documents are fetched that a file names by a URL. The zero
	// value reaches the public internet only.
	Web toolkit.WebPageOptions

	loading []string // the files that are being loaded, by their paths
}

// File is an agent file, read and resolved. It is not changed by runs; Close it
// when its tools are no longer used.
type File struct {
	// Path is where it was read from.
	Path string
	// Doc is the parsed file.
	Doc *chatmd.File
	// Items are its messages, in order: the prompt, and in a transcript what
	// followed.
	Items []item.Item
	// Partial says that Items leave out what agents or the network would say: the
	// file was only checked.
	Partial bool
	// Tools are those that it declares, without those of servers and agents.
	Tools []tool.Tool
	// Warnings are remarks on what was read all the same, one line each.
	Warnings []error

	policy  agent.Policy
	files   *toolkit.Files
	nested  []nested
	servers []*declared
	bridge  *mcpbridge.Bridge
	// broken holds the numbers of the items behind which a reply broke off.
	broken map[int]bool
	// waiting holds the numbers of the calls that wait for an approval.
	waiting map[int]bool
	// fetched holds what agents and the network said, by the places of the
	// elements.
	fetched map[elementPlace]string
}

// Load reads an agent file. All that is wrong with it is in the error: a
// [chatmd.ErrorList] with places, beside a File that holds only the warnings,
// or what the file system says of a file that cannot be read.
func Load(ctx context.Context, path string, o Options) (*File, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(ctx, path, path, src, o)
}

// read reads a file that a person named on the command line.
func read(path string) ([]byte, error) {
	src, err := os.ReadFile(path)
	var pathErr *fs.PathError
	if err != nil && errors.As(err, &pathErr) {
		return nil, fmt.Errorf("%s: %w", path, pathErr.Err)
	}
	return src, err
}

// parse reads the text of a file that stands, or is to stand, at path. The name
// is for messages. All is checked, agents that are tools included, before an
// agent or the network is asked anything.
func parse(ctx context.Context, name, path string, src []byte, o Options) (*File, error) {
	checked := o
	checked.Check = true
	f, err := parseOnce(ctx, name, path, src, checked)
	if err != nil || o.Check || !f.Partial {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return parseOnce(ctx, name, path, src, o)
}

func parseOnce(ctx context.Context, name, path string, src []byte, o Options) (*File, error) {
	places, err := placesOf(path, o)
	if err != nil {
		return nil, err
	}
	if len(o.loading) == 0 {
		o.loading = []string{filepath.Join(places.promptDir, filepath.Base(path))}
	}
	from := newSources(places, o)
	// The error comes again with the items.
	self := o.loading[len(o.loading)-1]
	id, linkErr := filepath.EvalSymlinks(self)
	if linkErr != nil { // a transcript that is not there yet
		id = self
	}
	doc, _ := chatmd.Load(ctx, chatmd.Source{Name: name, Base: self, ID: id, Text: src}, from)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &File{Path: path, Doc: doc}
	for _, w := range doc.Warnings {
		f.Warnings = append(f.Warnings, fmt.Errorf("%w [warning]", w))
	}
	problems := f.checkConfig(o.Profiles)
	problems = append(problems, f.makeTools(ctx, places, o)...)
	problems = append(problems, f.resolve(ctx, from)...)
	if err := ctx.Err(); err != nil {
		f.Close()
		return nil, err
	}
	if len(problems) > 0 {
		f.Close()
		slices.SortStableFunc(problems, func(a, b *chatmd.Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return &File{Path: path, Doc: doc, Warnings: f.Warnings}, problems
	}
	return f, nil
}

// Close gives back what the tools hold, and ends the servers. It may be called
// more than once.
func (f *File) Close() error {
	var problems []error
	for _, n := range f.nested {
		problems = append(problems, n.file.Close())
	}
	if f.bridge != nil {
		problems = append(problems, f.bridge.Close())
	}
	if f.files != nil {
		problems = append(problems, f.files.Close())
		f.files = nil
	}
	return errors.Join(problems...)
}

// Model returns the model that the file asks for, or "".
func (f *File) Model() string {
	if f.Doc.Config == nil {
		return ""
	}
	return f.Doc.Config.Model
}

// BaseURL returns the endpoint that the file names, or "".
func (f *File) BaseURL() string {
	if f.Doc.Config == nil {
		return ""
	}
	return f.Doc.Config.BaseURL
}

// Profile returns the name of the endpoint's profile that the file names, or "".
func (f *File) Profile() string {
	if f.Doc.Config == nil {
		return ""
	}
	return f.Doc.Config.Profile
}

// Script loads a rehearsal script whose path is relative to the file.
func (f *File) Script(path string) (*rehearsal.Script, error) {
	full := f.scriptPath(path)
	script, err := rehearsal.Load(full)
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return nil, fmt.Errorf("the rehearsal's script %s: %w", full, pathErr.Err)
	}
	return script, err
}

// scriptPath is where a script is that the file's config names.
func (f *File) scriptPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	dir := filepath.Dir(f.Path)
	if c := f.Doc.Config; c != nil && c.Base != "" {
		dir = filepath.Dir(c.Base)
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// Session returns a session in memory that begins with the file's items.
func (f *File) Session(ctx context.Context) (*session.Session, error) {
	s := session.New()
	_, err := s.Append(ctx, f.Log()...)
	return s, err
}

// Log returns what the file says, as the beginning of a session's log.
func (f *File) Log() []session.Body {
	bodies := make([]session.Body, 0, len(f.Items)+len(f.broken))
	for i, it := range f.Items {
		bodies = append(bodies, session.Given{Item: it})
		if f.broken[i] {
			bodies = append(bodies, session.TurnEnded{Status: item.StatusFailed})
		}
	}
	return append(bodies, askedAbout(f.Items, f.waiting)...)
}

// Agent returns an agent as the file describes it. The caller may change it;
// the file's messages are not in it, they are the session's.
func (f *File) Agent(model agent.Model) *agent.Agent {
	a := &agent.Agent{Model: model, Tools: slices.Clone(f.Tools), Policy: f.policy}
	if len(f.servers) > 0 {
		a.ToolSource = f.serverTools
	}
	c := f.Doc.Config
	if c == nil {
		return a
	}
	a.Request.Model = c.Model
	a.Request.MaxOutputTokens = c.MaxTokens
	a.Request.Temperature = c.Temperature
	a.Request.ParallelToolCalls = c.ParallelToolCalls
	a.Request.Store = c.Store
	a.CollapseReads, a.Compaction.Auto = c.CollapseReads, c.AutoCompact
	if c.ReasoningEffort != "" {
		a.Request.Reasoning = &item.ReasoningConfig{Effort: c.ReasoningEffort}
	}
	a.Shape.Envelope = c.ToolOutput == "envelope"
	if c.MaxTurns != nil {
		a.Limits.MaxTurns = int(min(*c.MaxTurns, 1<<30))
	}
	if c.Budget != nil {
		a.Limits.MaxTokens = *c.Budget
	}
	return a
}

// minOutputTokens is the least that the API takes.
const minOutputTokens = 16

// checkConfig reports settings that cannot be acted on.
func (f *File) checkConfig(profiles *endpoint.Table) (problems chatmd.ErrorList) {
	c := f.Doc.Config
	if c == nil {
		return nil
	}
	bad := func(message, hint string) {
		problems = append(problems, problemAt(f.Doc.Name, c.Element, message, hint, nil))
	}
	if c.MaxTokens != nil && *c.MaxTokens < minOutputTokens {
		bad(fmt.Sprintf("<config>: max_tokens is %d, below what endpoints take", *c.MaxTokens), fmt.Sprintf("at least %d", minOutputTokens))
	}
	if _, err := profiles.ByName(c.Profile); err != nil && c.Profile != "" {
		bad("<config>: "+err.Error(), "or add it to the file that --profiles names")
	}
	return problems
}

// problemAt is a problem of an element.
func problemAt(file string, e chatmd.Element, message, hint string, cause error) *chatmd.Error {
	return &chatmd.Error{File: cmp.Or(e.File, file), Line: e.Line, Column: e.Column, Message: message, Hint: hint, Err: cause}
}
