// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
)

// folder writes files, by their paths, and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var whole = map[string]string{
	"team/agent.md":       "<config model=\"rehearsal:talk.script\"/>\n<import src=\"parts/tone.md\"/>\n<system>Read <doc src=\"facts.txt\" local/></system>\n<tool name=\"helper\" agent=\"helper.md\" local description=\"Helps.\"/>\n<tool name=\"count\" command=\"./count.sh\" approval=\"allow\" description=\"Counts.\"/>\n",
	"team/parts/tone.md":  "<system>Be brief.</system>\n",
	"team/facts.txt":      "Water is wet.\n",
	"team/helper.md":      "<system>Help.</system>\n",
	"team/count.sh":       "#!/bin/sh\necho 3\n",
	"team/talk.script":    "turn\n  say Hello.\n",
	"team/not-included":   "x",
	"elsewhere/other.txt": "y",
	"work/empty":          "",
}

// D3: a definition is the agent's file with all that it includes, the same wherever the
// folder lies, and another one as soon as anything of it changes.
func TestDefinition(t *testing.T) {
	dir := folder(t, whole)
	d, err := agentfile.Pack(t.Context(), filepath.Join(dir, "team", "agent.md"), agentfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range d.Files {
		names = append(names, f.Path)
		if f.Executable != (f.Path == "count.sh") {
			t.Errorf("%s: executable %v", f.Path, f.Executable)
		}
	}
	if want := []string{"agent.md", "count.sh", "facts.txt", "helper.md", "parts/tone.md", "talk.script"}; !slices.Equal(names, want) || d.Main != "agent.md" {
		t.Errorf("files %q of %s, want %q", names, d.Main, want)
	}
	hash, err := d.Hash()
	if err != nil {
		t.Fatal(err)
	}
	again, err := agentfile.Pack(t.Context(), filepath.Join(folder(t, whole), "team", "agent.md"), agentfile.Options{})
	if h, _ := again.Hash(); err != nil || h != hash {
		t.Errorf("another folder: %s, %v, want %s", h, err, hash)
	}
	again.Program = "antiphon 2"
	if h, _ := again.Hash(); h == hash {
		t.Error("another version of the program has the same hash")
	}

	text, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := agentfile.ParseDefinition(text)
	if h, _ := read.Hash(); err != nil || h != hash {
		t.Errorf("read: %s, %v", h, err)
	}
	state := t.TempDir()
	for range 2 { // it is written once, and checked each time
		path, err := read.Unpack(state)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := agentfile.Pack(t.Context(), path, agentfile.Options{})
		if h, _ := unpacked.Hash(); err != nil || h != hash {
			t.Errorf("unpacked: %s, %v", h, err)
		}
	}

	for name := range whole {
		if !strings.HasPrefix(name, "team/") || name == "team/not-included" {
			continue
		}
		changed := folder(t, whole)
		if err := os.WriteFile(filepath.Join(changed, name), []byte(whole[name]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		other, err := agentfile.Pack(t.Context(), filepath.Join(changed, "team", "agent.md"), agentfile.Options{})
		if h, _ := other.Hash(); err != nil || h == hash {
			t.Errorf("%s changed: %v, the same hash", name, err)
		}
	}
}

// What a definition cannot hold is an error that names it. K2
func TestDefinitionRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		agent string
		more  map[string]string
		want  string

		workspace string
	}{
		"outside":                   {`<system><doc src="../elsewhere/other.txt" local/></system>`, nil, "other.txt is outside of the agent's folder", ""},
		"workspace":                 {`<system><doc src="${workspace}/plan.txt" local/></system>`, map[string]string{"work/plan.txt": "p"}, "plan.txt is outside of the agent's folder", "work"},
		"hidden":                    {`<system><doc src=".env" local/></system>`, map[string]string{"team/.env": "A=b"}, ".env is hidden", ""},
		"private key":               {`<system><doc src="key.txt" local/></system>`, map[string]string{"team/key.txt": "-----BEGIN PRIVATE KEY-----\n"}, "key.txt holds a private key", ""},
		"a folder":                  {`<tool name="t" command="python3 src" approval="allow" description="d"/>`, map[string]string{"team/src/__main__.py": "1"}, "src (a folder)", ""},
		"absolute":                  {`<system><doc src="DIR/team/facts.txt" local/></system>`, nil, "a copy of it would be another agent", ""},
		"a script of the workspace": {`<tool name="t" command="./count.sh" approval="allow" description="d"/>`, nil, "a copy of it would be another agent", ""},
		"a mistake":                 {`<tool name="read_fil"/>`, nil, "read_file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, whole)
			if c.more == nil {
				c.more = map[string]string{}
			}
			c.more["team/agent.md"] = strings.ReplaceAll(c.agent, "DIR", filepath.ToSlash(dir))
			for path, text := range c.more {
				full := filepath.Join(dir, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := agentfile.Pack(t.Context(), filepath.Join(dir, "team", "agent.md"), agentfile.Options{Workspace: filepath.Join(dir, cmp.Or(c.workspace, "team"))})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A folder that somebody has changed is not used, and what anybody may have stored does
// not lead out of its folder.
func TestDefinitionIsChecked(t *testing.T) {
	d, err := agentfile.Pack(t.Context(), filepath.Join(folder(t, whole), "team", "agent.md"), agentfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir string) error{
		"count.sh differs from the agent's definition": func(dir string) error {
			return os.Rename(filepath.Join(dir, "helper.md"), filepath.Join(dir, "count.sh"))
		},
		"facts.txt is gone": func(dir string) error { return os.Remove(filepath.Join(dir, "facts.txt")) },
		"it holds more.md":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "more.md"), nil, 0o600) },
	} {
		state := t.TempDir()
		path, err := d.Unpack(state)
		if err == nil {
			err = change(filepath.Dir(path))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Unpack(state); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	for _, bad := range []string{"../agent.md", "/agent.md", "a/../agent.md", "", "./agent.md"} {
		one := agentfile.Definition{Main: bad, Files: []agentfile.IncludedFile{{Path: bad}}}
		text, err := one.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agentfile.ParseDefinition(text); err == nil {
			t.Errorf("the path %q is accepted", bad)
		}
	}
	for _, bad := range []string{``, `{}`, `{"program":"","main":"a","files":[]}`, ` {"program":"","main":"a","files":[{"path":"a","text":""}]}`, `{"program":"","main":"a","files":[{"path":"a","text":""}],"more":1}`} {
		if _, err := agentfile.ParseDefinition([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
