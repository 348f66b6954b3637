// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
)

// errClosed reports a Host that [Open] did not return, or that was closed.
var errClosed = errors.New("host: the Host is not open: use Open")

// Agent starts the file's MCP servers, chooses the model, and returns the agent as
// the configuration adjusts it. Rules, answers, prices and output limits also apply
// to the agents that it has as tools; the limits are shared with them. Waiting calls
// get the configuration's Answers. [Host.Run] and [Host.Stream] call Agent; a front
// end that changes the agent, for example by adding a hook, calls it before them.
// Later calls return the same agent.
func (h *Host) Agent(ctx context.Context) (*agent.Agent, error) {
	switch {
	case h.agent != nil:
		return h.agent, nil
	case h.File == nil || h.spend == nil:
		return nil, errClosed
	}
	ctx = agent.WithBudget(ctx, h.spend)
	if err := h.connect(ctx, h.File); err != nil {
		return nil, h.late(err)
	}
	providers := newProviders(&h.cfg.Endpoint, &h.cfg.FrontEnd)
	h.stops = append(h.stops, providers.close)
	a, err := h.File.AgentBy(providers.of, func(f *agentfile.File, a *agent.Agent) error { return h.adjust(ctx, f, a) })
	if err != nil {
		return nil, err
	}
	h.limit(a)
	a.Answer = h.cfg.Answer
	if err := h.cfg.unmatched(h.names, h.allowable, h.File.Partial || h.unsure.Load()); err != nil {
		return nil, err
	}
	if h.cfg.Answers != nil {
		if err := h.cfg.Answers.decide(ctx, h.Session, h.record); err != nil {
			return nil, err
		}
	}
	providers.tell(h.Session)
	providers.tellRehearsed(h.Session)
	h.agent = a
	return a, nil
}

// connect starts the MCP servers of a file within the remaining time of the run.
func (h *Host) connect(ctx context.Context, file *agentfile.File) error {
	ctx, stop := h.bounded(ctx)
	defer stop()
	const what = "the MCP servers to start"
	waits := sync.OnceFunc(func() { h.cfg.notify(NoticeWaiting, what) }) // not for a file that has none
	defer h.cfg.notify(NoticeReady, what)
	var unnamed *ConfigError
	err := file.Connect(ctx, agentfile.Environment{
		Lookup: h.cfg.Environment.Lookup,
		Named: func(name string) (string, []string, error) {
			waits() // an authorization may follow
			value, hosts, err := h.named(ctx, name)
			errors.As(err, &unnamed)
			return value, hosts, err
		},
		Caller: h.caller(),
		Starting: func(ctx context.Context, servers []mcpbridge.Server) error {
			waits()
			return h.record(ctx, serversOf(servers)...)
		},
	}, h.tellServer)
	if err != nil && unnamed != nil {
		return &ConfigError{err}
	}
	return err
}

// named returns a variable that a file names, and the hosts that the person named for
// it. The model's key, and the key of the store, are never sent for a file. A variable that
// the configuration does not let be sent is a [ConfigError]. K4
func (h *Host) named(ctx context.Context, name string) (value string, hosts []string, err error) {
	variables := append(slices.Clone(h.cfg.Variables), h.allowed...)
	for _, v := range variables {
		if v.Name == name {
			hosts = append(hosts, v.Host)
		}
	}
	value, set := h.cfg.Environment.Lookup(name)
	flag := h.cfg.Terms.full("Variables")
	switch {
	case !set:
		return "", nil, &ConfigError{fmt.Errorf("the variable %s is not set", name)}
	case slices.Contains(h.cfg.Environment.keys(), strings.TrimSpace(value)):
		return "", nil, &ConfigError{fmt.Errorf("the variable %s holds a key of this program, which is not sent for a file", name)}
	case len(hosts) == 0:
		return "", nil, &ConfigError{fmt.Errorf("the variable %s is not sent, because no host is named for it; name one with %s", name, flag)}
	}
	h.sent = append(h.sent, value)
	if err := h.record(ctx, audit.Record{Kind: audit.KindReleased, What: name, Where: strings.Join(hosts, ", "), Decided: session.DeciderPerson}); err != nil {
		return "", nil, err
	}
	return value, hosts, nil
}

// caller returns what gives MCP servers the caller's tokens, or nil.
func (h *Host) caller() func(context.Context, *mcpbridge.Server) (endpoint.Key, error) {
	if h.cfg.Caller == nil {
		return nil
	}
	return func(ctx context.Context, server *mcpbridge.Server) (endpoint.Key, error) {
		token, err := h.cfg.Caller(server.URL)
		if err != nil {
			return token, err
		}
		h.sent = append(h.sent, token.Reveal())
		where, _, _ := strings.Cut(server.URL, "?") // a query may hold a key
		return token, h.record(ctx, audit.Record{Kind: audit.KindReleased, What: "the caller's token", Where: where, Decided: session.DeciderPerson, From: "the request"})
	}
}

// tellServer reports events of MCP servers as notices.
func (h *Host) tellServer(ev mcpbridge.Event) {
	text := h.cfg.Environment.Hide(ev.Text)
	said := ""
	switch ev.Kind {
	case mcpbridge.Progress:
		if ev.Total > 0 {
			text = fmt.Sprintf("%g of %g %s", ev.Done, ev.Total, text)
		}
		h.cfg.tell(Notice{Kind: NoticeServer, Text: text, Server: ev})
		return
	case mcpbridge.Starting:
		said = "is still being started"
	case mcpbridge.Ended:
		said = "has ended"
	case mcpbridge.Changed:
		said = "has other tools now"
	case mcpbridge.Missing:
		said = "is optional and did not start; its tools are missing"
	case mcpbridge.Stray:
		said = "printed a line that is not a message and is skipped"
	case mcpbridge.Planted:
		said = "left what other programs obey, so look at it before you use the folder"
	default:
		return
	}
	if ev.Kind == mcpbridge.Ended || ev.Kind == mcpbridge.Changed || ev.Kind == mcpbridge.Missing {
		h.unsure.Store(true)
	}
	h.cfg.tell(Notice{Kind: NoticeServer, Text: fmt.Sprintf("the MCP server %s %s: %s", ev.Server, said, text), Server: ev})
}

// runner returns the runner for agents in messages. They use the same configuration
// as agents that are tools. Each has its own limits, and all share the time of the
// run.
func (h *Host) runner(ctx context.Context) *agentfile.Runner {
	p := newProviders(&h.cfg.Endpoint, &h.cfg.FrontEnd)
	h.stops = append(h.stops, p.close)
	r := &agentfile.Runner{
		Models:   p.of,
		Settings: h.cfg.settings(),
		Notify: func(file *agentfile.File) {
			h.cfg.tell(Notice{Kind: NoticeAsking, File: file.Path, Text: "asking the agent " + file.Path})
		},
		Used: func(file *agentfile.File, used agent.Usage) {
			h.mu.Lock()
			h.asked.Add(used)
			h.mu.Unlock()
			h.cfg.tell(Notice{Kind: NoticeAsked, File: file.Path, Text: "the agent " + file.Path + " has answered"})
		},
		Connect: h.connect,
	}
	r.Adjust = func(f *agentfile.File, a *agent.Agent) error {
		if err := h.adjust(ctx, f, a); err != nil {
			return err
		}
		h.limit(a)
		a.Park, a.Policy.Pause, a.Policy.Shared = 0, false, false // a paused agent could not continue, and nobody else sees its session
		a.Hooks = append(a.Hooks, agent.Hooks{Name: "unapproved", CallRefused: func(_ context.Context, c *agent.ToolCall) error {
			if c.Verdict.Decided == session.DeciderNobody {
				h.cfg.tell(Notice{Kind: NoticeUnapproved, File: f.Path, Tool: c.Call.Name, Text: fmt.Sprintf("nobody could approve a call of %s by the agent %s, so it was refused", c.Call.Name, f.Path)})
			}
			return nil
		}})
		return nil
	}
	return r
}

// limit applies the configuration's limits to an agent.
func (h *Host) limit(a *agent.Agent) {
	l := h.cfg.Limits
	if l.MaxTurns > 0 {
		a.Limits.MaxTurns = l.MaxTurns
	}
	if l.MaxTime > 0 { // the remaining time: agents in messages and servers have used a part
		a.Limits.MaxTime = max(1, time.Until(h.until))
	}
	if l.MaxTokens > 0 {
		a.Limits.MaxTokens = l.MaxTokens
	}
	if l.MaxDepth > 0 {
		a.Limits.MaxDepth = l.MaxDepth
	}
	a.Limits.MaxCost = l.MaxCost
}

// speaks describes the wire API of a model: the one that the configuration names, or
// else the one that the model reports. It returns false if neither is known.
func speaks(m agent.Model, named string) (dialect.Info, bool) {
	if d, ok := m.(agent.Describer); ok && (named == "" || named == "auto") {
		named = d.About().API
	}
	api, err := dialect.ByName(named)
	if err != nil {
		return dialect.Info{}, false
	}
	return api.Info(), true
}

// adjust applies the configuration to the agent of a file.
func (h *Host) adjust(ctx context.Context, f *agentfile.File, a *agent.Agent) error {
	c := &h.cfg
	set, err := a.ToolSet(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	if kinds := set.Kinds(); len(kinds) > 0 {
		if api, ok := speaks(a.Model, c.Endpoint.API); ok && !api.OwnTools {
			return invalid("the tool %s is one of the Responses API's own, which %s does not have", kinds[0].Tool(), api.Title)
		}
	}
	if len(a.Request.Tools) > 0 {
		if api, ok := speaks(a.Model, c.Endpoint.API); ok && !api.OwnTools {
			return invalid("the tool %s is run by the endpoint of the Responses API, which %s does not have", a.Request.Tools[0].ToolType(), api.Title)
		}
	}
	if slices.ContainsFunc(a.Request.Tools, func(t item.Tool) bool { return t.ToolType() == item.ToolMCP }) {
		h.unsure.Store(true) // only the endpoint knows the names of its server's tools
	}
	names := append(set.Names(), tool.ReadOutputName)
	h.names = append(h.names, names...)
	if f == h.File {
		h.allowable = append(h.allowable, names...)
		a.Policy.Rules = append(a.Policy.Rules, c.Rules...)
		a.Policy.Hint = c.Hint
	} else {
		h.allowable = append(h.allowable, slices.DeleteFunc(names, func(name string) bool { return !builtin(name) })...)
		a.Policy.Rules = append(a.Policy.Rules, rulesElsewhere(c.Rules)...)
		a.Policy.Hint = c.hintElsewhere(f.Path)
	}
	a.Park = c.Park
	if a.Policy.Pause = c.Pause; c.Approver != nil && !c.Pause {
		a.Policy.Approver, a.Policy.Shared = c.inTime(c.Approver), c.keeps()
	}
	if c.Answers != nil {
		a.Policy.Approver = c.Answers.approve(f != h.File, a.Policy.Approver)
	}
	switch at, describes := a.Model.(agent.Describer); {
	case c.Price != nil:
		a.Prices = func(string) (agent.Price, bool) { return *c.Price, true }
	case c.Prices != nil && describes:
		a.Prices = func(model string) (agent.Price, bool) { return c.Prices(model, at.About().URL) }
	}
	a.Limits.MaxRepeats = c.Limits.MaxRepeats
	a.CollapseReads = a.CollapseReads || c.CollapseReads
	a.Compaction = c.Compaction.of(a.Compaction)
	if model, known := c.Endpoint.Table.Model(a.Request.Model); known {
		a.Compaction.Window = int64(model.ContextWindow)
	}
	if c.Parallel > 0 {
		a.Parallel = c.Parallel
	}
	a.Output.Secrets = append(c.Environment.Secrets(), h.sent...)
	a.Setup.Program = c.Program
	h.watch(a)
	return h.shape(a, set)
}

// rulesElsewhere returns the rules for the agents of other files than the one that the
// configuration names. A rule that allows means the tools of that file: a stranger's command
// may have the same name. In other files it is about built-in tools, unless it is about all.
func rulesElsewhere(rules []session.Rule) (list []session.Rule) {
	for _, r := range rules {
		if r.Verdict != session.Allow || r.Tool == "*" || r.Definition != "" {
			list = append(list, r)
			continue
		}
		for _, b := range toolkit.Builtins() {
			for _, name := range append([]string{b.Name}, b.Aliases...) {
				if ok, err := path.Match(r.Tool, name); ok && err == nil {
					own := r
					own.Tool = name
					list = append(list, own)
				}
			}
		}
	}
	return list
}

func builtin(name string) bool {
	_, known := toolkit.Lookup(name)
	return known
}

// hintElsewhere is Hint for the agents of another file.
func (c *Config) hintElsewhere(file string) func(string) string {
	if c.Hint == nil {
		return nil
	}
	return func(tool string) string {
		if builtin(tool) {
			return c.Hint(tool)
		}
		return fmt.Sprintf(`It is a tool of %s: that file can allow it with approval="allow", if the user trusts the file.`, filepath.Base(file))
	}
}

// shape sets the output limits: images are adapted to the model and long texts
// shortened, with a tool to read the rest.
func (h *Host) shape(a *agent.Agent, set *tool.Set) error {
	a.Output.Images = decode.Images{}
	a.Output.Limit, a.Output.PerTurn = h.cfg.MaxOutput, h.cfg.MaxTurnOutput
	if set.Len() == 0 {
		return nil
	}
	folder, err := h.cfg.outputs()
	if err != nil {
		return err
	}
	if h.spill == nil {
		h.spill = new(output.MemoryStore)
		if folder != "" {
			h.spill = &output.DirStore{Dir: folder}
		}
		if h.cfg.Outputs == "" && folder != "" {
			h.spill = &beside{&output.DirStore{Dir: folder}, h.cfg.Transcript}
		}
	}
	a.OutputStore = h.spill
	asked := a.Output.Limit != nil || a.Output.PerTurn != nil || h.cfg.Outputs != ""
	if !asked && !shortens(set) && !isFolder(folder) && !agent.Shortened(h.earlier) {
		return nil
	}
	if _, taken := set.Lookup(tool.ReadOutputName); taken && !asked {
		return nil // text that tools shorten without a store is lost, as their marks say
	} else if taken {
		return invalid("the file declares a tool called %s, which is the name of the one that reads the rest of shortened outputs; call it something else", tool.ReadOutputName)
	}
	a.Tools = append(a.Tools, tool.ReadOutput(h.spill))
	return nil
}

// Preview returns the file's agent with the additions of a run of the session, to
// look at the next request without running it: no model is asked and no server is
// started.
func Preview(ctx context.Context, file *agentfile.File, from store.Store, s *session.Session, front FrontEnd) (*agent.Agent, error) {
	if file == nil || s == nil {
		return nil, errors.New("host: Preview needs a file and a session")
	}
	unasked := new(responses.Client) // a tool that is an agent needs a model
	a, err := file.AgentBy(func(f *agentfile.File) (agent.Model, string, error) {
		if _, rehearsed := rehearsal.ParseModel(f.Model()); rehearsed {
			return unasked, rehearsal.Model, nil
		}
		return unasked, cmp.Or(f.Model(), front.Environment["OPENAI_MODEL"]), nil
	}, nil)
	if err != nil {
		return nil, err
	}
	if a.ToolSource != nil {
		a.ToolSource = nil
		front.notify(NoticeServer, "the tools of MCP servers are left out, because servers are not started for this")
	}
	set, err := a.ToolSet(ctx)
	if err != nil || set.Len() == 0 {
		return a, err
	}
	if _, taken := set.Lookup(tool.ReadOutputName); !taken && (shortens(set) || agent.Shortened(s.Log())) {
		a.Tools = append(a.Tools, tool.ReadOutput(agent.BlobOutputs(from, s.ID())))
	}
	return a, nil
}

// shortens reports whether a tool has its own output limit.
func shortens(set *tool.Set) bool {
	for _, t := range set.All() {
		if annotations := tool.AnnotationsOf(t); annotations.MaxOutput != nil || annotations.UsualOutput != nil {
			return true
		}
	}
	return false
}

// outputs returns the folder for the rest of outputs: the configured one, or a
// folder beside the transcript, so that later runs find it; "" means memory.
func (c *Config) outputs() (string, error) {
	if c.Outputs != "" || c.Transcript == "" {
		return c.Outputs, nil
	}
	folder, err := OutputsFolder(c.Transcript)
	if err != nil {
		return "", fmt.Errorf("%w; remove it, or give %s", err, c.Terms.full("Outputs"))
	}
	return folder, nil
}

// OutputsFolder returns the folder beside a transcript for stored outputs. A link on
// the way to it is a [ConfigError], because it would lead out of the transcript's
// folder.
func OutputsFolder(transcript string) (string, error) {
	folder := filepath.Join(besideTranscript(transcript), "outputs")
	part := folder
	for range 3 { // outputs, the transcript's name, .chatmd
		info, err := os.Lstat(part)
		if err == nil && !info.IsDir() {
			return "", invalid("%s is a link or a file, so outputs are neither stored nor read there", part)
		}
		part = filepath.Dir(part)
	}
	return folder, nil
}

// beside stores outputs beside a transcript. Each time it looks for links on the way, because a program that a tool
// ran may have put one there.
type beside struct {
	*output.DirStore
	transcript string
}

func (b *beside) Put(ctx context.Context, data []byte) (string, error) {
	if _, err := OutputsFolder(b.transcript); err != nil {
		return "", err
	}
	return b.DirStore.Put(ctx, data)
}

func (b *beside) PutFrom(ctx context.Context, r io.Reader) (string, error) {
	if _, err := OutputsFolder(b.transcript); err != nil {
		return "", err
	}
	return b.DirStore.PutFrom(ctx, r)
}

// besideTranscript returns the folder of what is kept beside a transcript.
func besideTranscript(transcript string) string {
	return filepath.Join(filepath.Dir(transcript), ".chatmd", filepath.Base(transcript))
}

// isFolder reports whether path is an existing folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// diskFull reports whether an error means that no space is left on the disk, in the
// user's quota, or below the limit on the size of a file.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
