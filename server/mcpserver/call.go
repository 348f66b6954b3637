// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// input is what a call says.
type input struct {
	Task  string `json:"task"`
	Files []struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	} `json:"files"`
	Session string `json:"session"`
}

// call is a call of a tool that is under way.
type call struct {
	server *Server
	agent  *Agent
	r      *mcp.CallToolRequest
	tell   *progress
	host   *host.Host

	session string
	begun   int64         // the number of entries that the session had before the call
	asking  bool          // the client can be asked
	refused []refusedCall // calls that nobody could approve
}

// refusedCall is a call that was refused because nobody could approve it.
type refusedCall struct {
	tool, hint string
	waited     bool   // the client was asked, and did not answer
	why        string // what else was wrong with its answer, or ""
}

// call runs an agent for a call of its tool. Problems are results, which the model of the
// client reads.
func (s *Server) call(ctx context.Context, a *Agent, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if !s.enter() {
		return failed("The server has too many calls under way. Try again later."), nil
	}
	defer s.leave()
	c := &call{server: s, agent: a, r: r, tell: newProgress(r), asking: asksPeople(r.ClientCapabilities())}
	said, answers, err := c.begin(ctx)
	if err != nil {
		return c.failure(err), nil
	}
	defer func() { s.report(c.host.Close()) }()
	for {
		if err := c.decide(ctx, answers); err != nil {
			return c.failure(err), nil
		}
		res, err := c.run(ctx, said)
		if ctx.Err() != nil { // the client does not wait any more, or the server ends
			return nil, fmt.Errorf("the call was cancelled; the session %s has what was done", c.session)
		}
		switch {
		case err != nil || res.Why != agent.StopApprovalPending:
			return c.result(res, err), nil
		case rounds(r):
			return c.question(res.Pending), nil
		}
		said = nil
		if answers, err = c.ask(ctx, res.Pending); err != nil {
			return nil, err
		}
	}
}

// badInput is a problem with what a call says.
type badInput struct{ text string }

func (e *badInput) Error() string { return e.text }

func bad(format string, args ...any) error { return &badInput{fmt.Sprintf(format, args...)} }

// begin reads the input and opens the host: for a new session, for one that is continued,
// or for one that waits for the answers that the call brings.
func (c *call) begin(ctx context.Context) (said []item.Item, answers []answer, err error) {
	var in input
	fresh := false
	if state := c.r.Params.RequestState; state != "" {
		if err = c.resumes(ctx, state); err == nil {
			answers, err = c.answered(c.r.Params.InputResponses)
		}
	} else if in, err = parseInput(c.r.Params.Arguments); err == nil {
		if said, err = c.says(&in); err == nil {
			fresh = in.Session == ""
			err = c.continues(ctx, in.Session)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	cfg := c.agent.Config
	cfg.Store, cfg.Session, cfg.Last, cfg.Transcript, cfg.Pause = c.server.store(), c.session, false, "", c.asking
	cfg.Approver, cfg.Answers, cfg.Locked, cfg.Permit = nil, nil, nil, nil
	if c.host, err = host.Open(ctx, cfg); err == nil {
		_, err = c.host.Agent(ctx)
	}
	if err != nil {
		if c.host != nil {
			err = errors.Join(err, c.host.Close())
		}
		if fresh {
			_ = session.DeleteIfTaken(context.WithoutCancel(ctx), c.server.store(), c.session) // it may be gone with the host
		}
		return nil, nil, err
	}
	if c.r.Params.RequestState == "" && !fresh { // a state says where its call began
		c.begun = int64(len(c.host.Session.Log()))
	}
	return said, answers, nil
}

// parseInput reads the arguments of a call.
func parseInput(arguments []byte) (in input, err error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(arguments, &in, json.RejectUnknownMembers(true))
	var form *json.SemanticError
	switch {
	case errors.As(err, &form) && errors.Is(err, json.ErrUnknownName):
		return in, bad("Invalid arguments: %q is not a parameter; there are task, files and session.", form.JSONPointer.LastToken())
	case errors.As(err, &form) && form.JSONPointer != "":
		return in, bad("Invalid arguments: %s is not what the schema says. Texts are strings, and the data of a file is base64.", strings.TrimPrefix(string(form.JSONPointer), "/"))
	case err != nil:
		return in, bad("Invalid arguments: an object with a task is wanted.")
	}
	return in, nil
}

// says returns the message of the task.
func (c *call) says(in *input) ([]item.Item, error) {
	if strings.TrimSpace(in.Task) == "" && len(in.Files) == 0 {
		if c.agent.asks() && in.Session == "" {
			return nil, nil
		}
		return nil, bad("Invalid arguments: task is missing; say what the agent should do.")
	}
	var parts []item.Part
	if strings.TrimSpace(in.Task) != "" {
		parts = append(parts, &item.InputText{Text: in.Task})
	}
	for i, f := range in.Files {
		part, err := decode.Part(f.Name, f.Data)
		if err != nil {
			return nil, bad("Invalid arguments: files[%d]: %v.", i, err)
		}
		parts = append(parts, part)
	}
	it, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(parts...)})
	return []item.Item{it}, err
}

// The sessions of this package have a prefix, and a tag, by which lists find them.
const (
	prefix = "mcp-"
	tag    = "mcp"
)

// continues sets the session: a new one, or that of an earlier call. An id that is not of
// a session of this agent gets the same answer as one that does not exist.
func (c *call) continues(ctx context.Context, id string) error {
	path, err := host.ResolvePath(c.agent.Config.File)
	if err != nil {
		return err
	}
	if id != "" {
		return c.continued(ctx, id, path)
	}
	c.session = prefix + strings.ToLower(rand.Text())
	return c.server.store().Create(ctx, session.Info{ID: c.session, Path: path, Owner: c.agent.Config.Owner, Tags: []string{tag}})
}

func (c *call) continued(ctx context.Context, id, path string) error {
	unknown := bad("There is no session %q of this tool: leave session out to begin one.", id)
	if !strings.HasPrefix(id, prefix) {
		return unknown
	}
	info, err := c.server.store().Info(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return unknown
	case err != nil:
		return err
	case info.ID != id || info.Path != path || info.Owner != c.agent.Config.Owner || info.Nested || !slices.Contains(info.Tags, tag):
		return unknown
	}
	c.session = id
	return nil
}

// state is what the client brings back with its answers: the session, and where in it the
// call began.
func (c *call) state() string { return c.session + "." + strconv.FormatInt(c.begun, 10) }

// resumes sets the session of a call that waits for answers.
func (c *call) resumes(ctx context.Context, state string) error {
	path, err := host.ResolvePath(c.agent.Config.File)
	if err != nil {
		return err
	}
	id, from, _ := strings.Cut(state, ".")
	if c.begun, err = strconv.ParseInt(from, 10, 64); err != nil || c.begun < 0 {
		return bad("The requestState is not one that this server gave.")
	}
	return c.continued(ctx, id, path)
}

// run runs the agent until it stops, and tells the client what it does.
func (c *call) run(ctx context.Context, said []item.Item) (*agent.Result, error) {
	var failure error
	for ev, err := range c.host.Say(ctx, said...) {
		if err != nil {
			failure = err
			continue
		}
		c.tell.event(ctx, ev)
		if p := progressOf(ev); p.Kind == agent.ProgressUnapproved {
			c.refuse(p.Tool, p.Reason, false)
		}
	}
	res := c.host.Result()
	if res == nil {
		res = new(agent.Result)
	}
	return res, failure
}

// refuse remembers a call that nobody could approve.
func (c *call) refuse(tool, why string, waited bool) {
	hint := ""
	if hinter := c.agent.Config.Hint; hinter != nil && why == "" {
		hint = hinter(tool)
	}
	if one := (refusedCall{tool: tool, hint: hint, waited: waited}); !slices.Contains(c.refused, one) {
		c.refused = append(c.refused, one)
	}
}

// progressOf returns the progress of a run or of a subagent, or the zero value for another
// event.
func progressOf(ev agent.Event) agent.Progress {
	if n, ok := ev.(agent.SubagentEvent); ok {
		ev = n.Event
	}
	p, _ := ev.(agent.Progress)
	return p
}

// failure returns the result of a call that could not begin.
func (c *call) failure(err error) *mcp.CallToolResult {
	var wrong *badInput
	switch {
	case errors.As(err, &wrong):
		return failed(wrong.text)
	case errors.Is(err, session.ErrBusy):
		return failed("Another call works in this session. Try again when it has ended.")
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled):
		return failed("The call was cancelled.")
	}
	c.server.report(fmt.Errorf("the agent %s: %w", c.agent.Name, err))
	return failed("The agent failed: " + c.plain(err))
}

// plain returns an error as a text for the client.
func (c *call) plain(err error) string {
	text := c.agent.Config.Environment.Hide(err.Error())
	return cmp.Or(strings.TrimSpace(text), "unknown error")
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
