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
	// Asker answers the tool ask_user. Nil means that there is no one to ask.
	Asker toolkit.Asker
	// Live is called with what commands put out while they run: see
	// shell.Options. It may be nil.
	Live func(call tool.Call, stderr bool, text []byte)
	// Allow are patterns over names of tools: the person who runs the file has
	// answered what it wants to be asked about them, so that approval="ask" says
	// nothing.
	Allow []string

	// KeepAgent lets [OpenTranscript] go on with a transcript that another agent's
	// file began.
	KeepAgent bool

	// Runner runs the agents that stand in messages, whose answers become part of
	// the messages. Nil runs none, so that a file with such agents is not loaded.
	Runner *Runner
	// Answers is a folder to keep the answers of such agents in, so that an equal
	// agent is not asked the same again. It is made when it is needed, for its
	// owner alone. What is in it is believed: it must be the user's own, such as
	// one in [os.UserCacheDir], and must not come with the files of somebody else.
	// If others may write to it, it is not used, which is a warning. Several
	// programs may share it. Empty keeps no answers.
	Answers string
	// Check reads a file with all that is on this machine, to see what is wrong
	// with it. Nothing is run and nothing is fetched: what an agent or the
	// network would say is left out of Items.
	Check bool
	// Salvage reads what the file says, whether or not it could be run: tools and
	// features that are not there are left out, and documents, images and files
	// that cannot be read stay references. [File.Left] names them.
	Salvage bool
	// Web says how documents are fetched that a file names by a URL. The zero
	// value reaches the public internet only.
	Web web.Options

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

	// Left is what [Options.Salvage] left out, or left as a reference.
	Left chatmd.ErrorList

	empty   bool // it was loaded, and says nothing
	policy  agent.Policy
	files   *toolkit.Files
	nested  []nested
	servers []*declared
	bridge  *mcpbridge.Bridge
	log     []session.Body
	release func() error // of the lock on the transcript
	// used is what agents in messages used that ran when the file was loaded.
	used []agent.Spent
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

// Parse is like [Load] for a text that is in no file, such as standard input. It
// counts as a file called name in the working folder: messages name it so, and
// relative paths begin there.
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
	f.empty = len(doc.Elements) == 0
	return f, nil
}

// Close gives back what the tools hold, and ends the servers and the lock on a
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

// Log returns what the file says, as the beginning of a session's log: items that
// are given, and after the first mark of a run what the runs recorded, as far as
// a transcript holds it. See [Transcript].
// What agents in messages used to answer is at its end.
func (f *File) Log() []session.Body {
	bodies := slices.Clone(f.log)
	for _, used := range f.used {
		bodies = append(bodies, session.Nested{Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost})
	}
	return bodies
}

// Agent returns an agent as the file describes it. The caller may change it;
// the file's messages are not in it, they are the session's.
func (f *File) Agent(model agent.Model) *agent.Agent {
	a := &agent.Agent{Model: model, Tools: slices.Clone(f.Tools), Policy: f.policy, Setup: session.Setup{Files: f.hashes()}}
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

// toolChoice is the config's, as requests have it. Names that the file's tools do
// not have are of agents and of servers, which are functions.
func (f *File) toolChoice(name string) item.JSON {
	switch choice := item.JSON(item.Quote(name)); choice {
	case `""`:
		return ""
	case item.ChoiceAuto, item.ChoiceNone, item.ChoiceRequired:
		return choice
	}
	for _, t := range f.Tools {
		switch def := t.Definition().(type) {
		case *item.FunctionTool:
		case *item.CustomTool:
			if def.Name == name {
				return item.ChooseCustom(name)
			}
		default:
			if def.ToolType() == name { // the API's own have no other name
				return item.ChooseHosted(name)
			}
		}
	}
	return item.ChooseFunction(name)
}

// checkToolChoice says what is wrong with the config's tool choice, "" if nothing
// is. What tools a server has is not known before it was started.
func (f *File) checkToolChoice(choice string) (message, hint string) {
	var names []string
	for _, decl := range f.Doc.Tools {
		if decl.Value("mcp_server") != "" || decl.Name == choice {
			return "", ""
		}
		names = append(names, decl.Name)
	}
	switch {
	case choice == "", choice == item.ModeAuto, choice == item.ModeNone, choice == item.ModeRequired && len(names) > 0:
		return "", ""
	case len(names) == 0:
		return fmt.Sprintf("<config>: tool_choice is %q, and the file declares no tool", choice), "declare one with <tool>"
	}
	return fmt.Sprintf("<config>: tool_choice is %q, and no tool of the file is called so", choice), "auto, none, required or one of: " + strings.Join(names, ", ")
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
	if message, hint := f.checkToolChoice(c.ToolChoice); message != "" {
		bad(message, hint)
	}
	if _, err := profiles.ByName(c.Profile); err != nil && c.Profile != "" {
		bad("<config>: "+err.Error(), "or add it to the file that --profiles names")
	}
	return problems
}

// efforts are the reasoning efforts that are known. Others are sent, with a remark:
// an endpoint may know more.
const efforts = "none minimal low medium high xhigh max"

// checkEffort remarks on a reasoning effort that is probably mistyped.
func (f *File) checkEffort() {
	c := f.Doc.Config
	if c == nil || c.ReasoningEffort == "" || slices.Contains(strings.Fields(efforts), c.ReasoningEffort) {
		return
	}
	p := problemAt(f.Doc.Name, c.Element, fmt.Sprintf("<config>: reasoning_effort %q is not known and is sent as it is", c.ReasoningEffort), unknownHint(c.ReasoningEffort, efforts), nil)
	f.Warnings = append(f.Warnings, fmt.Errorf("%w [warning]", p))
}

// unknownHint says which word was probably meant, or which are known.
func unknownHint(word, known string) string {
	if meant := chatmd.Suggest(word, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "known are: " + strings.ReplaceAll(known, " ", ", ")
}

// problemAt is a problem of an element.
func problemAt(file string, e chatmd.Element, message, hint string, cause error) *chatmd.Error {
	return &chatmd.Error{File: cmp.Or(e.File, file), Line: e.Line, Column: e.Column, Message: message, Hint: hint, Err: cause}
}
