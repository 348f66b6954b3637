// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The values of truncation.
const (
	truncationAuto     = "auto"
	truncationDisabled = "disabled"
)

// unsupported returns an error for what a request asks for and an agent does not do. V1
func unsupported(r *server.Request) error {
	refused := ""
	switch {
	case r.Prompt != nil:
		refused = "prompt"
	case len(r.ContextManagement) > 0:
		refused = "context_management"
	case r.Moderation != nil:
		refused = "moderation"
	case r.Truncation != "" && r.Truncation != truncationDisabled && r.Truncation != truncationAuto:
		return server.Invalid("invalid_value", "truncation", "Invalid value: '%s'. Supported values are: 'auto' and 'disabled'.", r.Truncation)
	case r.MaxToolCalls != nil && *r.MaxToolCalls < 1:
		return server.Invalid("integer_below_min_value", "max_tool_calls", "Invalid 'max_tool_calls': integer below minimum value. Expected a value >= 1, but got %d instead.", *r.MaxToolCalls)
	}
	if refused == "" {
		var wrong error
		if refused, wrong = unknown(r); wrong != nil {
			return wrong
		}
	}
	if refused != "" {
		return server.Invalid("unsupported_parameter", refused, "Unsupported parameter: '%s' is not supported by agents.", refused)
	}
	if _, err := choice(r); err != nil {
		return err
	}
	for i, t := range r.Tools {
		switch t := t.(type) {
		case *item.FunctionTool, *item.CustomTool:
		case *item.MCPTool:
			switch {
			case namesAgent(t, r.Model):
			case !lends(t):
				return server.Invalid("unsupported_value", fmt.Sprintf("tools[%d]", i), "Unsupported value: a tool of the type 'mcp' can only name the agent's own tools here: give it the server_label '%s', and no server_url, connector_id, authorization, headers or allowed_tools; or the server_url and the authorization for a server to which the agent's file gives the caller's token.", r.Model)
			case r.Background != nil && *r.Background:
				return server.Invalid("unsupported_value", fmt.Sprintf("tools[%d].authorization", i), "Unsupported value: a response in the background may go on in another server, and the token of a caller is not stored.")
			}
		default:
			return server.Invalid("unsupported_value", fmt.Sprintf("tools[%d].type", i), "Unsupported value: a request to an agent declares functions and custom tools, and not tools of the type '%s'.", t.ToolType())
		}
	}
	for i, it := range r.Items {
		if it.Type() == item.TypeItemReference {
			return server.Invalid("invalid_value", fmt.Sprintf("input[%d]", i), "Item with id '%s' not found.", it.ID())
		}
		if v, err := it.Decode(); err == nil && isUnknown(v) && it.ID() == "" { // no server has made it
			return server.Invalid("invalid_value", fmt.Sprintf("input[%d].type", i), "Invalid value: '%s'. The API has no item of this type, and the agent's model would not see it.", it.Type())
		}
		if reach.Hosted(it) {
			return server.Invalid("unsupported_value", fmt.Sprintf("input[%d].tools", i), "Unsupported value: an item of a request to an agent gives functions and custom tools, and not tools that the endpoint of the agent's model runs.")
		}
	}
	return nil
}

func isUnknown(v item.Value) bool {
	_, unknown := v.(*item.Unknown)
	return unknown
}

// unknown returns an error for a member of a request that the API does not have, and the name
// of one that is known to have no effect here.
func unknown(r *server.Request) (refused string, err error) {
	if o := r.StreamOptions; o != nil {
		if o.IncludeObfuscation != nil && *o.IncludeObfuscation { // deltas are not padded
			return "stream_options.include_obfuscation", nil
		}
		for _, m := range o.Extra {
			if m.Value != "null" {
				return "", server.Invalid("unknown_parameter", "stream_options."+m.Name, "Unknown parameter: 'stream_options.%s'.", m.Name)
			}
		}
	}
	for _, m := range r.Extra {
		switch {
		case m.Value == "null", m.Name == "instructions" && m.Value == `""`:
		case slices.Contains(beside, m.Name):
		case m.Name == "presence_penalty" || m.Name == "frequency_penalty": // the response has them, and they are 0
			if n, err := strconv.ParseFloat(string(m.Value), 64); err != nil || n != 0 {
				return m.Name, nil
			}
		default:
			return "", server.Invalid("unknown_parameter", m.Name, "Unknown parameter: '%s'.", m.Name)
		}
	}
	return "", nil
}

// beside are members of requests that [api.Request] has no field for, and that ask for nothing: a
// text as the input, the event of a WebSocket around the request, and what Codex says of itself.
var beside = []string{"input", "type", "generate", "client_metadata"}

// choice returns the tool choice of a request as the agent's model is told, to which the agent's
// own tools are functions too. It is "" if the request declares no tools: then the client speaks
// of its own, and has none.
func choice(r *server.Request) (item.JSON, error) {
	if len(r.Tools) == 0 || r.ToolChoice == "" || r.ToolChoice == "null" {
		return "", nil
	}
	c, err := api.ParseToolChoice(r.ToolChoice)
	if err != nil {
		return "", server.Invalid("invalid_type", "tool_choice", "Invalid type for 'tool_choice': %v.", err)
	}
	switch c.Type {
	case "":
		if c.Mode != api.ModeAuto && c.Mode != api.ModeNone && c.Mode != api.ModeRequired {
			return "", server.Invalid("invalid_value", "tool_choice", "Invalid value for 'tool_choice': '%s'. Supported values are: 'none', 'auto', and 'required'.", c.Mode)
		}
	case item.ToolMCP:
		switch {
		case c.ServerLabel != r.Model:
			return "", server.Invalid("invalid_value", "tool_choice.server_label", "Invalid 'tool_choice.server_label': the agent's own tools have the label '%s'.", r.Model)
		case c.Name == "":
			return api.ChoiceRequired, nil
		}
		return api.ChooseFunction(c.Name), nil
	case item.ToolFunction, item.ToolCustom, api.ChoiceTypeAllowed:
	default:
		return "", server.Invalid("unsupported_value", "tool_choice.type", "Unsupported value: the tool choice of a request to an agent is of the type 'function', 'custom', 'mcp' or 'allowed_tools', and not '%s'.", c.Type)
	}
	return r.ToolChoice, nil
}

// chosen returns an error if a tool choice names a tool that is not there.
func chosen(choice item.JSON, names []string, own *tool.Set) error {
	c, err := api.ParseToolChoice(choice)
	if err != nil || c.Name == "" || slices.Contains(names, c.Name) {
		return err
	}
	if _, ok := own.Lookup(c.Name); !ok {
		return server.Invalid("invalid_value", "tool_choice.name", "Invalid 'tool_choice.name': there is no tool called '%s'.", c.Name)
	}
	return nil
}

// namesAgent reports whether a tool only names the agent's own tools, as clients do that
// take requests for approval from servers alone that they declared.
func namesAgent(t *item.MCPTool, model string) bool {
	return t.ServerLabel == model && t.ServerURL == "" && t.ConnectorID == "" && t.TunnelID == "" && t.Authorization == "" && len(t.Headers) == 0 && t.AllowedTools == ""
}

// lends reports whether a tool gives a token for a server that the agent's file declares.
func lends(t *item.MCPTool) bool {
	return t.ServerURL != "" && t.Authorization != "" && t.ConnectorID == "" && t.TunnelID == "" && len(t.Headers) == 0 && t.AllowedTools == ""
}

// lent are the tokens that a request gives for servers of the agent's file.
type lent struct {
	tools   []item.Tool
	taken   []string // the addresses of servers that were given one
	missing string   // the address of a server that there was none for
	worker  bool     // a worker makes the run, at its endpoint
}

// of returns the token for a server, which the client must have named by exactly its address.
func (l *lent) of(url string) (endpoint.Key, error) {
	for _, t := range l.tools {
		if t, ok := t.(*item.MCPTool); ok && t.ServerURL == url && t.Authorization != "" {
			l.taken = append(l.taken, url)
			return endpoint.NewKey(t.Authorization), nil
		}
	}
	l.missing = url
	return endpoint.Key{}, errors.New("the caller gave no token for it")
}

// refusal returns the error for a request with a token too few or too many, or nil. It is for
// an agent whose servers were started, or could not be.
func (l *lent) refusal() error {
	if l.missing != "" {
		return &server.Error{Status: http.StatusBadRequest, Code: "mcp_authorization_required", Param: "tools",
			Message: fmt.Sprintf("The agent uses the MCP server %[1]s with your credentials: send {\"type\":\"mcp\",\"server_label\":\"NAME\",\"server_url\":%[1]q,\"authorization\":\"TOKEN\"} in 'tools'. The token goes to this server alone, and is not stored.", l.missing)}
	}
	for i, t := range l.tools {
		if t, ok := t.(*item.MCPTool); ok && t.Authorization != "" && !slices.Contains(l.taken, t.ServerURL) {
			at := fmt.Sprintf("tools[%d].server_url", i)
			return server.Invalid("unsupported_value", at, "Unsupported value: the agent's file does not give the caller's token to the server of '%s', so it was sent nowhere.", at)
		}
	}
	return nil
}

// start starts the servers of an agent's file with the tokens of a request.
func (l *lent) start(ctx context.Context, a *Agent, h *host.Host) (*agent.Agent, error) {
	ag, err := h.Agent(ctx)
	if refused := l.refusal(); refused != nil && (err == nil || l.missing != "") {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("the agent %s: %w", a.Name, err)
	}
	return ag, nil
}

// adapt gives an agent what the request asks for, and returns the names of the client's
// tools.
func adapt(ctx context.Context, a *agent.Agent, r *server.Request) (names []string, err error) {
	set, err := a.ToolSet(ctx)
	if err != nil {
		return nil, err
	}
	for i, def := range r.Tools {
		if _, own := def.(*item.MCPTool); own {
			continue
		}
		t, err := clientTool(def)
		if err != nil {
			return nil, wrongTool(i, err)
		}
		if err := taken(set, i, def); err != nil {
			return nil, err
		}
		a.Tools, names = append(slices.Clip(a.Tools), t), append(names, nameOf(def))
	}
	to := &a.Request
	picked, err := choice(r)
	if err == nil {
		err = chosen(picked, names, set)
	}
	if err != nil {
		return nil, err
	}
	setText(&to.ToolChoice, picked)
	if r.ParallelToolCalls != nil {
		to.ParallelToolCalls = r.ParallelToolCalls
		if !*r.ParallelToolCalls {
			a.Parallel = 1
		}
	}
	setValue(&to.Temperature, r.Temperature)
	setValue(&to.TopP, r.TopP)
	setValue(&to.TopLogprobs, r.TopLogprobs)
	setValue(&to.MaxOutputTokens, r.MaxOutputTokens)
	setValue(&to.Reasoning, r.Reasoning)
	setValue(&to.PromptCacheOptions, r.PromptCacheOptions)
	setText(&to.Text, r.Text)
	setText(&to.ServiceTier, r.ServiceTier)
	setText(&to.PromptCacheKey, r.PromptCacheKey)
	setText(&to.PromptCacheRetention, r.PromptCacheRetention)
	setText(&to.SafetyIdentifier, r.SafetyIdentifier)
	setText(&to.User, r.User)
	if r.MaxToolCalls != nil {
		a.Hooks = append(slices.Clip(a.Hooks), atMost(*r.MaxToolCalls))
	}
	if r.Truncation == truncationAuto && !a.Compaction.Auto {
		a.Compaction.Auto, a.Compaction.By = true, session.ByDropping
	}
	for _, v := range r.Include {
		if !slices.Contains(to.Include, v) {
			to.Include = append(slices.Clip(to.Include), v)
		}
	}
	return names, nil
}

// taken returns an error if a tool of a request has the name of one of the agent's.
func taken(set *tool.Set, i int, def item.Tool) error {
	name := nameOf(def)
	if _, taken := set.Lookup(name); taken {
		return server.Invalid("invalid_value", fmt.Sprintf("tools[%d].name", i), "Invalid 'tools[%d].name': the agent has a tool called '%s' itself.", i, name)
	}
	return nil
}

// wrongTool is the error about a tool of a request that cannot be used.
func wrongTool(i int, err error) error {
	at := fmt.Sprintf("tools[%d]", i)
	return server.Invalid("invalid_value", at, "Invalid '%s': %v.", at, err)
}

// atMost returns hooks that refuse the calls of the agent's tools after the first n.
func atMost(n int64) agent.Hooks {
	var calls atomic.Int64
	return agent.Hooks{
		Name: "max_tool_calls",
		BeforeTool: func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) {
			if calls.Add(1) > n {
				return ctx, fmt.Errorf("the call was not made: the client allows at most %d tool calls in a response", n)
			}
			return ctx, nil
		},
	}
}

func setValue[T any](to **T, v *T) {
	if v != nil {
		*to = v
	}
}

func setText[T ~string](to *T, v T) {
	if v != "" {
		*to = v
	}
}

// outside is a tool that the client runs: its calls wait for the output that the client
// sends. It always asks, whatever the rules of the agent's file allow, because nothing
// here could run it.
type outside struct{ tool.Tool }

// nameOf returns the name of a client's tool.
func nameOf(def item.Tool) string {
	switch t := def.(type) {
	case *item.FunctionTool:
		return t.Name
	case *item.CustomTool:
		return t.Name
	}
	return ""
}

// clientTool makes a tool from a definition of the client.
func clientTool(def item.Tool) (tool.Tool, error) {
	t, err := tool.Raw(def, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, errors.New("the client that declared this tool runs it, and has not sent its output")
	})
	if err != nil {
		return nil, err
	}
	return outside{t}, nil
}

// Approval implements [agent.ApprovalAdvisor].
func (outside) Approval(tool.Call, []session.Rule) (session.Verdict, string) {
	return session.Ask, "the client that declared the tool runs it"
}

// answered is an answer of the client to a pending approval.
type answered struct {
	pending agent.PendingApproval
	given   *item.MCPApprovalResponse
}

// takeApart takes the input of a request apart: what is added to the session, and the answers
// to approvals.
func (b *Backend) takeApart(ctx context.Context, at *place, run *active, r *server.Request) (answers []answered, err error) {
	log := run.host.Session.Log()
	var pending []agent.PendingApproval
	known := map[string]bool{} // calls that the log has
	of := at.continues
	if at.talk != "" {
		of = lastID(log)
	}
	if of != "" {
		if pending, err = agent.PendingApprovals(ctx, run.host.Session); err != nil {
			return nil, err
		}
		for _, p := range pending {
			known[approvalID(of, at.session, &p)], known[p.CallID] = true, true
		}
	}
	for _, it := range at.early {
		run.input = append(run.input, session.InputItem{Item: it})
	}
	for i, it := range r.Items {
		switch {
		case it.Type() == item.TypeMCPApprovalResponse:
			given, err := item.As[item.MCPApprovalResponse](it)
			if err != nil {
				return nil, err
			}
			n := slices.IndexFunc(pending, func(p agent.PendingApproval) bool {
				return approvalID(of, at.session, &p) == given.ApprovalRequestID
			})
			if n < 0 {
				return nil, noCallWaits(i, given.ApprovalRequestID)
			}
			answers = append(answers, answered{pending[n], given})
		case it.IsCall() && (known[it.CallID()] || known[it.ID()]):
		case it.Type() == item.TypeMCPApprovalRequest:
			return nil, server.Invalid("invalid_value", fmt.Sprintf("input[%d]", i), "Invalid 'input[%d]': no call waits for an answer to '%s'.", i, it.ID())
		case it.Type() == item.TypeMCPCall:
			call, output, err := apart(it)
			if err != nil {
				return nil, server.Invalid("invalid_value", fmt.Sprintf("input[%d]", i), "Invalid 'input[%d]': %v.", i, err)
			}
			run.input = append(run.input, session.InputItem{Item: call}, session.InputItem{Item: output})
		case it.Type() == item.TypeMCPListTools:
		default:
			if strings.Contains(it.ID(), "_resp_") {
				it = it.Without("id") // it means nothing to the agent's endpoint
			}
			run.input = append(run.input, session.InputItem{Item: it})
		}
	}
	if len(run.input) == 0 && len(answers) == 0 {
		return nil, errNothing
	}
	run.input = append(b.instructions(log, r.Instructions), run.input...)
	if at.fresh && at.continues != "" {
		run.input = append(leftElsewhere(run, pending, r.Items), run.input...)
	}
	return answers, nil
}

// noCallWaits is the error for an answer in the input to a request for approval that no call waits for.
func noCallWaits(i int, id string) error {
	name := fmt.Sprintf("input[%d].approval_request_id", i)
	return server.Invalid("invalid_value", name, "Invalid '%s': no call waits for an answer to '%s' in what the request continues. It may have been answered elsewhere; an answer must come with previous_response_id or conversation.", name, id)
}

// leftElsewhere refuses the calls of the agent's tools that had not begun where a session was
// forked: a server ended then. The session itself goes on with them, and each of its forks would
// make them once more.
func leftElsewhere(run *active, pending []agent.PendingApproval, given []item.Item) (bodies []session.Body) {
	var view session.View
	allowed, copied := map[string]bool{}, map[string]bool{} // calls that were allowed there: the fork itself asks about them again
	for e := range run.host.Session.Entries() {
		view.Apply(e)
		switch b := e.Body.(type) {
		case session.RunStarted:
			clear(allowed)
		case session.Approval:
			allowed[b.CallID] = b.Allowed
		case session.ApprovalAsked:
			copied[b.CallID] = allowed[b.CallID]
		}
	}
	for _, c := range view.Open() {
		waits := !copied[c.CallID] && slices.ContainsFunc(pending, func(p agent.PendingApproval) bool { return p.Number == c.Number })
		answered := slices.ContainsFunc(given, func(it item.Item) bool { return it.IsOutput() && it.CallID() == c.CallID })
		name, _ := c.Item.Member("name")
		called, _ := name.Unquote()
		lent := slices.ContainsFunc(run.lent.tools, func(def item.Tool) bool { return nameOf(def) == called })
		if c.Started || c.Given || waits || answered || lent {
			continue
		}
		bodies = append(bodies, session.Approval{
			CallID: c.CallID, Decided: session.DeciderProgram, By: "the server",
			Reason: "The call was not made here: it belongs to another continuation of the conversation.",
		})
	}
	return bodies
}

// errNothing is for a request without input, or whose input has nothing to answer.
var errNothing = &server.Error{Status: http.StatusBadRequest, Code: "missing_required_parameter", Param: "input", Message: "The input adds nothing that the agent could answer. Send a message of the user after what the model said."}

// asks reports whether a run with this input has something to answer. A run that has not would fail. U3
func asks(ctx context.Context, s *session.Session, input []session.Body) bool {
	isQuestion := func(b session.Body) bool {
		given, ok := b.(session.InputItem)
		return ok && !given.Item.Instructs() && !given.Item.IsCall() && given.Item.Role() != item.RoleAssistant
	}
	if len(input) > 0 && isQuestion(input[len(input)-1]) { // nearly always
		return true
	}
	for _, err := range s.Deliveries(ctx) {
		_ = err     // the run meets it, too
		return true // it may be a question
	}
	var state plan.State
	log, question := s.Log(), slices.ContainsFunc(input, isQuestion)
	for _, e := range log {
		state.Apply(e)
		question = question || isQuestion(e.Body)
	}
	for i, body := range append(slices.Clip(input), session.RunStarted{}) {
		state.Apply(session.Entry{Seq: int64(len(log)+i) + 1, Body: body})
	}
	stop, stops := state.Next().(plan.Stop)
	return question && !(stops && stop.Why == agent.StopNothingToSend)
}

// minOutputTokens is the least that the Responses API takes as max_output_tokens. Chat Completions has no minimum.
const minOutputTokens = 16

// enoughTokens returns an error if a client of Chat Completions allows fewer tokens than the endpoint of the agent's
// model takes.
func enoughTokens(a *agent.Agent, r *server.Request) error {
	n := r.MaxOutputTokens
	model, ok := a.Model.(agent.Describer)
	if n == nil || *n >= minOutputTokens || !ok || model.About().API != endpoint.APIResponses {
		return nil
	}
	if profile, err := endpoint.ByName(model.About().Profile); err == nil && *n >= int64(profile.MinOutputTokens) {
		return nil
	}
	return server.Invalid("integer_below_min_value", "max_output_tokens",
		"Invalid 'max_output_tokens': integer below minimum value. The endpoint of the agent's model takes a value >= %d, but got %d instead.", minOutputTokens, *n)
}

// instructions returns the entries that put the instructions of a request into the
// history: after those of the agent, and without those of earlier requests.
func (b *Backend) instructions(log []session.Entry, text string) (bodies []session.Body) {
	last, at := "", int64(0)
	for _, e := range log {
		if n, ok := noteOf(e); ok && n.Kind == kindInstructions {
			last, at = n.Text, e.Seq+1
		}
	}
	if text == last {
		return nil
	}
	if last != "" {
		bodies = append(bodies, session.ItemsWithdrawn{Seqs: []int64{at}, Reason: "the instructions of an earlier request", By: "the server"})
	}
	bodies = append(bodies, note{Kind: kindInstructions, Text: text}.body())
	if text != "" {
		bodies = append(bodies, session.InputItem{Item: item.Developer(text)})
	}
	return bodies
}

// apart returns the call and the output that an mcp_call of an agent stands for.
func apart(it item.Item) (call, output item.Item, err error) {
	c, err := item.As[item.MCPCall](it)
	if err != nil {
		return call, output, err
	}
	text := c.Output
	if c.Error != nil && text == "" {
		text = "The call failed."
	}
	id := "call_" + strings.TrimPrefix(c.ID, "mcp_")
	id = id[:min(len(id), 64)]
	output, err = item.Output(id, item.Text(text))
	return item.Call(id, c.Name, c.Arguments), output, err
}

// decide records the answers of the client, and tells the audit log before.
func (b *Backend) decide(ctx context.Context, run *active, a *Agent, answers []answered) error {
	if len(answers) == 0 {
		return nil
	}
	caller, _ := server.CallerOf(ctx)
	var list []agent.Decision
	for _, one := range answers {
		p := one.pending
		d := agent.Decision{
			Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: one.given.Approve, Reason: host.Refusal(one.given.Reason),
			By: cmp.Or(b.By, caller.Key, "a client"), From: fromClient + one.given.ApprovalRequestID, Decided: session.DeciderPerson,
		}
		if a.Config.Audit != nil {
			if err := a.Config.Audit(ctx, host.Answered(p, d)...); err != nil {
				return err
			}
		}
		list = append(list, d)
	}
	return agent.Decide(ctx, run.host.Session, list...)
}

// fromClient begins the name of the means by which a client answers; the id of the
// mcp_approval_request follows.
const fromClient = "mcp_approval_response to "
