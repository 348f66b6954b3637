// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/internal/variables"
)

// notifier is how a chat tells its person something who looks at another window.
type notifier struct {
	kind    string   // of tui.Notices
	command []string // to run instead, or nil
}

// runs begins a command of the person's in the setting notify.
const runs = "command:"

var notifyHint = "it is " + strings.Join(tui.Notices, ", ") + ", or " + runs + "PROGRAM ARGUMENTS, such as " + runs + "notify-send"

// parseNotify reads the setting notify.
func parseNotify(value string) (notifier, error) {
	line, isCommand := strings.CutPrefix(value, runs)
	words := strings.Fields(line)
	switch {
	case isCommand && len(words) > 0:
		return notifier{command: words}, nil
	case value == "" || slices.Contains(tui.Notices, value):
		return notifier{kind: value}, nil
	}
	return notifier{}, fmt.Errorf("notify is %q", value)
}

// notifyTime is how long the command of a notice may run.
const notifyTime = 10 * time.Second

// noticeVariables are variables that programs need to reach a person's desktop.
var noticeVariables = []string{
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE",
	"TERM", "TMUX", "TMUX_PANE", "SSH_CONNECTION", "SSH_TTY",
}

// teller returns a function that runs the command with a text as its last argument, and returns
// at once. The command is the person's own, so it runs without a sandbox, but it gets neither keys
// nor the terminal. A problem is told once.
func (n notifier) teller(env host.Environment, problem func(string)) func(text string) {
	var once sync.Once
	return func(text string) {
		go func() {
			ctx, end := context.WithTimeout(context.Background(), notifyTime)
			defer end()
			cmd := exec.CommandContext(ctx, n.command[0], append(slices.Clone(n.command[1:]), "antiphon: "+text)...) //nolint:gosec // the person's own setting
			cmd.Env = variables.Take(env.Lookup, noticeVariables...)
			cmd.WaitDelay = time.Second
			if err := cmd.Run(); err != nil {
				once.Do(func() { problem(fmt.Sprintf("the command of notify failed: %s: %s", n.command[0], err)) })
			}
		}()
	}
}
