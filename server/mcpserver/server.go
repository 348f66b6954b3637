// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Agent is an agent's file that is served as a tool.
type Agent struct {
	// Name is the name of the tool and of the prompt: up to 64 letters, digits, "-" and "_".
	Name string
	// Description says what the agent does to the model that chooses a tool. "" means a
	// sentence with the name.
	Description string
	// Messages are those of the file. They are the prompt of the agent's name, and if one
	// of them is a question, the tool can be called without a task. Without them there is
	// no prompt.
	Messages []item.Item
	// Config says how the file is run. The Server sets the store, the session and Pause.
	// Its Trust is asked for each call, so that a file that was changed is not run before
	// somebody agreed to the change, and its Hint says how calls can be allowed.
	Config host.Config
}

// Server serves agents over the Model Context Protocol. Set the fields before the first
// client; then it is safe for concurrent use.
type Server struct {
	// Agents are the tools.
	Agents []Agent
	// Store keeps the sessions. Nil means memory. The Server does not close it.
	Store store.Store
	// Program is the name of the program and Version its version, as clients read them.
	// "" means antiphon, and no version.
	Program, Version string
	// By is recorded as the person who answers elicitations; "" means "a client".
	By string
	// Wait is how long a client may take to answer an elicitation; 0 means 10 minutes.
	// Then the call is refused, and the log says that nobody answered.
	Wait time.Duration
	// MaxCalls bounds the calls that are under way; 0 means 64. Further ones are refused.
	MaxCalls int
	// Log receives errors that clients are not told. It may be nil.
	Log func(err error)

	memory ephemeral

	shown shownForms

	mu    sync.Mutex
	calls int
	idle  chan struct{} // closed when the last call ends; nil while nobody waits for it
}

// ephemeral is a store in memory.
type ephemeral struct{ session.Memory }

func (*ephemeral) Place() string { return "memory" }
func (*ephemeral) Close() error  { return nil }

func (s *Server) store() store.Store {
	if s.Store != nil {
		return s.Store
	}
	return &s.memory
}

func (s *Server) report(err error) {
	if err != nil && s.Log != nil {
		s.Log(err)
	}
}

var validName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// Check returns an error if the agents cannot be served: without any, or with names that
// clients do not accept.
func (s *Server) Check() error {
	if len(s.Agents) == 0 {
		return errors.New("mcpserver: there is no agent to serve")
	}
	seen := map[string]bool{}
	for i := range s.Agents {
		name := s.Agents[i].Name
		switch {
		case !validName.MatchString(name):
			return fmt.Errorf("mcpserver: %q cannot be the name of a tool: it has up to 64 letters, digits, - and _", name)
		case seen[name]:
			return fmt.Errorf("mcpserver: two agents are called %s", name)
		}
		seen[name] = true
	}
	return nil
}

// live makes the server of the SDK. Calls end when ctx is done.
func (s *Server) live(ctx context.Context) *mcp.Server {
	of := mcp.NewServer(&mcp.Implementation{Name: cmp.Or(s.Program, "antiphon"), Version: cmp.Or(s.Version, "unknown")}, &mcp.ServerOptions{
		Instructions: "Each tool is an agent that works on a task by itself and answers with the result. It does not know this conversation: tell it all that it needs.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}},
	})
	of.AddSendingMiddleware(keepsSent)
	for i := range s.Agents {
		a := &s.Agents[i]
		of.AddTool(a.tool(), func(calling context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calling, end := context.WithCancel(calling)
			defer end()
			defer context.AfterFunc(ctx, end)()
			return s.call(calling, a, r)
		})
		if p := a.prompt(); p != nil {
			of.AddPrompt(p, a.getPrompt)
		}
	}
	return of
}

// tool describes the agent as a tool.
func (a *Agent) tool() *mcp.Tool {
	required := `"required":["task"],`
	task := "What the agent should do, with all that it needs to know."
	if a.asks() {
		required, task = "", "What the agent should do in addition to what its file asks."
	}
	name, _ := json.Marshal(task) //nolint:errchkjson // a string
	schema := `{"type":"object","properties":{` +
		`"task":{"type":"string","description":` + string(name) + `},` +
		`"files":{"type":"array","description":"Images, PDF files and texts that belong to the task.","items":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"The name of the file, such as plan.pdf."},` +
		`"data":{"type":"string","contentEncoding":"base64","description":"Its bytes in base64."}},"required":["name","data"],"additionalProperties":false}},` +
		`"session":{"type":"string","description":"The session of an earlier call of this tool, as its result names it, to continue that conversation."}},` +
		required + `"additionalProperties":false}`
	return &mcp.Tool{
		Name: a.Name, Description: cmp.Or(a.Description, fmt.Sprintf("Gives a task to the agent %s and returns its answer.", a.Name)),
		InputSchema: json.RawMessage(schema),
	}
}

// asks reports whether the file asks something itself.
func (a *Agent) asks() bool {
	for _, it := range a.Messages {
		if it.Type() == item.TypeMessage && !it.Instructs() && it.Role() != item.RoleAssistant {
			return true
		}
	}
	return false
}

// enter counts a call, unless there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls >= cmp.Or(s.MaxCalls, 64) {
		return false
	}
	s.calls++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// settled waits until no call is under way, for a while at most.
func (s *Server) settled(most time.Duration) {
	s.mu.Lock()
	if s.calls == 0 {
		s.mu.Unlock()
		return
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	}
}
