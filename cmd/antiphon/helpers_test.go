// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// testKey looks like a key and must appear nowhere.
const testKey = "sk-test-0123456789-never-to-be-seen"

// outcome is what a run of the program left behind.
type outcome struct {
	code     int
	out, err string
}

// program runs the program in this process, with a key in its environment and
// nothing on standard input. Wherever the key appears, the test fails.
func program(t *testing.T, args ...string) outcome {
	t.Helper()
	return programEnv(t, []string{"OPENAI_API_KEY=" + testKey}, args...)
}

func programEnv(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, env, stdio{strings.NewReader(""), &stdout, &stderr})
	o := outcome{code, stdout.String(), stderr.String()}
	noKey(t, "standard output", o.out)
	noKey(t, "standard error", o.err)
	return o
}

// B5 J6
func noKey(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, testKey) {
		t.Errorf("the key is in %s:\n%s", where, text)
	}
}

// messages returns the lines in which the program itself speaks, without the one
// that says who answers.
func (o outcome) messages() (list []string) {
	for line := range strings.Lines(o.err) {
		if strings.HasPrefix(line, "antiphon: ") && !strings.Contains(line, " answers (profile ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// opener opens databases with a driver.
func opener(driver string) sqlstore.Opener {
	return func(dsn string) (*sql.DB, error) { return sql.Open(driver, dsn) }
}

// write makes a file in a folder.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns a file's text, "" if there is none.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// reader makes a folder with an agent that can read, and returns its path.
func reader(t *testing.T) (agent string) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "note.txt"), "a note\n")
	return write(t, filepath.Join(dir, "agent.md"), `<config model="test-model"/>
<system>Be brief.</system>
<tool name="read_file"><read id="here" path="${prompt_dir}"/></tool>
<tool name="append_to_file"/>
<user>What does note.txt say?</user>
`)
}
