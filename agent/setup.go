// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Describer is implemented by a [Model] that knows where its requests go. A run
// asks it before and after each turn, and writes what it says to the log.
type Describer interface{ About() endpoint.About }

// Recaller is implemented by a [Model] that finds out from answers what kind of
// server is asked. A run tells it before its first request what answers of the
// same session's last endpoint told, so that each process asks that as the one
// before it did. Whether that is still the endpoint is for the Model to see.
type Recaller interface{ Recall(before endpoint.About) }

// recall tells the model what the log says of its endpoint.
func (r *Run) recall() {
	url, profile := r.state.Server()
	tell(r.agent.Model, url, profile)
}

// tell lets a model know what kind of server a profile names, as the log has it.
func tell(m Model, endpointURL, profile string) {
	if m, ok := m.(Recaller); ok && profile != "" {
		m.Recall(endpoint.About{URL: endpointURL, Profile: profile})
	}
}

// Recall tells a model what kind of server answered the session before, which a
// run does before its first request. It is for a program that says who will answer
// before it starts the run. A model that is not a [Recaller] is left as it is.
func Recall(m Model, s *session.Session) {
	url, profile := plan.ServerOf(s.Entries())
	tell(m, url, profile)
}

// setup says what makes the next turn.
func (r *Run) setup() *session.Setup {
	if r.made.tools != r.tools {
		req := r.agent.Request
		r.equipRequest(&req)
		r.made.setup, r.made.tools = r.agent.setupFor(&req), r.tools
	}
	r.agent.locate(&r.made.setup)
	return &r.made.setup
}

// made is a setup and the tools that it has.
type made struct {
	setup session.Setup
	tools *tool.Set
}

// setupFor is what the agent says of a request, but for where it goes.
func (a *Agent) setupFor(req *item.Request) session.Setup {
	s := a.Setup
	s.Model, s.Settings, s.Instructions = req.Model, settingsOf(req), hashOf(req.Instructions)
	s.Tools = nil
	for _, def := range req.Tools {
		name := def.ToolType()
		switch def := def.(type) {
		case *item.FunctionTool:
			name = def.Name
		case *item.CustomTool:
			name = def.Name
		}
		text, err := (&item.Request{Tools: []item.Tool{def}}).MarshalJSON()
		if err != nil {
			continue // the request that carries it says so
		}
		text = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte(`{"tools":[`)), []byte(`]}`))
		s.Tools = append(s.Tools, session.Hashed{Name: name, Hash: session.Fingerprint(string(text))})
	}
	return s
}

func hashOf(text string) string {
	if text == "" {
		return ""
	}
	return session.Fingerprint(text)
}

// settingsOf is a request without its model, texts and tools.
func settingsOf(req *item.Request) item.JSON {
	bare := *req
	bare.Model, bare.Instructions, bare.Input, bare.Tools = "", "", nil, nil
	text, err := bare.MarshalJSON()
	if err != nil || string(text) == "{}" {
		return ""
	}
	return item.JSON(text)
}

// locate fills in where requests go, but for what the agent's Setup says.
func (a *Agent) locate(s *session.Setup) {
	m, ok := a.Model.(Describer)
	if !ok {
		return
	}
	about, said := m.About(), &a.Setup
	s.Endpoint = cmp.Or(said.Endpoint, about.URL)
	s.API = cmp.Or(said.API, about.API)
	s.Transport = cmp.Or(said.Transport, about.Transport)
	s.Profile = cmp.Or(said.Profile, about.Profile)
	s.Rehearsal = said.Rehearsal || about.Rehearsal
}

// changed returns a copy of the setup if the log does not have it yet, else nil.
func (r *Run) changed() *session.Setup {
	now := r.setup()
	if now.Equal(r.state.Setup()) {
		return nil
	}
	s := *now
	return &s
}

// Sizer is implemented by a [Model] whose endpoint may tell how many tokens the
// context of a model has. A run asks after each turn that ended as it should, and
// writes what is new to the log. Window returns 0 for what is not known, and must
// not take long.
type Sizer interface {
	Window(ctx context.Context, model string) int64
}

// learnWindow notes what the endpoint says of the model's context.
func (r *Run) learnWindow(ctx context.Context, end *session.TurnEnded, req *item.Request) {
	m, ok := r.agent.Model.(Sizer)
	if !ok || req == nil || end.BrokeOff() || ctx.Err() != nil {
		return
	}
	if n := m.Window(ctx, req.Model); n > 0 && n != r.state.ToldWindow() {
		end.Window = n
	}
}

// describe says of a turn that is over what only its request and its answer
// tell: what hooks changed, who answered, and on what kind of server.
func (r *Run) describe(ctx context.Context, end *session.TurnEnded, req *item.Request, resp *item.Response) {
	end.Model, end.ServiceTier = resp.Model, resp.ServiceTier
	if resp.Conversation != nil {
		end.InConversation = resp.Conversation.ID
	}
	if id, n := r.meta.RequestID(); n > r.answers {
		r.answers, end.RequestID = n, id
	}
	r.learnWindow(ctx, end, req)
	now := r.setup()
	if now.Profile != r.state.Setup().Profile {
		end.Profile = now.Profile
	}
	if len(r.agent.Hooks) == 0 || req == nil {
		return
	}
	s := *now
	s.Model, s.Settings, s.Instructions = req.Model, settingsOf(req), hashOf(req.Instructions)
	if !s.Equal(now) {
		end.Setup = &s
	}
}
