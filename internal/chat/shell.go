// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
)

// This file is about the shell lines of a chat, which begin with an exclamation mark.

// ranHead begins the message that tells the model about a shell line of the person's.
const ranHead = "I ran a command myself, for you to know. The command and its output:\n\n$ "

// shellLine runs a command line of the person's, in the sandbox and by the rules about run_command,
// and keeps its output for the next message: a command is no question, so nothing is sent yet.
func (t *dialogue) shellLine(ctx context.Context, text string) {
	line := strings.TrimSpace(strings.TrimPrefix(text, "!"))
	if line == "" {
		fmt.Fprintln(t.std.Err, "!! write a command line behind !, such as ! git status")
		return
	}
	out, err := t.runTyped(ctx, line)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(t.std.Err, "antiphon: stopped; the command did not run")
	case err != nil:
		t.warn(err)
	case out.Failure == tool.NotRun:
		fmt.Fprintln(t.std.Err, "!! "+show.Printable(out.Error))
	default:
		text := out.Content.Display()
		shown := text
		if out.Failed {
			_, shown, _ = strings.Cut(text, "\n\noutput:\n")
		}
		for line := range strings.Lines(shown) {
			fmt.Fprintln(t.std.Err, "  "+show.Printable(strings.TrimRight(line, "\r\n")))
		}
		if out.Failed {
			fmt.Fprintln(t.std.Err, "!! "+show.Printable(out.Error))
		}
		fmt.Fprintln(t.std.Err, "  (this goes with your next message)")
		t.ran = append(t.ran, ranHead+line+"\n"+text)
		t.keepRan()
	}
}

// runTyped runs the line; Esc ends it.
func (t *dialogue) runTyped(ctx context.Context, line string) (tool.Outcome, error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer t.face.working(stop, nil)()
	a, err := t.host.Agent(work)
	if err != nil {
		return tool.Outcome{}, err
	}
	t.plans(a)
	id := "typed-" + strings.ToLower(rand.Text()[:8])
	t.face.Wait(show.CallKey(id), "$ "+show.Shorten(show.Visible(line), 100))
	defer t.face.Done(show.CallKey(id))
	return t.host.Command(work, id, line)
}

// ranLine returns the line of a message about a shell line, as it was typed, and reports whether it
// is one.
func ranLine(text string) (line string, ok bool) {
	rest, ok := strings.CutPrefix(text, ranHead)
	line, _, _ = strings.Cut(rest, "\n")
	return "! " + line, ok
}

// keepRan keeps what waits for the next message beside the draft, so that it survives the program. A
// store that is encrypted keeps secrets that a file beside it would tell.
func (t *dialogue) keepRan() {
	path := t.draft()
	if path == "" || t.host != nil && store.Encrypted(t.host.Store) {
		return
	}
	path += ".ran"
	if len(t.ran) == 0 {
		_ = os.Remove(cmp.Or(t.ranAt, path))
		t.ranAt = ""
		return
	}
	text, err := json.Marshal(t.ran)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".part", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		fmt.Fprintln(t.std.Err, "!! the output is lost if you leave before: "+show.Printable(t.env.Hide(err.Error())))
		return
	}
	if t.ranAt != "" && t.ranAt != path {
		_ = os.Remove(t.ranAt) // what it held has moved
	}
	t.ranAt = path
}

// mostRan is how many bytes of shell lines are read of the file that keeps them.
const mostRan = 64 << 20

// recallRan takes what waits for the next message from an earlier chat.
func (t *dialogue) recallRan() {
	path := t.draft()
	if path == "" || t.ranAt != "" || len(t.ran) > 0 {
		return
	}
	text, err := private.ReadFile(path+".ran", mostRan)
	if err != nil || json.Unmarshal(text, &t.ran) != nil {
		return
	}
	t.ranAt = path + ".ran"
	for _, text := range t.ran {
		if line, ok := ranLine(text); ok {
			fmt.Fprintf(t.std.Err, "antiphon: the output of %s goes with your next message\n", show.Shorten(show.Visible(line), 100))
		}
	}
}
