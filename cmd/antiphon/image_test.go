// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/alecthomas/kong"
)

// The Dockerfile builds a package that is there, with flags that go has, and gives the program
// the version of the build: the folder .git, which go would ask for it, is left out. The program is not
// compiled again for this, and the image is not built, because that needs Docker.
func TestDockerfile(t *testing.T) {
	root := filepath.Join("..", "..")
	m := regexp.MustCompile(`(?m)^RUN (.*go build) (.*)$`).FindStringSubmatch(read(t, filepath.Join(root, "Dockerfile")))
	if m == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", m[1]+" -n "+m[2])
	cmd.Dir, cmd.Env = root, append(os.Environ(), "VERSION=v1.2.3-test")
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "-X main.version=v1.2.3-test") {
		t.Errorf("%v\n%.2000s", err, text)
	}
	if !strings.Contains(read(t, filepath.Join(root, "Dockerfile")), "ARG VERSION\nRUN ") || !strings.Contains(read(t, filepath.Join(root, "compose.yaml")), "args: {VERSION: ") {
		t.Error("the image does not take the version of the build")
	}
}

// What the image and the compose file run are commands that the program has.
func TestImageCommands(t *testing.T) {
	root := filepath.Join("..", "..")
	found := 0
	for _, name := range []string{"Dockerfile", "compose.yaml"} {
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:CMD|command:) (\[.*\])$`).FindAllStringSubmatch(read(t, filepath.Join(root, name)), -1) {
			found++
			var args []string
			if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
				t.Fatal(err)
			}
			var cli grammar
			parser, err := kong.New(&cli)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: %v: %v", name, args, err)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d commands", found)
	}
}
