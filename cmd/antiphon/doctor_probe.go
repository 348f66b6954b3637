// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

// The names of the probes.
const (
	probeModels    = "models are listed"
	probeCreate    = "responses"
	probeStream    = "responses, streamed"
	probeUsage     = "usage"
	probeLimit     = "max_output_tokens"
	probeWindow    = "context window"
	probeSchema    = "output by a JSON schema"
	probePicture   = "image in a message"
	probeTools     = "function calls"
	probeForced    = "a call is required"
	probeNamed     = "a tool is chosen by name"
	probeOutput    = "tool output as text"
	probeParts     = "tool output with an image"
	probePrevious  = "previous_response_id"
	probeStored    = "stored responses"
	probeTokens    = "input tokens counted"
	probeTalks     = "conversations"
	probeSocket    = "WebSocket"
	probeChat      = "Chat Completions"
	probeMaxTokens = 64
)

// prober tries one endpoint.
type prober struct {
	link    *subject
	known   endpoint.Profile
	timeout time.Duration
	dead    string    // why the other probes are not made, or ""
	heard   bool      // the endpoint has answered something
	late    int       // how many probes had no answer in time
	hint    string    // what helps against the first error that says so
	call    item.Item // the model's call in the probe of tools
	id      string    // of a response that should be stored

	first    *api.Response
	streamed *api.Usage
	listed   []byte // the raw list of models
	asText   bool   // outputs with images are refused, but images in messages are accepted
	byHeader bool   // the profile was detected by the Server header
	ollama   bool   // it answers like Ollama, whatever its address
	secret   func(string) string
}

// short returns the beginning of an endpoint's text without keys. Keys are removed
// first, because a shortened key would not be found.
func (p *prober) short(text string) string { return show.Shorten(p.secret(text), 30) }

// probes runs all probes, in an order in which later ones use the results of earlier
// ones.
func (c *doctorCommand) probes(ctx context.Context, l *subject, report *doctorReport) error {
	keys := report.hide
	report.hide = func(text string) string { return transport.HideURL(keys(text), l.BaseURL) }
	p := &prober{link: l, timeout: c.Timeout, known: endpoint.Careful, secret: report.hide}
	report.prober = p
	if u, err := endpoint.URL(cmp.Or(l.BaseURL, endpoint.DefaultBaseURL), "/"); err == nil {
		p.known = l.Table.Detect(u)
	}
	if l.Profile != nil {
		p.known = *l.Profile
	}
	report.begin()
	try := func(name string, run func(context.Context) (string, error)) error {
		report.screen.Wait(name, name)
		found := p.try(ctx, name, run)
		report.screen.Done(name)
		if ctx.Err() != nil { // and this is not the endpoint's fault
			return ctx.Err()
		}
		report.add(found)
		return nil
	}
	if err := try(probeModels, p.models); err != nil {
		return err
	}
	if p.byHeader {
		report.add(finding{"profile", works, p.known.Name + ", known by its Server header"})
	}
	if l.Model == "" && p.dead == "" {
		err := errors.New("no model is given and the endpoint lists none: check the base URL, or give --model NAME")
		return &exitError{exitProvider, err}
	}
	for _, probe := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{probeCreate, p.create}, {probeStream, p.stream}, {probeUsage, p.usage}, {probeLimit, p.maxTokens}, {probeWindow, p.window},
		{probeSchema, p.schema}, {probePicture, p.picture}, {probeTools, p.tools}, {probeForced, p.forced}, {probeNamed, p.named},
		{probeOutput, p.textOutput}, {probeParts, p.partsOutput},
		{probePrevious, p.previous}, {probeStored, p.stored}, {probeTokens, p.tokens}, {probeTalks, p.conversations},
		{probeSocket, p.socket}, {probeChat, p.chat},
	} {
		if p.dead != "" {
			report.add(finding{probe.name, skipped, p.dead})
			continue
		}
		if err := try(probe.name, probe.run); err != nil {
			return err
		}
	}
	return nil
}

// errSkip means that a probe could not be made.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// mostLate is how many probes wait for an endpoint that has never answered.
const mostLate = 2

// try runs one probe and reports its outcome.
func (p *prober) try(ctx context.Context, name string, run func(context.Context) (string, error)) finding {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	began := time.Now()
	note, err := run(ctx)
	var skip errSkip
	var ignored errIgnored
	var doubt errUnclear
	var e *endpoint.Error
	if errors.As(err, &e) && p.hint == "" {
		p.hint = e.Hint
	}
	if err == nil || e != nil && e.Status != 0 {
		p.heard = true
	}
	switch {
	case err == nil:
		return finding{name, works, strings.TrimPrefix(note+", ", ", ") + show.Duration(time.Since(began))}
	case errors.As(err, &skip):
		return finding{name, skipped, skip.Error()}
	case errors.As(err, &ignored):
		return finding{name, missing, ignored.Error()}
	case errors.As(err, &doubt):
		return finding{name, unclear, doubt.Error()}
	case absent(err):
		return finding{name, missing, brief(err)}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if p.late++; !p.heard && p.late == mostLate {
			p.dead = "the endpoint does not answer in time"
		}
		return finding{name, broken, fmt.Sprintf("no answer within %s; use --timeout for a longer time", show.Duration(p.timeout))}
	}
	if e != nil && e.Class == endpoint.Network {
		p.dead = "the endpoint cannot be reached"
		return finding{name, broken, err.Error()}
	}
	return finding{name, broken, brief(err)}
}

// brief returns the message of an error without the address, which the report shows
// above.
func brief(err error) string {
	var e *endpoint.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	short := *e
	short.Method, short.URL, short.Op, short.Hint, short.RequestID = "", "", "", "", ""
	return short.Error()
}

// absent reports whether an error means that the endpoint lacks the feature.
func absent(err error) bool {
	var refused *endpoint.RefusedError
	var e *endpoint.Error
	if errors.As(err, &refused) {
		return true
	}
	return errors.As(err, &e) && (e.Class == endpoint.NotFound || e.Class == endpoint.PreviousResponse || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusUpgradeRequired)
}

// client sends requests as a run would, but without retries.
func (p *prober) client() *responses.Client {
	return (*responses.Client)(p.config())
}

func (p *prober) config() *dialect.Config {
	c := p.link.Config()
	c.UserAgent, c.Retry, c.IdleTimeout = userAgent(), endpoint.Retry{Max: 1}, p.timeout
	return c
}

// bare sends requests without the changes and refusals of the profile, to see the
// endpoint's own behaviour.
func (p *prober) bare() *responses.Client {
	c := p.client()
	c.Profile = &endpoint.Profile{
		Name: "as specified", BasePath: p.known.BasePath, ResponsesPath: p.known.ResponsesPath, Chat: p.known.Chat,
		APIs: p.known.APIs, KeyHeader: p.known.KeyHeader, AccountHeader: p.known.AccountHeader, Header: p.known.Header,
		SocketHeader: p.known.SocketHeader, Set: p.known.Set, Omit: p.known.Omit, Instructions: p.known.Instructions,
	}
	return c
}

func (p *prober) request(items ...item.Item) *api.Request {
	limit := int64(probeMaxTokens)
	return &api.Request{
		Model: p.link.Model, Instructions: "You are being tested. Answer with one word.",
		Input: item.NewList(items...), MaxOutputTokens: &limit,
	}
}

var probeQuestion = item.User("Say ok.")

// models lists the models, and chooses the first one if none is given.
func (p *prober) models(ctx context.Context) (string, error) {
	u, err := p.known.URL(cmp.Or(p.link.BaseURL, endpoint.DefaultBaseURL), "/models")
	if err != nil {
		return "", err
	}
	header, body, err := p.get(ctx, u.String())
	if err != nil {
		return "", err
	}
	if known, ok := p.link.Table.DetectServer(header.Get("Server")); ok && p.link.Profile == nil {
		p.byHeader, p.known = known.Name != p.known.Name, known
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Data) == 0 {
		return "", errors.New("the answer is not a list of models")
	}
	note := fmt.Sprintf("%d of them", len(list.Data))
	if p.link.Model == "" {
		p.link.Model = list.Data[0].ID
		note += "; none was given, so " + p.link.Model + " is tried"
	}
	p.listed = body
	return note, nil
}

func (p *prober) create(ctx context.Context) (string, error) {
	resp, err := p.client().Create(ctx, p.request(probeQuestion))
	if err != nil {
		return "", err
	}
	p.first = resp
	return fmt.Sprintf("%s said %q", cmp.Or(resp.Model, p.link.Model), p.short(resp.Text())), nil
}

func (p *prober) stream(ctx context.Context) (string, error) {
	deltas, text := 0, ""
	for ev, err := range p.client().Stream(ctx, p.request(probeQuestion)) {
		if err != nil {
			return "", err
		}
		if ev.Type == api.EventTextDelta {
			deltas++
			text += ev.Delta
		}
		if ev.Type == api.EventCompleted || ev.Type == api.EventIncomplete {
			if resp, err := ev.Response(); err == nil {
				p.streamed = resp.Usage
			}
		}
	}
	return fmt.Sprintf("%d text deltas", deltas), nil
}

// probeTool is a function without arguments for the model to call.
var probeTool = &item.FunctionTool{
	Name: "ping", Description: "Answers pong.",
	Parameters: `{"type":"object","properties":{},"required":[],"additionalProperties":false}`,
}

func (p *prober) tools(ctx context.Context) (string, error) {
	r := p.request(item.User("Call the tool ping."))
	r.Tools, r.ToolChoice = []item.Tool{probeTool}, api.ChoiceRequired
	resp, err := p.client().Create(ctx, r)
	if err != nil {
		return "", asNo(err)
	}
	for _, it := range resp.Output {
		if it.Type() == item.TypeFunctionCall {
			p.call = it
			return "", nil
		}
	}
	return "", errUnclear("nothing was called: the server ignores tools, or the model cannot call them")
}

// answered sends the call with an output.
func (p *prober) answered(ctx context.Context, c *responses.Client, out item.Content) (*api.Response, error) {
	if p.call.IsZero() {
		return nil, errSkip("nothing was called")
	}
	output, err := item.Output(p.call.CallID(), out)
	if err != nil {
		return nil, err
	}
	r := p.request(item.User("Call the tool ping, and say what colour it answers."), p.call, output)
	r.Tools = []item.Tool{probeTool}
	return c.Create(ctx, r)
}

func (p *prober) textOutput(ctx context.Context) (string, error) {
	_, err := p.answered(ctx, p.client(), item.Text("pong"))
	return "", err
}

// partsOutput sends an image in an output: as specified and, if that is refused, in
// the form that a run would use, which may be plain text.
func (p *prober) partsOutput(ctx context.Context) (string, error) {
	without, err := p.answered(ctx, p.client(), item.Text("pong"))
	if err != nil {
		return "", err
	}
	parts := item.Parts(&item.InputText{Text: "pong"}, &item.InputImage{ImageURL: probeImage()})
	note := ""
	with, err := p.answered(ctx, p.bare(), parts)
	if refused(err) {
		c := p.client()
		c.Retry = endpoint.Retry{Max: 1}
		again, failed := p.answered(ctx, c, parts)
		if failed != nil {
			return "", asNoImage(err)
		}
		p.asText, with, err, note = true, again, nil, "as text and a message, as antiphon sends it here; "
	}
	if err != nil {
		return "", asNoImage(err)
	}
	seen, err := arrived(with, inputOf(with)-inputOf(without))
	var doubt errUnclear
	var ignored errIgnored
	switch {
	case errors.As(err, &doubt):
		err = errUnclear(note + string(doubt))
	case errors.As(err, &ignored):
		err = errIgnored(note + string(ignored))
	}
	return note + seen, err
}

func (p *prober) stored(ctx context.Context) (string, error) {
	if p.id == "" {
		return "", errSkip("no response is known to be stored")
	}
	c := p.bare()
	if _, err := c.Retrieve(ctx, p.id, nil); err != nil {
		return "", err
	}
	return "", c.Delete(ctx, p.id)
}

func (p *prober) tokens(ctx context.Context) (string, error) {
	r := p.request(probeQuestion)
	r.MaxOutputTokens = nil
	n, err := p.bare().CountTokens(ctx, r)
	return fmt.Sprintf("%d for the question", n), err
}

func (p *prober) conversations(ctx context.Context) (string, error) {
	c := p.bare()
	talk, err := c.CreateConversation(ctx, &api.CreateConversation{})
	if err != nil {
		return "", err
	}
	return "", c.DeleteConversation(ctx, talk.ID)
}

func (p *prober) socket(ctx context.Context) (string, error) {
	t := &responses.Chain{Client: p.bare(), Transport: responses.WebSocket}
	defer t.Close()
	if err := drained(t.Stream(ctx, p.request(probeQuestion))); err != nil {
		return "", err
	}
	if t.Uses() != responses.WebSocket {
		return "", &endpoint.Error{Class: endpoint.NotFound, Message: "the endpoint does not support WebSockets; HTTP is used"}
	}
	return "", nil
}

func (p *prober) chat(ctx context.Context) (string, error) {
	return "", drained((*completions.Client)(p.config()).Stream(ctx, p.request(probeQuestion)))
}

// drained reads a stream to its end.
func drained(events func(func(api.Event, error) bool)) error {
	for _, err := range events {
		if err != nil {
			return err
		}
	}
	return nil
}

// suggestion returns a profile for an unknown endpoint, according to the probes. It
// is based on the most similar profile, so that it is never worse than no profile.
// It returns nil if a built-in profile is detected automatically.
func suggestion(p *prober, found []finding) jsontext.Value {
	l := p.link
	base := cmp.Or(l.BaseURL, endpoint.DefaultBaseURL)
	u, err := endpoint.URL(base, "/")
	if err != nil || l.Profile != nil || p.known.Name != endpoint.Careful.Name || l.Model == rehearsal.Model {
		return nil
	}
	if p.ollama { // Ollama's own profile is better than the findings
		return indented(fmt.Appendf(nil, `{"profiles":[{"name":%q,"like":"ollama","hosts":[%q]}]}`, u.Hostname(), u.Host))
	}
	best := endpoint.Careful.Clone()
	best.Name, best.Hosts = u.Hostname(), []string{u.Host}
	for _, f := range found {
		support := endpoint.Unknown
		switch f.Result {
		case works:
			support = endpoint.Yes
		case missing, broken:
			support = endpoint.No
		}
		switch f.Name {
		case probeCreate:
			if support == endpoint.No {
				best.APIs = []string{endpoint.APIChat}
			}
		case probeParts:
			if support == endpoint.No || p.asText {
				best.Outputs = endpoint.OutputString
			}
		case probePrevious:
			best.PreviousResponse = support
		case probeStored:
			best.Stored = support
		case probeTokens:
			best.InputTokens = support
		case probeTalks:
			best.Conversations = support
		case probeSocket:
			best.WebSocket = support
		}
	}
	text := append([]byte(`{"profiles":[`), best.AppendJSON(nil)...)
	return indented(append(text, "]}"...))
}

func indented(text []byte) jsontext.Value {
	v := jsontext.Value(text)
	if v.Indent() != nil {
		return nil
	}
	return v
}
