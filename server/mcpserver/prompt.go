// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/item"
)

// prompt describes the file's messages as a prompt, or returns nil if there are none that
// can be one.
func (a *Agent) prompt() *mcp.Prompt {
	if len(a.promptMessages()) == 0 {
		return nil
	}
	return &mcp.Prompt{
		Name: a.Name, Description: cmp.Or(a.Description, fmt.Sprintf("The instructions of the agent %s.", a.Name)),
		Arguments: []*mcp.PromptArgument{{Name: "task", Description: "What should be done, said after the instructions."}},
	}
}

// promptMessages returns the messages of the file. The protocol knows no instructions, so
// they are the user's.
func (a *Agent) promptMessages() (list []*mcp.PromptMessage) {
	add := func(role mcp.Role, c mcp.Content) { list = append(list, &mcp.PromptMessage{Role: role, Content: c}) }
	for _, it := range a.Messages {
		if it.Type() != item.TypeMessage {
			continue
		}
		m, err := item.As[item.Message](it)
		if err != nil {
			continue
		}
		role := mcp.Role("user")
		if m.Role == item.RoleAssistant {
			role = "assistant"
		}
		if m.Content.IsText() {
			if strings.TrimSpace(m.Content.Text) != "" {
				add(role, &mcp.TextContent{Text: m.Content.Text})
			}
			continue
		}
		for _, part := range m.Content.Parts {
			if img := imageOf(part); img != nil {
				add(role, img)
				continue
			}
			if text := (item.Content{Parts: []item.Part{part}}).Display(); strings.TrimSpace(text) != "" {
				add(role, &mcp.TextContent{Text: text})
			}
		}
	}
	return list
}

// getPrompt returns the file's messages, and the task.
func (a *Agent) getPrompt(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	list := a.promptMessages()
	if task := r.Params.Arguments["task"]; strings.TrimSpace(task) != "" {
		list = append(list, &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: task}})
	}
	return &mcp.GetPromptResult{Description: a.Description, Messages: list}, nil
}
