// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/picture"
)

// Agent starts the file's MCP servers, chooses who answers, and returns the agent
// as the configuration changes it: rules, answers, prices and the shape of outputs
// hold for the agents that it has as tools too; the limits are shared by them.
// Calls that wait get the configuration's Answers. [Host.Run] and [Host.Stream] do
// it; a front end that wants more of the agent, such as a hook, may call it before,
// and change what it returns. Later calls return the same agent.
func (h *Host) Agent(ctx context.Context) (*agent.Agent, error) {
	if h.agent != nil {
		return h.agent, nil
	}
	ctx = agent.WithBudget(ctx, h.spend)
	const what = "the MCP servers to start"
	h.cfg.notify(NoticeWaiting, what)
	err := h.connect(ctx, h.File)
	h.cfg.notify(NoticeReady, what)
	if err != nil {
		return nil, h.late(err)
	}
	providers := newProviders(&h.cfg.Endpoint, &h.cfg.Front)
	h.stops = append(h.stops, providers.close)
	a, err := h.File.AgentBy(providers.of, func(a *agent.Agent) error { return h.adjust(ctx, a) })
	if err != nil {
		return nil, err
	}
	h.limit(a)
	if err := h.cfg.unmatched(h.names, h.File.Partial || h.unsure.Load()); err != nil {
		return nil, err
	}
	if h.cfg.Answers != nil {
		if err := h.cfg.Answers.decide(ctx, h.Session); err != nil {
			return nil, err
		}
	}
	providers.tell(h.Session)
	providers.tellRehearsed(h.Session)
	h.agent = a
	return a, nil
}

// connect starts the MCP servers of a file, in the time that the run has left.
func (h *Host) connect(ctx context.Context, file *agentfile.File) error {
	ctx, stop := h.bounded(ctx)
	defer stop()
	return file.Connect(ctx, h.cfg.Environment.Lookup, h.tellServer)
}

// tellServer tells of what happens to MCP servers.
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
		said = "is optional and missing, with its tools"
	case mcpbridge.Stray:
		said = "printed a line that is not a message and is skipped"
	default:
		return
	}
	if ev.Kind == mcpbridge.Ended || ev.Kind == mcpbridge.Changed || ev.Kind == mcpbridge.Missing {
		h.unsure.Store(true)
	}
	h.cfg.tell(Notice{Kind: NoticeServer, Text: fmt.Sprintf("the MCP server %s %s: %s", ev.Server, said, text), Server: ev})
}

// runner says how agents are run that stand in messages: by the same configuration
// as those that are tools, each within limits of its own, and all in the time of
// the run.
func (h *Host) runner(ctx context.Context) *agentfile.Runner {
	p := newProviders(&h.cfg.Endpoint, &h.cfg.Front)
	h.stops = append(h.stops, p.close)
	r := &agentfile.Runner{
		Models:   p.of,
		Settings: h.cfg.settings(),
		Notify: func(file *agentfile.File) {
			h.cfg.tell(Notice{Kind: NoticeAsking, File: file.Path, Text: "asking the agent " + file.Path})
		},
		Used: func(file *agentfile.File, used agent.Spent) {
			h.mu.Lock()
			h.asked.Add(used)
			h.mu.Unlock()
			h.cfg.tell(Notice{Kind: NoticeAsked, File: file.Path, Text: "the agent " + file.Path + " has answered"})
		},
		Connect: h.connect,
	}
	r.Adjust = func(a *agent.Agent) error {
		if err := h.adjust(ctx, a); err != nil {
			return err
		}
		h.limit(a)
		a.Policy.Pause = false // there is nowhere to wait
		return nil
	}
	return r
}

// limit gives an agent the limits of the configuration.
func (h *Host) limit(a *agent.Agent) {
	l := h.cfg.Limits
	if l.MaxTurns > 0 {
		a.Limits.MaxTurns = l.MaxTurns
	}
	if l.MaxTime > 0 { // what is left of it: agents in messages and servers have had their part
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

// adjust changes one agent.
func (h *Host) adjust(ctx context.Context, a *agent.Agent) error {
	c := &h.cfg
	set, err := a.ToolSet(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	if kinds := set.Kinds(); len(kinds) > 0 && c.Endpoint.API == endpoint.APIChat {
		return invalid("the tool %s is one of the Responses API's own, which Chat Completions does not have", kinds[0].Tool())
	}
	h.names = append(append(h.names, set.Names()...), tool.ReadOutputName)
	a.Policy.Rules = append(a.Policy.Rules, c.Rules...)
	if c.Hint != nil {
		a.Policy.Hint = c.Hint
	}
	if a.Policy.Pause = c.Pause; c.Approver != nil && !c.Pause {
		a.Policy.Approver = c.Approver
	}
	if c.Answers != nil {
		a.Policy.Approver = c.Answers.approve(a.Policy.Approver)
	}
	if c.Price != nil {
		a.Prices = func(string) (agent.Price, bool) { return *c.Price, true }
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
	a.Shape.Secrets = c.Environment.Secrets()
	a.Setup.Program = c.Program
	return h.shape(a, set)
}

// shape says how outputs are written: images fit for a model, long texts
// shortened, with a tool to read the rest.
func (h *Host) shape(a *agent.Agent, set *tool.Set) error {
	a.Shape.Images = picture.Limits{}
	a.Shape.Limit, a.Shape.Turn = h.cfg.MaxOutput, h.cfg.MaxTurnOutput
	if set.Len() == 0 {
		return nil
	}
	folder, err := h.cfg.outputs()
	if err != nil {
		return err
	}
	if h.spill == nil {
		h.spill = new(tool.MemorySpill)
		if folder != "" {
			h.spill = &tool.DirSpill{Dir: folder}
		}
	}
	a.Spill = h.spill
	asked := a.Shape.Limit != nil || a.Shape.Turn != nil || h.cfg.Outputs != ""
	if !asked && !shortens(set) && !isFolder(folder) && !agent.Shortened(h.earlier) {
		return nil
	}
	if _, taken := set.Lookup(tool.ReadOutputName); taken && !asked {
		return nil // what the tools shorten by themselves is then gone, as the marks say
	} else if taken {
		return invalid("the file declares a tool called %s, which is the name of the one that reads the rest of shortened outputs; call it something else", tool.ReadOutputName)
	}
	a.Tools = append(a.Tools, tool.ReadOutput(h.spill))
	return nil
}

// Preview returns the file's agent with what a run of the session adds to it, to
// look at the next request and not to run it: no model answers, and no servers are
// started.
func Preview(ctx context.Context, file *agentfile.File, from store.Store, s *session.Session, front Front) (*agent.Agent, error) {
	unasked := new(responses.Client) // a tool that is an agent wants a model
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
		front.notify(NoticeServer, "the tools of MCP servers are left out: they are not started for this")
	}
	set, err := a.ToolSet(ctx)
	if err != nil || set.Len() == 0 {
		return a, err
	}
	if _, taken := set.Lookup(tool.ReadOutputName); !taken && (shortens(set) || agent.Shortened(s.Log())) {
		a.Tools = append(a.Tools, tool.ReadOutput(agent.BlobSpill(from, s.ID())))
	}
	return a, nil
}

// shortens reports whether a tool has a limit of its own.
func shortens(set *tool.Set) bool {
	for _, t := range set.All() {
		if annotations := tool.AnnotationsOf(t); annotations.MaxOutput != nil || annotations.UsualOutput != nil {
			return true
		}
	}
	return false
}

// outputs is the folder for the rest of outputs: what the configuration says, or
// else beside the transcript, for the runs that go on with it; "" is in memory.
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

// OutputsFolder is the folder beside a transcript for what its outputs name as
// kept. A link in the way to it is a [ConfigError]: it would lead out of the folder
// that the transcript is in.
func OutputsFolder(transcript string) (string, error) {
	folder := filepath.Join(filepath.Dir(transcript), ".chatmd", filepath.Base(transcript), "outputs")
	part := folder
	for range 3 { // outputs, the transcript's name, .chatmd
		info, err := os.Lstat(part)
		if err == nil && !info.IsDir() {
			return "", invalid("%s is not a folder of its own, so outputs are not kept or read there", part)
		}
		part = filepath.Dir(part)
	}
	return folder, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
