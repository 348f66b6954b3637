// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
)

// A11: a system without a sandbox is said once, for files that run programs, and a profile
// that it cannot give is refused.
func TestSystemWithoutSandbox(t *testing.T) {
	was := available
	available = func() sandbox.Support { return sandbox.Support{Missing: []string{"this kernel has nothing"}} }
	t.Cleanup(func() { available = was })
	for tools, profiles := range map[string]map[string]int{
		`<tool name="run_command"/><tool name="shell"/>`: {"": 1, sandbox.NameFull: 0, sandbox.NameWorkspace: -1, "everything": -1},
		`<tool name="read_file"/>`:                       {"": 0},
	} {
		path := filepath.Join(t.TempDir(), "a.md")
		if err := os.WriteFile(path, []byte("<config model=\"rehearsal\"/>\n"+tools+"\n<user>go</user>\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for profile, want := range profiles {
			said := 0
			h, err := Open(t.Context(), Config{File: path, Sandbox: profile, FrontEnd: FrontEnd{Notify: func(n Notice) {
				if n.Kind == NoticeSandbox && strings.Contains(n.Text, "with all your permissions, and each command is asked about, unless its profile is full: this kernel has nothing") {
					said++
				}
			}}})
			var wrong *ConfigError
			if want < 0 != errors.As(err, &wrong) || want >= 0 && said != want {
				t.Errorf("%s with %q: %v, said %d times", tools, profile, err, said)
			}
			if h != nil {
				_ = h.Close()
			}
		}
	}
}

// TestNoServersNoWait: nobody is told to wait for the servers of a file that has none.
func TestNoServersNoWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte("<config model=\"rehearsal\"/>\n<user>go</user>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), Config{File: path, FrontEnd: FrontEnd{Notify: func(n Notice) {
		if n.Kind == NoticeWaiting && strings.Contains(n.Text, "servers") {
			t.Errorf("%+v", n)
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Agent(t.Context()); err != nil {
		t.Error(err)
	}
	_ = h.Close()
}

// A11: hosts are for the profile hosts, and a mistake names the setting.
func TestHostsOfConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte("<config model=\"rehearsal\"/>\n<tool name=\"run_command\"/>\n<user>go</user>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := SettingNames{"Sandbox": "--sandbox PROFILE", "Hosts": "--hosts HOST"}
	for _, c := range []struct {
		profile string
		hosts   []string
		want    string // of the error
	}{
		{"", []string{"https://a.example"}, `--hosts: the host "https://a.example" is not the name of a host`},
		{sandbox.NameHosts, nil, "--sandbox: the profile hosts names no host"},
		{"", []string{}, ""},
		{sandbox.NameFull, []string{"a.example"}, "--hosts: hosts are for the profile hosts, and the profile is full"},
		{"ful", nil, `--sandbox: there is no profile "ful"; the profiles are read-only, workspace, hosts, network, full`},
		{"ful", []string{"a.example"}, `--sandbox: there is no profile "ful"`},
	} {
		h, err := Open(t.Context(), Config{File: path, Sandbox: c.profile, Hosts: c.hosts, FrontEnd: FrontEnd{Terms: names}})
		var wrong *ConfigError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
		if h != nil {
			_ = h.Close()
		}
	}
}
