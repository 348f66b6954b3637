// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// TestSessionForFile proves that the error about a file that is not there names the session of that name, if there is one.
func TestSessionForFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	env := []string{"XDG_DATA_HOME=" + filepath.Join(dir, "data")}
	write(t, "agent.md", "<config model=\"rehearsal\"/>\n")
	if o := programEnv(t, env, "run", "agent.md", "--session", "work", "one"); o.code != exitOK {
		t.Fatal(o.err)
	}
	own := environment{"XDG_DATA_HOME": filepath.Join(dir, "data")}
	for file, hint := range map[string]bool{"work": true, "nothing": false, "agent.md": false, "./work": false, "": false} {
		c := &chatCommand{File: file}
		err := c.meant(t.Context(), own, fmt.Errorf("open: %w", fs.ErrNotExist))
		if got := strings.Contains(err.Error(), "; a session has this name: antiphon chat --attach work opens it"); got != hint || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", file, err)
		}
	}
	if err := (&chatCommand{File: "work"}).meant(t.Context(), own, nil); err != nil {
		t.Error(err)
	}
}

// TestChatFlags proves that what the flags say about the first prompt and the model is part of the conversation. P5
func TestChatFlags(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file, cold := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n"), 0.25
	write(t, "notes.txt", "three words here")
	c := &chatCommand{File: file, System: "Be brief.", Files: []string{"notes.txt"}, replyFlags: replyFlags{Effort: "low", Temperature: &cold}, Session: "work"}
	cfg, err := c.config(t.Context(), stdio{err: io.Discard}, environment{"XDG_DATA_HOME": dir}, settings{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.System != "Be brief." || cfg.Effort != "low" || cfg.Temperature != &cold || cfg.Host.Session != "work" || cfg.Host.File != file || cfg.Data != filepath.Join(dir, "antiphon") {
		t.Errorf("%+v", cfg)
	}
	if len(cfg.Parts) != 1 || !strings.Contains(cfg.Parts[0].(*item.InputText).Text, "three words here") {
		t.Errorf("the first prompt goes with %v", cfg.Parts)
	}
	c.Last = true
	if cfg, err = c.config(t.Context(), stdio{err: io.Discard}, environment{"XDG_DATA_HOME": dir}, settings{}); err != nil || cfg.Host.Session != "" || !cfg.Host.Last {
		t.Errorf("%v: with --last it is the session %q", err, cfg.Host.Session)
	}
}
