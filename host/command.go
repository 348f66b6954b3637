// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/shell"
)

// commandTool is the name of the tool that runs commands, so that rules about it hold for
// those of a person too.
const commandTool = "run_command"

// typedKey marks the context of a typed command, whose answer adds no rule.
type typedKey struct{}

// Command runs a command line that a person typed, in the Workspace and in the sandbox: in the
// profile of the configuration, or the usual one. It is asked about, allowed and denied as a call of
// run_command is, whether or not the file declares that tool, and the audit log records it.
// The session does not. The call's id is in what Live is called with.
func (h *Host) Command(ctx context.Context, id, line string) (out tool.Outcome, err error) {
	a, err := h.Agent(ctx)
	if err != nil {
		return out, err
	}
	watchLast(a)
	folder, err := filepath.Abs(cmp.Or(h.cfg.Workspace, filepath.Dir(h.cfg.File)))
	if err != nil {
		return out, err
	}
	files, err := toolkit.Open(toolkit.Root{Path: folder})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	files.Home(h.cfg.Home)
	file, _ := h.about()
	for _, path := range append(h.cfg.protected(), file) {
		if abs, err := filepath.Abs(path); err == nil && path != "" {
			files.Protect(abs)
		}
	}
	options := shell.Options{Shell: true, Live: h.cfg.Live}
	if h.cfg.Sandbox != "" || len(h.cfg.Hosts) > 0 {
		if options.Sandbox, err = sandbox.Maker(h.cfg.Sandbox, h.cfg.Hosts...); err != nil {
			return out, err
		}
	}
	t, err := shell.RunCommand(commandTool, files, options)
	if err != nil {
		return out, err
	}
	arguments, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		return out, err
	}
	return a.Invoke(context.WithValue(ctx, typedKey{}, true), h.Session, t, tool.Call{ID: cmp.Or(id, "typed-"+rand.Text()[:8]), Name: commandTool, Arguments: string(arguments), Session: h.Session.ID()})
}
