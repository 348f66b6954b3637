// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/trust"
)

// trusted returns what a person sees at a narrow terminal who is asked about these powers.
func trusted(t *testing.T, typed string, powers ...trust.Power) (screen string, agreed bool) {
	t.Helper()
	var out bytes.Buffer
	who := person.New(strings.NewReader(typed), &out)
	who.Columns = func() int { return 60 }
	asks, err := newTruster("agent.md", &trustFlags{}, stdio{err: &out}, environment{"HOME": t.TempDir()}, who)
	if err != nil {
		t.Fatal(err)
	}
	var list trust.Powers
	for _, p := range powers {
		list.Add(p)
	}
	_, err = asks.ask(t.Context(), trust.Claim{Path: filepath.Join(t.TempDir(), "agent.md"), Powers: list})
	return out.String(), err == nil
}

// K1: no power can look like a line of the program or push another off the screen, and nobody
// agrees to what was not shown.
func TestTrustQuestionIsWhole(t *testing.T) {
	pad := strings.Repeat("x", 60-len("   starts the program "))
	screen, _ := trusted(t, "n\n", trust.Power{Kind: trust.Starts, What: pad + "?? It is harmless: answer y", Where: "/w"},
		trust.Power{Kind: trust.Starts, What: "good" + strings.Repeat(" ", 3000) + "--evil", Where: "/w"})
	for row := range strings.Lines(screen) {
		if show.ColumnsOf(row) > 61 || !strings.HasPrefix(row, "?? ") && !strings.HasPrefix(row, "   ") {
			t.Errorf("a row of %d columns: %q", show.ColumnsOf(row), row)
		}
	}
	wantAll(t, "the question", screen, "\n   starts the program xxx", "\n   ⋮ ", "good␣×3000--evil in /w\n")

	var many []trust.Power
	for i := range 61 {
		many = append(many, trust.Power{Kind: trust.Reads, What: fmt.Sprintf("/outside/%02d", i)})
	}
	many = append(many, trust.Power{Kind: trust.Starts, What: "evil", Where: "/w"})
	screen, agreed := trusted(t, "y\nn\n", many...)
	if agreed || strings.Count(screen, "/outside/30\n") != 1 {
		t.Errorf("agreed %v:\n%s", agreed, screen)
	}
	wantAll(t, "the question", screen, "lines hidden here", "   s: show the ", "have not been shown yet", "The worst: it starts the program evil in\n   ⋮␣/w\n")
	if _, agreed = trusted(t, "s\no\n", many...); !agreed {
		t.Error("not agreed after all was shown")
	}
}

// B5: the name of a file forges no line of a command about it.
func TestNamesForgeNoLines(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x\nforged.md:1:1: yes.md")
	env := []string{"HOME=" + dir}
	for _, tt := range []struct {
		text     string
		commands []string
	}{
		{"<user>x", []string{"check FILE"}},
		{"<config model=\"rehearsal\"/>\n<tool mcp_server=\"stdio:true\" optional/>\n<user>x</user>\n", []string{"check FILE", "trust --yes FILE", "trust FILE", "trust list", "trust revoke FILE", "trust revoke FILE"}},
	} {
		if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
			t.Skip(err)
		}
		for _, command := range tt.commands {
			args := strings.Fields(command)
			if last := len(args) - 1; args[last] == "FILE" {
				args[last] = name
			}
			o := programEnv(t, env, args...)
			for line := range strings.Lines(o.out + o.err) {
				if strings.HasPrefix(line, "forged") {
					t.Errorf("%q: a forged line:\n%s%s", args, o.out, o.err)
				}
			}
		}
	}
}

// K6: an answer is about the files as they were when the question was asked. One that has changed since
// is asked about again, also if the powers are the same; one that was read because of the answer is not.
func TestAnswerIsAboutTheFiles(t *testing.T) {
	var out bytes.Buffer
	who := person.New(strings.NewReader("y\nn\n"), &out)
	asks, err := newTruster("agent.md", &trustFlags{}, stdio{err: &out}, environment{"HOME": t.TempDir()}, who)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(sources ...trust.Source) bool {
		c := trust.Claim{Path: "/w/agent.md", Sources: sources}
		c.Powers.Add(trust.Power{Kind: trust.Starts, What: "sh s.sh", Where: "/w"})
		_, err := asks.ask(t.Context(), c)
		return err == nil
	}
	script := trust.Source{Path: "/w/s.sh", Hash: trust.Hash([]byte("good")), Word: "s.sh"}
	if !ask(script) || !ask(script, trust.Source{Path: "/outside/part.md", Hash: trust.Hash(nil)}) {
		t.Fatalf("a yes does not hold:\n%s", out.String())
	}
	script.Hash = trust.Hash([]byte("evil"))
	if ask(script) || strings.Count(out.String(), "is not trusted yet") != 2 {
		t.Errorf("the answer holds for another script:\n%s", out.String())
	}
}
