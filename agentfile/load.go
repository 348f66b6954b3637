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
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

// Options configure how a file is loaded. The zero value is ready for use.
type Options struct {
	// Workspace is ${workspace}: the folder of the tools if a file declares no roots.
	// If it is empty, the file's own folder is used.
	Workspace string
	// Home is ${home}.
	Home string
	// Profiles is the table for the file's profile. Nil means the built-in table.
	Profiles *endpoint.Table
	// Asker answers the tool ask_user. Nil means that nobody can be asked.
	Asker toolkit.Asker
	// Live receives the output of commands while they run: see shell.Options. It may
	// be nil.
	Live func(call tool.Call, stderr bool, text []byte)
	// Allow are patterns for names of tools. approval="ask" has no effect on these
	// tools, because the person who runs the file has allowed them already.
	Allow []string

	// KeepAgent lets [OpenTranscript] continue a transcript that another agent's file
	// began.
	KeepAgent bool

	// Runner runs the agents in messages, whose answers become part of the messages.
	// If it is nil, a file with such agents cannot be loaded.
	Runner *Runner
	// Answers is a folder for the answers of such agents, so that an equal agent is
	// not asked the same again. It is created when it is needed, with access for its
	// owner only. Its content is trusted: it must be the user's own folder, for
	// example in [os.UserCacheDir], and must not be part of files from another source.
	// If other users can write to it, it is not used, and a warning says so. Several
	// programs may share it. If it is empty, no answers are stored.
	Answers string
	// Check reads a file with everything on this machine to find its problems. Nothing
	// is run and nothing is fetched: answers of agents and documents from the network
	// are missing from Items.
	Check bool
	// Salvage reads the content of a file even if the file cannot be run: unknown
	// tools and features are left out, and documents, images and files that cannot be
	// read stay references. [File.Left] names them.
	Salvage bool
	// Web configures how documents are fetched by URL. The zero value allows only the
	// public internet.
	Web web.Options

	loading []string // the paths of the files that are being loaded
}

// File is an agent file that has been read and resolved. Runs do not change it.
// Close it when its tools are no longer needed.
type File struct {
	// Path is the path that the file was read from.
	Path string
	// Doc is the parsed file.
	Doc *chatmd.File
	// Items are the file's messages, in order: the prompt and, in a transcript, the
	// items after it.
	Items []item.Item
	// Partial means that Items lack the answers of agents or documents from the
	// network, because the file was only checked.
	Partial bool
	// Tools are the declared tools, except for those of servers and agents.
	Tools []tool.Tool
	// Hosted are the declared tools that the endpoint runs.
	Hosted []item.Tool
	// Warnings are problems that did not prevent loading, one line each.
	Warnings []error

	// Left lists what [Options.Salvage] left out, or left as a reference.
	Left chatmd.ErrorList

	empty   bool // it was loaded and has no content
	policy  agent.Policy
	files   *toolkit.Files
	nested  []nested
	servers []*declared
	bridge  *mcpbridge.Bridge
	log     []session.Body
	release func() error // releases the lock on the transcript
	// used is the usage of agents in messages that ran when the file was loaded.
	used []agent.Usage
	// fetched holds the answers of agents and documents from the network, by the
	// places of their elements.
	fetched map[elementPlace]string
}

// Load reads an agent file. The error describes all its problems: it is a
// [chatmd.ErrorList] with places, together with a File that holds only the warnings,
// or the file system's error if the file cannot be read.
func Load(ctx context.Context, path string, o Options) (*File, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(ctx, path, path, src, o)
}

// Parse is like [Load] for a text that is not in a file, such as standard input. The
// text is treated as a file with this name in the working folder: messages use the
// name, and relative paths start there.
func Parse(ctx context.Context, name string, src []byte, o Options) (*File, error) {
	return parse(ctx, name, name, src, o)
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

// parse reads the text of a file that is, or will be, at path. The name is used in
// messages. Everything is checked, including agents that are tools, before an agent
// or the network is asked.
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
	// The error is reported again with the items.
	self := o.loading[len(o.loading)-1]
	id, linkErr := filepath.EvalSymlinks(self)
	if linkErr != nil { // a transcript that does not exist yet
		id = self
	}
	var importer chatmd.Importer = from
	if o.Salvage {
		importer = salvaging{from}
	}
	doc, _ := chatmd.Load(ctx, chatmd.Source{Name: name, Base: self, ID: id, Text: src}, importer)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &File{Path: path, Doc: doc}
	for _, w := range doc.Warnings {
		f.Warnings = append(f.Warnings, fmt.Errorf("%w [warning]", w))
	}
	f.checkEffort()
	problems := f.checkConfig(o.Profiles)
	problems = append(problems, f.makeTools(ctx, places, o)...)
	if o.Salvage {
		f.Left, problems = problems, nil
	}
	problems = append(problems, f.resolve(ctx, from)...)
	if err := ctx.Err(); err != nil {
		_ = f.Close()
		return nil, err
	}
	if len(problems) > 0 {
		_ = f.Close()
		slices.SortStableFunc(problems, func(a, b *chatmd.Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return &File{Path: path, Doc: doc, Warnings: f.Warnings}, problems
	}
	f.empty = len(doc.Elements) == 0
	return f, nil
}

// Close releases the resources of the tools, and ends the servers and the lock on a
// transcript. It may be called more than once.
func (f *File) Close() error {
	var problems []error
	if f.release != nil {
		defer func() { f.release = nil }()
		problems = append(problems, f.release())
	}
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

// Model returns the model that the file names, or "".
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

// scriptPath returns the path of a script that the file's config names.
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

// Log returns the content of the file as the beginning of a session's log: given
// items and, after the first mark of a run, the entries of the runs as far as a
// transcript holds them. See [Transcript]. The usage of agents in messages is at the
// end.
func (f *File) Log() []session.Body {
	bodies := slices.Clone(f.log)
	for _, used := range f.used {
		bodies = append(bodies, session.SubagentUsage{Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost})
	}
	return bodies
}

// Agent returns the agent that the file describes. The caller may change it. It does
// not contain the file's messages, which belong to the session.
func (f *File) Agent(model agent.Model) *agent.Agent {
	a := &agent.Agent{Model: model, Tools: slices.Clone(f.Tools), Policy: f.policy, Setup: session.Setup{Files: f.hashes()}}
	a.Request.Tools = slices.Clone(f.Hosted)
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
	a.Request.ToolChoice = f.toolChoice(c.ToolChoice)
	a.Request.ParallelToolCalls = c.ParallelToolCalls
	a.Request.Store = c.Store
	a.CollapseReads, a.Compaction.Auto = c.CollapseReads, c.AutoCompact
	if c.ReasoningEffort != "" {
		a.Request.Reasoning = &api.ReasoningConfig{Effort: c.ReasoningEffort}
	}
	a.Output.Envelope = c.ToolOutput == "envelope"
	if c.MaxTurns != nil {
		a.Limits.MaxTurns = int(min(*c.MaxTurns, 1<<30))
	}
	if c.Budget != nil {
		a.Limits.MaxTokens = *c.Budget
	}
	return a
}

// toolChoice returns the config's tool choice in the form of requests. A name that
// is not one of the file's own tools belongs to an agent or a server, whose tools
// are functions.
func (f *File) toolChoice(name string) item.JSON {
	switch choice := item.Quote(name); choice {
	case `""`:
		return ""
	case api.ChoiceAuto, api.ChoiceNone, api.ChoiceRequired:
		return choice
	}
	for _, t := range f.Hosted {
		if t.ToolType() == name {
			return api.ChooseHosted(name)
		}
	}
	for _, t := range f.Tools {
		switch def := t.Definition().(type) {
		case *item.FunctionTool:
		case *item.CustomTool:
			if def.Name == name {
				return api.ChooseCustom(name)
			}
		default:
			if def.ToolType() == name { // the API's own tools have no other name
				return api.ChooseHosted(name)
			}
		}
	}
	return api.ChooseFunction(name)
}

// checkToolChoice describes a problem with the config's tool choice, or returns "".
// The tools of a server are not known before it is started.
func (f *File) checkToolChoice(choice string) (message, hint string) {
	var names []string
	for _, decl := range f.Doc.Tools {
		name := decl.Name
		if decl.Hosted != nil {
			name = decl.Hosted.ToolType()
		}
		if decl.Value("mcp_server") != "" || name == choice {
			return "", ""
		}
		names = append(names, name)
	}
	switch {
	case choice == "", choice == api.ModeAuto, choice == api.ModeNone, choice == api.ModeRequired && len(names) > 0:
		return "", ""
	case len(names) == 0:
		return fmt.Sprintf("<config>: tool_choice is %q, and the file declares no tool", choice), "declare one with <tool>"
	}
	return fmt.Sprintf("<config>: tool_choice is %q, and the file has no tool of that name", choice), "auto, none, required or one of: " + strings.Join(names, ", ")
}

// minOutputTokens is the minimum that the API accepts.
const minOutputTokens = 16

// checkConfig reports settings that cannot work.
func (f *File) checkConfig(profiles *endpoint.Table) (problems chatmd.ErrorList) {
	c := f.Doc.Config
	if c == nil {
		return nil
	}
	bad := func(message, hint string) {
		problems = append(problems, problemAt(f.Doc.Name, c.Element, message, hint, nil))
	}
	if c.MaxTokens != nil && *c.MaxTokens < minOutputTokens {
		bad(fmt.Sprintf("<config>: max_tokens is %d, below the minimum of endpoints", *c.MaxTokens), fmt.Sprintf("at least %d", minOutputTokens))
	}
	if message, hint := f.checkToolChoice(c.ToolChoice); message != "" {
		bad(message, hint)
	}
	if _, err := profiles.ByName(c.Profile); err != nil && c.Profile != "" {
		bad("<config>: "+err.Error(), "or add it to the file that --profiles names")
	}
	return problems
}

// efforts are the known reasoning efforts. Others are sent with a warning, because
// an endpoint may support more.
const efforts = "none minimal low medium high xhigh max"

// checkEffort warns about a reasoning effort that is probably mistyped.
func (f *File) checkEffort() {
	c := f.Doc.Config
	if c == nil || c.ReasoningEffort == "" || slices.Contains(strings.Fields(efforts), c.ReasoningEffort) {
		return
	}
	p := problemAt(f.Doc.Name, c.Element, fmt.Sprintf("<config>: reasoning_effort %q is not known and is sent as it is", c.ReasoningEffort), unknownHint(c.ReasoningEffort, efforts), nil)
	f.Warnings = append(f.Warnings, fmt.Errorf("%w [warning]", p))
}

// unknownHint suggests the intended word, or lists the known ones.
func unknownHint(word, known string) string {
	if meant := chatmd.Suggest(word, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "known are: " + strings.ReplaceAll(known, " ", ", ")
}

// problemAt returns a problem of an element.
func problemAt(file string, e chatmd.Element, message, hint string, cause error) *chatmd.Error {
	return &chatmd.Error{File: cmp.Or(e.File, file), Line: e.Line, Column: e.Column, Message: message, Hint: hint, Err: cause}
}
