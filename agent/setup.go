// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Describer is implemented by a [Model] that knows where its requests go. A run
// calls About before and after each turn and records the answer.
type Describer interface{ About() endpoint.About }

// Recaller is implemented by a [Model] that learns from answers what kind of server
// it uses. Before its first request, a run passes what the log says about the
// session's last endpoint, so that every process asks this endpoint in the same way.
// The Model must check whether it still uses the same endpoint.
type Recaller interface{ Recall(before endpoint.About) }

// recall passes the last endpoint in the log to the model.
func (r *Run) recall() {
	url, profile := r.state.Server()
	tell(r.agent.Model, url, profile)
}

// tell passes an endpoint and its profile, as recorded in the log, to a model. A
// model that is not a [Recaller] ignores them.
func tell(m Model, endpointURL, profile string) {
	if m, ok := m.(Recaller); ok && profile != "" {
		m.Recall(endpoint.About{URL: endpointURL, Profile: profile})
	}
}

// Recall tells a model what kind of server answered the session before, as a run
// does before its first request. It is for programs that show which server will
// answer before they start the run. A model that is not a [Recaller] is not changed.
func Recall(m Model, s *session.Session) {
	url, profile := plan.ServerOf(s.Entries())
	tell(m, url, profile)
}

// setup returns the description of how the next turn is made. It is computed again
// only when the tools changed; where requests go is asked each time, because the
// model may learn it from an answer.
func (r *Run) setup() *session.Setup {
	if r.made.tools != r.tools {
		req := r.agent.Request
		r.equipRequest(&req)
		r.made.setup, r.made.tools = r.agent.setupFor(&req), r.tools
	}
	r.agent.locate(&r.made.setup)
	return &r.made.setup
}

// made caches a setup with the tools it was computed for.
type made struct {
	setup session.Setup
	tools *tool.Set
}

// setupFor returns the setup of a request, except for where it goes.
func (a *Agent) setupFor(req *api.Request) session.Setup {
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
		text, err := (&api.Request{Tools: []item.Tool{def}}).MarshalJSON()
		if err != nil {
			continue // sending the request reports the error
		}
		// The hash is that of the tool's definition alone, without the request
		// around it.
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

// settingsOf returns the JSON of a request without its model, texts and tools, or ""
// if nothing else is set.
func settingsOf(req *api.Request) item.JSON {
	bare := *req
	bare.Model, bare.Instructions, bare.Input, bare.Tools = "", "", nil, nil
	text, err := bare.MarshalJSON()
	if err != nil || string(text) == "{}" {
		return ""
	}
	return item.JSON(text)
}

// locate fills in where requests go. Values of the agent's Setup take precedence.
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

// endpoint returns where requests go, or "" if it is not known.
func (a *Agent) endpoint() string {
	var s session.Setup
	a.locate(&s)
	return s.Endpoint
}

// changed returns a copy of the setup if it differs from the setup in the log;
// otherwise nil.
func (r *Run) changed() *session.Setup {
	now := r.setup()
	if now.Equal(r.state.Setup()) {
		return nil
	}
	s := *now
	return &s
}

// Sizer is implemented by a [Model] whose endpoint may report how many tokens the
// context of a model has. A run calls Window after each turn that did not break off,
// and records new values. Window returns 0 if the size is not known. It must return
// quickly, because the run waits for it.
type Sizer interface {
	Window(ctx context.Context, model string) int64
}

// learnWindow asks for the size of the model's context and adds a new value to the
// end of the turn.
func (r *Run) learnWindow(ctx context.Context, end *session.TurnEnded, req *api.Request) {
	m, ok := r.agent.Model.(Sizer)
	if !ok || req == nil || end.BrokeOff() || ctx.Err() != nil {
		return
	}
	if n := m.Window(ctx, req.Model); n > 0 && n != r.state.ToldWindow() {
		end.Window = n
	}
}

// describe adds to the end of a turn what only its request and its answer reveal:
// settings that hooks changed, the model that answered, and the kind of server.
func (r *Run) describe(ctx context.Context, end *session.TurnEnded, req *api.Request, resp *api.Response) {
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
