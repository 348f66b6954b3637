// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// storeVariable names the store to which a copy of this test adds grants until it is killed.
const storeVariable = "ANTIPHON_TEST_TRUST_STORE"

// K1: processes that add grants to one store at once, and are killed at any time, lose
// nothing that was reported as kept, and leave a store that can be read and written.
func TestKilledProcesses(t *testing.T) {
	if path := os.Getenv(storeVariable); path != "" {
		addUntilKilled(path)
	}
	store := Open(filepath.Join(t.TempDir(), "trust.jsonl"))
	var kept []string
	for range 4 {
		lines := make(chan []string)
		for range 2 {
			go func() { lines <- killAfter(t, store.Path(), 5) }()
		}
		kept = append(append(kept, <-lines...), <-lines...)
	}
	if err := store.Add(t.Context(), grantAt("last")); err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, g := range list {
		if found[g.Path] {
			t.Errorf("the grant of %s is there twice", g.Path)
		}
		found[g.Path] = true
	}
	for _, path := range append(kept, "last") {
		if !found[path] {
			t.Errorf("the grant of %s was kept and is lost", path)
		}
	}
	if len(kept) < 40 {
		t.Errorf("only %d grants were kept", len(kept))
	}
}

func grantAt(path string) Grant {
	c := Claim{Path: path, Sources: []Source{{Path: path, Hash: strings.Repeat("ab", 32)}}}
	return GrantOf(c, time.Unix(0, 0))
}

func addUntilKilled(path string) {
	store := Open(path)
	for n := 0; ; n++ {
		name := fmt.Sprintf("%d-%d.md", os.Getpid(), n)
		if err := store.Add(context.Background(), grantAt(name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(name)
	}
}

// killAfter starts a copy of this test that adds grants, kills it when it has reported n of
// them, and returns all that it reported.
func killAfter(t *testing.T, path string, n int) (reported []string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcesses$")
	cmd.Env = append(os.Environ(), storeVariable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // a line that the end cut is no report
			break
		}
		if reported = append(reported, strings.TrimSpace(line)); len(reported) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait()
	return reported
}
