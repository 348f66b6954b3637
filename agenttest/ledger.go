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

// Ledger is a file that says which calls of tools began and which ended, beside
// all that a session says of it. Each line is on the disk before the tool goes
// on, so that it tells of a process that was killed too. Several processes may
// write to one file.
type Ledger struct{ file *os.File }

// OpenLedger opens the ledger in a file, and makes it if there is none.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &Ledger{f}, nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }

const (
	ledgerBegan = "began "
	ledgerEnded = "ended "
)

func (l *Ledger) write(what, key string) error {
	if _, err := l.file.WriteString(what + key + "\n"); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return l.file.Sync()
}

// CallKey names a call: by its session, and by what its log says of it.
func CallKey(session string, turn int, callID string) string {
	return fmt.Sprintf("%s turn %d %s", session, turn, callID)
}

type ledgerKey struct{}

// KeyOf returns the key of the call that is being run, "" if [Ledger.Hooks] are
// not among those of the agent.
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(ledgerKey{}).(string)
	return key
}

// Hooks tells the tools of an agent, and of those nested in it that have these
// hooks too, the keys of their calls.
func (l *Ledger) Hooks() agent.Hooks {
	return agent.Hooks{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		return context.WithValue(ctx, ledgerKey{}, CallKey(c.Session, c.Turn, c.Call.ID)), nil
	}}
}

// Tool returns t with an entry in the ledger before each call of it and another
// one after it, however it ends.
func (l *Ledger) Tool(t tool.Tool) tool.Tool { return &ledgerTool{t, l} }

type ledgerTool struct {
	tool   tool.Tool
	ledger *Ledger
}

func (t *ledgerTool) Definition() item.Tool         { return t.tool.Definition() }
func (t *ledgerTool) Annotations() tool.Annotations { return tool.AnnotationsOf(t.tool) }

func (t *ledgerTool) Run(ctx context.Context, c tool.Call) (res tool.Result, err error) {
	key := KeyOf(ctx)
	if key == "" {
		return tool.Result{}, errors.New("ledger: the agent has not got its Hooks")
	}
	if err := t.ledger.write(ledgerBegan, key); err != nil {
		return tool.Result{}, err
	}
	defer func() { err = errors.Join(err, t.ledger.write(ledgerEnded, key)) }()
	return t.tool.Run(ctx, c)
}

// Ran says how often a call was begun and how often it ended.
type Ran struct{ Began, Ended int }

// ReadLedger reads the ledger in a file, by [CallKey]. A line without its end is
// left out: its writer did not come further.
func ReadLedger(path string) (map[string]Ran, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	ran := map[string]Ran{}
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
