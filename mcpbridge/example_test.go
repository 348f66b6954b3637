// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Two servers, one a program and one at a URL. Their tools come and go as they say
// while a run is under way.
func ExampleBridge() {
	ctx, a, token := context.Background(), &agent.Agent{}, "of the second one"
	bridge, err := mcpbridge.Connect(ctx, mcpbridge.Options{Reserved: []string{"read_file"}},
		mcpbridge.Server{Name: "files", Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"}},
		mcpbridge.Server{URL: "https://mcp.example.com/mcp", Token: endpoint.NewKey(token), Include: []string{"search_*"}},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer bridge.Close()
	a.ToolSource = func(ctx context.Context) ([]tool.Tool, error) {
		_ = bridge.Refresh(ctx) // a server that does not answer keeps its tools
		return bridge.Tools(), nil
	}
}

// The tools of a server are tools like any other. This one speaks HTTP; one
// that is a program is mcpbridge.Server{Command: []string{"npx", "-y", "…"}}.
func ExampleConnect() {
	greeter := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	mcp.AddTool(greeter, &mcp.Tool{Name: "greet", Description: "Greet somebody."},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return greeter }, nil))
	defer server.Close()

	ctx := context.Background()
	bridge, err := mcpbridge.Connect(ctx, mcpbridge.Options{}, mcpbridge.Server{Name: "greeter", URL: server.URL})
	if err != nil {
		panic(err)
	}
	defer bridge.Close()

	set, err := tool.NewSet(bridge.Tools()...)
	if err != nil {
		panic(err)
	}
	for _, def := range set.Definitions() {
		f := def.(*item.FunctionTool)
		fmt.Println(f.Name+":", f.Description)
	}
	out := set.Invoke(ctx, tool.Call{ID: "call_1", Name: "greet", Arguments: `{"name":"Ada"}`}, output.Policy{})
	fmt.Println(out.Content.Display())
	// Output:
	// greet: Greet somebody.
	// Hello, Ada!
}
