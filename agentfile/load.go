// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
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
	"github.com/antiphon-go/antiphon/trust"
)

// Options configure how a file is loaded. The zero value is ready for use.
type Options struct {
	// Workspace is ${workspace}: the folder of the tools if a file declares no roots.
	// If it is empty, the file's own folder is used.
	Workspace string
	// Home is ${home}, and the folder whose hidden files need an agreement. If it is empty,
	// there is no ${home}, and hidden files of the user's home folder need one.
	Home string
	// Profiles is the table for the file's profile. Nil means the built-in table.
	Profiles *endpoint.Table
	// Asker answers the tool ask_user. Nil means that nobody can be asked.
	Asker toolkit.Asker
	// Live receives the output of commands while they run: see shell.Options. It may
	// be nil.
	Live func(call tool.Call, stderr bool, text []byte)
	// Sandbox is the name of a profile of package sandbox for all programs of the file:
	// commands and MCP servers. It takes the place of what the file says. If it is empty,
	// the file says it. Hosts are those of the profile [sandbox.NameHosts], which may be left
	// out then.
	Sandbox string
	Hosts   []string
	// Allow are patterns for names of tools. approval="ask" has no effect on these
	// tools, because the person who runs the file has allowed them already. In files of other
	// agents they are about built-in tools, except for "*": a command of such a file may have
	// the name of one that the person means.
	Allow []string

	// Protected are paths of further files and folders that a person is asked about
	// before a tool writes to them, even if its calls are allowed, such as the store of the
	// sessions. The files of the agents are protected without being named.
	Protected []string

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

	// Consent is asked whether the file may do what it claims, before anything of it is
	// started, sent, or read outside its folder and the workspace. It is asked again if
	// more becomes known, for example by an import from another folder. What the answer
	// leaves out makes loading fail with a [*trust.UntrustedError], except for
	// [trust.Allows]: those calls are asked about. An error of Consent is returned as
	// it is.
	//
	// If Consent is nil, a file with powers is not loaded. With Check and Salvage it is,
	// and what is outside is not read. See [File.Claim].
	Consent func(context.Context, trust.Claim) (trust.Agreement, error)
	// Began is called by [OpenTranscript] with each claim of a transcript that begins with
	// an agent's file that the person agreed to, so that the person need not be asked again
	// when the conversation goes on, and so that the transcript is Known. It may be nil.
	Began func(trust.Claim)
	// Known reports whether a run of this user began the transcript at the source's path,
	// which begins with a text of its hash, or the user trusts a file of this text there, and
	// what the last run left in it. In what somebody added or changed since then, and in all of other files that runs
	// have written into, handoffs, requests to other models, what guards agreed to, lost entries
	// that were accepted, the link to a conversation of the endpoint, and the permission to
	// repeat a call count for nothing, calls are asked about whatever allows them, and
	// warnings name them. Messages count. If Known is nil, no transcript is known.
	Known func(trust.Source) (left trust.Left, known bool)
	// Leave is called before a transcript that is Known, or that begins, is changed, with what
	// Known must return for it from then on. If it returns an error, the change fails. If it is
	// nil, all that runs leave counts as what somebody added.
	Leave func(trust.Left) error
	// Made remembers which files the calls of declared commands made, so that a later run does not ask about
	// them as about scripts that somebody else put there. If it is nil, each run does.
	Made *trust.Outputs
	// Configured reports whether a file may name this base URL without a power, because
	// the person configured it, or because no file's base URL is used. Nil means none.
	Configured func(baseURL string) bool

	packed  func(*gate) // gets the gate of the file that the caller loads, with the texts
	loading []string    // the paths of the files that are being loaded
	gate    *gate       // of the file that the caller loads
	named   place       // of the element that names this file
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

	gate    *gate
	script  script
	empty   bool // it was loaded and has no content
	policy  agent.Policy
	files   *toolkit.Files
	nested  []nested
	servers []*declared
	bridge  *mcpbridge.Bridge
	log     []session.Body
	written []session.Body // like log, with what the file says and a stranger may not decide
	begins  trust.Source   // a transcript without what runs wrote
	known   bool           // a run of this user began it: see Options.Known
	others  []trust.Span   // what others wrote into a transcript
	release func() error   // releases the lock on the transcript
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
	var src []byte
	var err error
	if o.gate == nil {
		src, err = read(path)
	} else if src, err = o.gate.read(path, maxSource, o.named); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
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

// maxMain limits a file that a person named, which may be a long transcript.
const maxMain = 256 << 20

// read reads a file that a person named on the command line. It is a regular file or a pipe,
// such as one that the shell made for the purpose.
func read(path string) ([]byte, error) {
	var src []byte
	info, err := os.Stat(path)
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 || path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") {
		src, err = readPipe(path)
	} else if src, err = readRegular(path, maxMain); err != nil && checkFolder(path) == nil {
		err = errors.New("it is a directory: name a file in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

// readPipe reads what the shell passes under a name, as in <(command).
func readPipe(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	src, err := io.ReadAll(io.LimitReader(file, maxMain+1))
	if err == nil && len(src) > maxMain {
		err = fmt.Errorf("it is larger than %d MiB", maxMain>>20)
	}
	return src, err
}

// elsewhere returns an error without a quotation, in place of the others, if a file with mistakes is a link to a file
// outside of its folder and the workspace: what is there may be no agent's file, but a secret.
func (g *gate) elsewhere(path string, f *File, err error) error {
	if errors.As(err, new(chatmd.ErrorList)) || err == nil && f != nil && len(f.Left) > 0 {
		if real := resolved(path); !g.belongs(real) && isLink(path) {
			return fmt.Errorf("%s: a link to %s, which is outside of its folder and has mistakes, so that nothing of it is shown\n  hint: name that file to see them", path, real)
		}
	}
	return nil
}

// isLink reports whether the file at path is a link.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// parse reads the text of a file that is, or will be, at path. The name is used in
// messages. Everything is checked, including agents that are tools, before the person
// is asked for consent, and that before an agent or the network is asked.
func parse(ctx context.Context, name, path string, src []byte, o Options) (*File, error) {
	if o.gate == nil {
		places, err := placesOf(path, o)
		if err != nil {
			return nil, err
		}
		o.gate = newGate(places)
		o.gate.earlier = o.Made
		defer o.gate.forget()
		if o.packed != nil {
			defer o.packed(o.gate)
		}
		f, err := survey(ctx, name, path, src, o)
		if problem := o.gate.elsewhere(path, f, err); problem != nil {
			if f != nil {
				_ = f.Close()
			}
			return nil, problem
		}
		if err != nil || o.Check || !f.Partial {
			return f, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		return parseOnce(ctx, name, path, src, o)
	}
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

// survey reads a file and asks for consent to its powers, until all are known.
func survey(ctx context.Context, name, path string, src []byte, o Options) (*File, error) {
	checked := o
	checked.Check = true
	var asked []trust.Claim
	for {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		o.gate.begin(abs)
		f, err := parseOnce(ctx, name, path, src, checked)
		if err != nil && !o.gate.withheld {
			return f, err
		}
		again, refused := o.gate.ask(ctx, &asked, &o)
		if !again && refused == nil {
			return f, err
		}
		if f != nil {
			_ = f.Close()
		}
		if refused != nil {
			return nil, refused
		}
	}
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
	f := &File{Path: path, Doc: doc, gate: o.gate}
	o.gate.source(self, f, o)
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
	f.protect(o.Protected)
	if len(problems) > 0 {
		_ = f.Close()
		slices.SortStableFunc(problems, func(a, b *chatmd.Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return &File{Path: path, Doc: doc, Warnings: f.Warnings, gate: o.gate}, problems
	}
	f.empty = len(doc.Elements) == 0
	return f, nil
}

// Claim returns what the file may do, with all files that belong to it. A file without
// powers needs no trust. If something outside was not read, there may be more powers.
func (f *File) Claim() trust.Claim {
	if f.gate == nil {
		return trust.Claim{}
	}
	return f.gate.claim
}

// PowerPlace returns where a power of the claim comes from, as FILE:LINE:COLUMN: the first
// element that needs it.
func (f *File) PowerPlace(p trust.Power) string {
	at := place{file: f.Path, line: 1, column: 1}
	if f.gate != nil {
		if known, ok := f.gate.places[p]; ok {
			at = known
		}
	}
	return at.String()
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

// Trusted returns an error if the file has powers that nobody agreed to, because it was
// only checked: its agent must not run.
func (f *File) Trusted() error { return f.gate.refused() }

// doc returns the parsed file. A File that was not loaded has none.
func (f *File) doc() *chatmd.File {
	return cmp.Or(f.Doc, new(chatmd.File))
}

// Model returns the model that the file names, or "".
func (f *File) Model() string {
	if f.doc().Config == nil {
		return ""
	}
	return f.doc().Config.Model
}

// Description returns what the file says that its agent does, or "".
func (f *File) Description() string {
	if f.doc().Config == nil {
		return ""
	}
	return f.doc().Config.Description
}

// BaseURL returns the endpoint that the file names, or "".
func (f *File) BaseURL() string {
	if f.doc().Config == nil {
		return ""
	}
	return f.doc().Config.BaseURL
}

// Profile returns the name of the endpoint's profile that the file names, or "".
func (f *File) Profile() string {
	if f.doc().Config == nil {
		return ""
	}
	return f.doc().Config.Profile
}

// Script parses a rehearsal script whose path is relative to the file. The one that the file names was read
// with the file, and is not read again.
func (f *File) Script(path string) (*rehearsal.Script, error) {
	full, text, err := f.scriptText(path)
	if err != nil {
		return nil, fmt.Errorf("the rehearsal's script %s: %w", full, err)
	}
	return rehearsal.Parse(full, text)
}

// script is the rehearsal script that a file names, as it was read, or why it could not be read.
type script struct {
	path string
	text []byte
	err  error
}

// scriptText returns the path and the text of a rehearsal script.
func (f *File) scriptText(path string) (full string, text []byte, err error) {
	full = f.scriptPath(path)
	switch {
	case full == f.script.path:
		return full, f.script.text, f.script.err
	case f.gate == nil: // of a File that was not loaded
		text, err = readRegular(full, rehearsal.MaxScript)
		return full, text, err
	}
	real, err := f.gate.mayRead(full, f.atConfig())
	if err == nil {
		text, err = readAgreed(real, rehearsal.MaxScript)
	}
	return full, text, err
}

// scriptPath returns the path of a script that the file's config names.
func (f *File) scriptPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	dir := filepath.Dir(f.Path)
	if c := f.doc().Config; c != nil && c.Base != "" {
		dir = filepath.Dir(c.Base)
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// ToolNames returns the names of the tools that the file declares, and of those of its agents. all is
// false if others are known only in a run: those of MCP servers, and of agents in messages.
func (f *File) ToolNames() (names []string, all bool) {
	set, err := tool.NewSet(f.Tools...)
	if err == nil {
		names = set.Names()
	}
	all = err == nil && !f.Partial && len(f.servers) == 0
	for _, t := range f.Hosted {
		all = all && t.ToolType() != item.ToolMCP
	}
	for _, n := range f.nested {
		inner, known := n.file.ToolNames()
		names, all = append(append(names, n.decl.Name), inner...), all && known
	}
	return names, all
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
	c := f.doc().Config
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
	for _, decl := range f.doc().Tools {
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
	c := f.doc().Config
	if c == nil {
		return nil
	}
	bad := func(message, hint string) {
		problems = append(problems, problemAt(f.doc().Name, c.Element, message, hint, nil))
	}
	if c.MaxTokens != nil && *c.MaxTokens < minOutputTokens {
		bad(fmt.Sprintf("<config>: max_tokens is %d, below the minimum of endpoints", *c.MaxTokens), fmt.Sprintf("at least %d", minOutputTokens))
	}
	if namesUser(c.BaseURL) {
		bad("<config>: base_url names a user, which hides the host", "the host alone; a key belongs to the variable OPENAI_API_KEY")
	}
	if message, hint := f.checkToolChoice(c.ToolChoice); message != "" {
		bad(message, hint)
	}
	if _, err := profiles.ByName(c.Profile); err != nil && c.Profile != "" {
		bad("<config>: "+err.Error(), "or add it to the file that --profiles names")
	}
	return problems
}

// namesUser reports whether a URL begins like https://user@host. People take the user for
// the host.
func namesUser(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User != nil || err != nil && strings.Contains(address, "@")
}

// efforts are the known reasoning efforts. Others are sent with a warning, because
// an endpoint may support more.
const efforts = "none minimal low medium high xhigh max"

// checkEffort warns about a reasoning effort that is probably mistyped.
func (f *File) checkEffort() {
	c := f.doc().Config
	if c == nil || c.ReasoningEffort == "" || slices.Contains(strings.Fields(efforts), c.ReasoningEffort) {
		return
	}
	p := problemAt(f.doc().Name, c.Element, fmt.Sprintf("<config>: reasoning_effort %q is not known and is sent as it is", c.ReasoningEffort), unknownHint(c.ReasoningEffort, efforts), nil)
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
