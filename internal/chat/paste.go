// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/variables"
)

// This file reads the clipboard for Ctrl-V. The terminal's own key pastes text only.

// clipboard is a program that prints the clipboard: as a picture, and as text.
type clipboard struct{ picture, text []string }

// clipboards are the programs that are tried, in their order.
var clipboards = []clipboard{
	{[]string{"wl-paste", "--type", "image/png"}, []string{"wl-paste", "--no-newline"}},
	{[]string{"xclip", "-selection", "clipboard", "-target", "image/png", "-out"}, []string{"xclip", "-selection", "clipboard", "-out"}},
	{[]string{"pngpaste", "-"}, []string{"pbpaste"}},
}

const (
	pasteTime  = 3 * time.Second
	mostPasted = 20 << 20 // bytes
	keepPasted = 24 * time.Hour
)

var (
	errNoClipboard = errors.New("the clipboard cannot be read: that needs wl-paste, xclip, or pbpaste and pngpaste; the terminal's own key pastes text")
	errNothingHeld = errors.New("the clipboard holds neither text nor a picture")
)

// pngHead is how a PNG file begins.
const pngHead = "\x89PNG\r\n\x1a\n"

// pasted returns what Ctrl-V puts into the draft: text, or the name of a file with the picture.
func (t *dialogue) pasted() (string, error) {
	there := false
	for _, c := range clipboards {
		if picture, err := t.printed(c.picture); err == nil && bytes.HasPrefix(picture, []byte(pngHead)) {
			return t.keepPicture(picture)
		}
		text, err := t.printed(c.text)
		if there = there || !errors.Is(err, exec.ErrNotFound); err == nil && len(text) > 0 {
			return strings.ToValidUTF8(string(text), "\ufffd"), nil
		}
	}
	if !there {
		return "", errNoClipboard
	}
	return "", errNothingHeld
}

// printed runs a program of the clipboard.
func (t *dialogue) printed(line []string) ([]byte, error) {
	ctx, end := context.WithTimeout(context.Background(), pasteTime)
	defer end()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // one of clipboards
	cmd.Env = variables.Take(t.env.Lookup, noticeVariables...)
	cmd.WaitDelay = time.Second
	out := &limited{most: mostPasted}
	cmd.Stdout = out
	err := cmd.Run()
	return out.held, err
}

// limited takes so many bytes.
type limited struct {
	held []byte
	most int
}

func (w *limited) Write(b []byte) (int, error) {
	if len(w.held)+len(b) > w.most {
		return 0, errors.New("the clipboard holds too much")
	}
	w.held = append(w.held, b...)
	return len(b), nil
}

// keepPicture writes a picture beside the drafts, and removes those of days before. The message that
// names it holds the picture itself.
func (t *dialogue) keepPicture(picture []byte) (string, error) {
	if t.conf.Data == "" {
		return "", errors.New("the home folder, which holds pasted pictures, is not known; set HOME")
	}
	folder := filepath.Join(t.conf.Data, "pasted")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepPasted {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
	path := filepath.Join(folder, strings.ToLower(rand.Text()[:12])+".png")
	if strings.ContainsAny(path, " \n") {
		return "", errors.New("the folder of data has a blank in its name, so a picture in it cannot be named behind @")
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	t.pictures.Store(real, true)
	return "@" + path + " ", nil
}
