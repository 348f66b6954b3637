// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Roots and logging are deprecated from protocol version 2026-07-28 on. Most
// servers speak an older one and want them.

package mcpbridge

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/tool"
)

// client returns the SDK's client for this session. It offers roots if the caller
// has some, and neither sampling nor elicitation.
func (s *session) client() *mcp.Client {
	b := s.link.bridge
	caps := new(mcp.ClientCapabilities)
	if len(b.opts.Roots) > 0 {
		caps.RootsV2 = new(mcp.RootCapabilities)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "antiphon", Version: "0"}, &mcp.ClientOptions{
		Capabilities:                caps,
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { s.link.announced() },
		ProgressNotificationHandler: s.progress,
		LoggingMessageHandler:       s.log,
	})
	for _, root := range b.opts.Roots {
		c.AddRoots(rootOf(root))
	}
	return c
}

func rootOf(root string) *mcp.Root {
	if strings.Contains(root, "://") {
		return &mcp.Root{URI: root, Name: filepath.Base(root)}
	}
	slashed := filepath.ToSlash(root)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/x
	}
	u := url.URL{Scheme: "file", Path: slashed}
	return &mcp.Root{URI: u.String(), Name: filepath.Base(root)}
}

// maxFollowed is the number of recent calls that are known by their tokens. They are
// kept after their end, because their progress may be read later.
const maxFollowed = 1000

// follow makes the progress token of a call.
func (s *session) follow(call tool.Call) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token++
	s.calls[strconv.Itoa(s.token)] = call
	delete(s.calls, strconv.Itoa(s.token-maxFollowed))
	return strconv.Itoa(s.token)
}

func (s *session) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	s.mu.Lock()
	call, known := s.calls[token]
	s.mu.Unlock()
	if known {
		s.link.bridge.notify(Event{Server: s.link.server.Name, Kind: Progress, Call: call,
			Text: s.said(req.Params.Message), Done: req.Params.Progress, Total: req.Params.Total})
	}
}

func (s *session) log(_ context.Context, req *mcp.LoggingMessageRequest) {
	text, ok := req.Params.Data.(string)
	if !ok {
		b, _ := json.Marshal(req.Params.Data)
		text = string(b)
	}
	s.link.bridge.notify(Event{Server: s.link.server.Name, Kind: Log, Text: s.said(string(req.Params.Level) + ": " + text)})
}
