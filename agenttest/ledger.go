// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// CallLog is a file that records which tool calls began and which ended,
// independently of sessions. Each line is on disk before the tool continues, so the
// file is correct even if the process is killed. Several processes may write to one
// file.
type CallLog struct{ file *os.File }

// OpenLedger opens the ledger in a file, and creates the file if necessary.
func OpenLedger(path string) (*CallLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &CallLog{f}, nil
}

// Close closes the file.
func (l *CallLog) Close() error { return l.file.Close() }

const (
	ledgerBegan = "began "
	ledgerEnded = "ended "
)

func (l *CallLog) write(what, key string) error {
	if _, err := l.file.WriteString(what + key + "\n"); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return l.file.Sync()
}

// CallKey returns the key of a call: its session, and its data in the log.
func CallKey(session string, turn int, callID string) string {
	return fmt.Sprintf("%s turn %d %s", session, turn, callID)
}

type ledgerKey struct{}

// KeyOf returns the key of the running call, or "" if the agent does not use
// [CallLog.Hooks].
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(ledgerKey{}).(string)
	return key
}

// Hooks returns hooks that give tools the keys of their calls. Subagents need these
// hooks too.
func (l *CallLog) Hooks() agent.Hooks {
	return agent.Hooks{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		return context.WithValue(ctx, ledgerKey{}, CallKey(c.Session, c.Turn, c.Call.ID)), nil
	}}
}

// Tool returns t with a ledger entry before and after each call, however it ends.
func (l *CallLog) Tool(t tool.Tool) tool.Tool { return &ledgerTool{t, l} }

type ledgerTool struct {
	tool   tool.Tool
	ledger *CallLog
}

func (t *ledgerTool) Definition() item.Tool         { return t.tool.Definition() }
func (t *ledgerTool) Annotations() tool.Annotations { return tool.AnnotationsOf(t.tool) }

func (t *ledgerTool) Run(ctx context.Context, c tool.Call) (res tool.Result, err error) {
	key := KeyOf(ctx)
	if key == "" {
		return tool.Result{}, errors.New("ledger: the agent lacks the ledger's Hooks")
	}
	if err := t.ledger.write(ledgerBegan, key); err != nil {
		return tool.Result{}, err
	}
	defer func() { err = errors.Join(err, t.ledger.write(ledgerEnded, key)) }()
	return t.tool.Run(ctx, c)
}

// CallCounts counts how often a call began and ended.
type CallCounts struct{ Began, Ended int }

// ReadCallLog reads the ledger in a file, by [CallKey]. It ignores an incomplete last
// line, whose writer did not get further.
func ReadCallLog(path string) (map[string]CallCounts, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	ran := map[string]CallCounts{}
	for line := range bytes.Lines(data) {
		text, whole := strings.CutSuffix(string(line), "\n")
		if !whole {
			break
		}
		if key, ok := strings.CutPrefix(text, ledgerBegan); ok {
			r := ran[key]
			r.Began++
			ran[key] = r
		} else if key, ok := strings.CutPrefix(text, ledgerEnded); ok {
			r := ran[key]
			r.Ended++
			ran[key] = r
		} else {
			return nil, fmt.Errorf("ledger: what is %q?", text)
		}
	}
	return ran, nil
}
