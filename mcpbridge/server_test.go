// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The servers ask what is deprecated from protocol version 2026-07-28 on, since
// servers do.

package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve is the main function of the servers that the tests start.
func serve(mode string) {
	switch mode {
	case "sdk":
		run(sdkServer(0))
	case "many":
		run(sdkServer(300))
	case "noise":
		for i := range 20_000 {
			fmt.Fprintf(os.Stderr, "noise %d with the key %s\n", i, os.Getenv("PROBE_KEY"))
		}
		run(sdkServer(0))
	case "script":
		script{results: os.Getenv("RESULTS")}.serve()
	case "crowd":
		list := make([]string, 10_001)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i)
		}
		script{tools: strings.Join(list, ",")}.serve()
	case "wordy":
		script{tools: `{"name":"t","description":"` + strings.Repeat("word ", 2<<20) + `","inputSchema":{"type":"object"}}`}.serve()
	case "mute":
		bufio.NewReader(os.Stdin).WriteTo(new(bytes.Buffer)) // reads and never answers
	case "garbage":
		fmt.Println("Listening on port 3000")
		bufio.NewReader(os.Stdin).WriteTo(new(bytes.Buffer))
	case "exit":
		fmt.Fprintf(os.Stderr, "no configuration, and %s\n", os.Getenv("PROBE_KEY"))
		os.Exit(7)
	case "sleeper":
		time.Sleep(time.Hour)
	default:
		panic("no mode " + mode)
	}
}

func run(s *mcp.Server) {
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
	}
}

type textInput struct {
	Text string `json:"text"`
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

type handler = func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error)

func says(f func(ctx context.Context, req *mcp.CallToolRequest, in string) (string, error)) handler {
	return func(ctx context.Context, req *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		s, err := f(ctx, req, in.Text)
		return text(s), nil, err
	}
}

// sdkServer is a server of the SDK's, with n tools more.
func sdkServer(n int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "probe-server", Version: "1.2"}, &mcp.ServerOptions{Instructions: "Be kind."})
	add := func(name string, f handler) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "The tool " + name + "."}, f)
	}
	add("echo", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) { return in, nil }))
	add("fail", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) { return "", errors.New(in) }))
	add("hang", says(func(ctx context.Context, _ *mcp.CallToolRequest, in string) (string, error) {
		<-ctx.Done()
		if in != "" {
			os.WriteFile(in, []byte("cancelled"), 0o600)
		}
		return "", ctx.Err()
	}))
	add("die", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) {
		fmt.Fprintln(os.Stderr, "fatal: "+in)
		os.Exit(3)
		return "", nil
	}))
	add("print", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) {
		fmt.Println(in)
		return "printed", nil
	}))
	add("env", says(func(context.Context, *mcp.CallToolRequest, string) (string, error) {
		return strings.Join(os.Environ(), "\n"), nil
	}))
	add("pid", says(func(context.Context, *mcp.CallToolRequest, string) (string, error) {
		return fmt.Sprint(os.Getpid()), nil
	}))
	add("child", says(func(context.Context, *mcp.CallToolRequest, string) (string, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), modeVariable+"=sleeper")
		err := cmd.Start()
		return fmt.Sprint(cmd.Process.Pid), err
	}))
	add("roots", says(func(ctx context.Context, req *mcp.CallToolRequest, _ string) (string, error) {
		res, err := req.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		var uris []string
		for _, r := range res.Roots {
			uris = append(uris, r.URI)
		}
		return strings.Join(uris, " "), nil
	}))
	add("sample", says(func(ctx context.Context, req *mcp.CallToolRequest, _ string) (string, error) {
		_, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		return "", err
	}))
	add("elicit", says(func(ctx context.Context, req *mcp.CallToolRequest, _ string) (string, error) {
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who are you?"})
		return "", err
	}))
	add("ask", func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "who are you?"}}}, nil, nil
	})
	add("progress", says(func(ctx context.Context, req *mcp.CallToolRequest, in string) (string, error) {
		return in, req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: req.Params.GetProgressToken(), Message: "half way", Progress: 1, Total: 2})
	}))
	add("grow", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) {
		add(in, says(func(context.Context, *mcp.CallToolRequest, string) (string, error) { return "I am " + in, nil }))
		return "grown", nil
	}))
	add("shrink", says(func(_ context.Context, _ *mcp.CallToolRequest, in string) (string, error) {
		s.RemoveTools(in)
		return "shrunk", nil
	}))
	for i := range n {
		add(fmt.Sprintf("tool_%03d", i), says(func(context.Context, *mcp.CallToolRequest, string) (string, error) { return fmt.Sprint(i), nil }))
	}
	return s
}

// script is a server that answers calls with the very text that it was given
// for them, in version 2025-06-18 of the protocol.
type script struct {
	// results is a JSON object of results by the names of their tools. A result
	// may also be "hang", "exit", "closing" or "deaf".
	results string
	// tools is the list of tools; without it there is one for each result.
	tools string
}

func (s script) serve() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		if answer := s.answer(in.Bytes()); answer != "" {
			fmt.Println(answer)
		}
	}
}

// answer returns the answer to a message, or "".
func (s script) answer(message []byte) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil {
		return ""
	}
	reply := func(result string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "initialize":
		return reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}`)
	case "ping":
		return reply(`{}`)
	case "tools/list":
		return reply(`{"tools":[` + s.list() + `]}`)
	case "tools/call":
		switch result := s.all()[m.Params.Name]; string(result) {
		case `"hang"`:
			return ""
		case `"closing"`:
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"the mailbox is closed"}}`, m.ID)
		case `"exit"`:
			os.Exit(5)
		case `"deaf"`:
			time.Sleep(time.Hour)
		case "":
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool"}}`, m.ID)
		default:
			return reply(string(result))
		}
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
}

func (s script) all() (results map[string]json.RawMessage) {
	if err := json.Unmarshal([]byte(s.results), &results); err != nil {
		panic(err)
	}
	return results
}

func (s script) list() string {
	if s.tools == "" {
		s.tools = os.Getenv("TOOLS")
	}
	if s.tools != "" {
		return s.tools
	}
	var list []string
	for name := range s.all() {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	return strings.Join(list, ",")
}
