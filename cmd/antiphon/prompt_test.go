// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestPromptAndInput: nothing that a person gives is dropped, and what cannot be
// sent is an error. U2
func TestPromptAndInput(t *testing.T) {
	for _, c := range []struct {
		name, prompt, in, want, problem string
		empty                           bool
	}{
		{name: "both", prompt: "Only security, please", in: "+ a\n+ b\n", want: "Only security, please\n\n+ a\n+ b"},
		{name: "prompt alone", prompt: "Hi", want: "Hi"},
		{name: "blank input", prompt: "Hi ", in: " \n", want: "Hi "},
		{name: "input alone", in: "  a\n\n", want: "  a\n"},
		{name: "dash", prompt: "-", in: "a", want: "a"},
		{name: "blank prompt", prompt: " ", in: "a", want: "a"},
		{name: "nothing", in: "\n", empty: true},
		{name: "not text", prompt: "Hi", in: "\xff", problem: "not UTF-8"},
		{name: "too long", prompt: "Hi", in: strings.Repeat("x", maxInput+1), problem: "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := (&runCommand{Prompt: c.prompt}).prompt(t.Context(), stdio{in: strings.NewReader(c.in), err: io.Discard})
			if c.problem != "" {
				if err == nil || codeOf(err) != exitUsage || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error %v, want one with %q", err, c.problem)
				}
			} else if err != nil || got.text != c.want || got.empty != c.empty {
				t.Errorf("got %q, %v, %v", got.text, got.empty, err)
			}
		})
	}
}

// TestInputNeverEnds: a run with a prompt whose standard input is never closed
// says what it waits for, and can be cancelled. U2
func TestInputNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, hold := net.Pipe()
		defer hold.Close()
		defer in.Close()
		said := cancelOn{cancel: cancel}
		_, err := (&runCommand{Prompt: "Hi"}).prompt(ctx, stdio{in: in, err: &said})
		if !errors.Is(err, context.Canceled) || !strings.Contains(said.String(), "has not ended; its content is sent after the prompt") {
			t.Errorf("%v, and was told %q", err, said.String())
		}
	})
}

// cancelOn cancels when something is written.
type cancelOn struct {
	bytes.Buffer
	cancel func()
}

func (c *cancelOn) Write(p []byte) (int, error) {
	c.cancel()
	return c.Buffer.Write(p)
}

// TestHasInput: files, pipes and sockets are read; a null device is not.
func TestHasInput(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Open(write(t, filepath.Join(t.TempDir(), "in"), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if hasInput(null) || !hasInput(file) || !hasInput(r) || hasInput(nil) {
		t.Error("null device, file, pipe, none:", hasInput(null), hasInput(file), hasInput(r), hasInput(nil))
	}
}

// TestEmptyValues proves that a flag whose value is empty, such as that of a
// variable that is not set, is refused by its name: it would drop what somebody
// meant, such as a model, a rule or a place to keep the conversation. U1 U2
func TestEmptyValues(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<user>hi</user>\n")
	for _, flag := range []string{"--model", "--base-url", "--out", "--store", "--approve-from", "--allow", "--deny", "--price"} {
		if o := program(t, "run", file, flag, ""); o.code != exitUsage || o.out != "" || !strings.Contains(o.err, flag+" is empty") {
			t.Errorf("%s: exit code %d\n%s%s", flag, o.code, o.out, o.err)
		}
	}
	for _, args := range [][]string{{"list", "--owner="}, {"search", "word", "--tag", ""}, {"gc", "--older-than="}} {
		store := filepath.Join(t.TempDir(), "s.db")
		if o := program(t, append([]string{"sessions", "--store", store}, args...)...); o.code != exitUsage || !strings.Contains(o.err, " is empty") {
			t.Errorf("%v: exit code %d\n%s%s", args, o.code, o.out, o.err)
		}
	}
}
