// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program gives an agent the tools of an MCP server. The server is the program
// itself, started with the argument serve; it could be any other. Start it with
//
//	go run ./examples/go/mcp
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

const script = `
turn
  call greet {"name": "Ada"}
turn
  say The server says: {{output "greet" 1}}
`

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		log.Fatal(serve(ctx))
	}
	self, err := os.Executable()
	if err == nil {
		err = run(ctx, os.Stdout, self, "serve")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// serve is the server: one tool, over standard input and output.
func serve(ctx context.Context) error {
	type input struct {
		Name string `json:"name"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets somebody."},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
		})
	return server.Run(ctx, &mcp.StdioTransport{})
}

func run(ctx context.Context, out io.Writer, server ...string) error {
	play, err := rehearsal.Parse("mcp.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	bridge, err := mcpbridge.Connect(ctx, mcpbridge.Options{}, mcpbridge.Server{Name: "greeter", Command: server})
	if err != nil {
		return err
	}
	defer bridge.Close()
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
		Request: api.Request{Model: "rehearsal"},
		// Servers may add and remove tools during a run.
		ToolSource: func(ctx context.Context) ([]tool.Tool, error) {
			err := bridge.Refresh(ctx)
			return bridge.Tools(), err
		},
		// Calls of a server's tools ask, whatever the server says about them.
		Policy: agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			fmt.Fprintf(out, "May %s run with %s? Yes.\n", q.Call.Name, q.Call.Arguments)
			return agent.Decision{Allow: true, By: "the example"}, nil
		}},
	}
	res, err := a.Run(ctx, session.New(), item.User("Greet Ada."))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, res.Text)
	return err
}
