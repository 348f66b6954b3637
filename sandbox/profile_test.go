// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
	"testing"
)

// A11: profiles are made by name and hosts, each in one form, and a mistake says what to
// write instead.
func TestMaker(t *testing.T) {
	for name, width := range map[string]string{
		NameReadOnly: NameReadOnly, NameWorkspace: NameWorkspace, NameNetwork: NameNetwork, NameFull: NameFull,
	} {
		made, err := Maker(name)
		if err != nil || made("/w").Width() != width || made("/w").Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", NameHosts} {
		made, err := Maker(name, "b.example, *.A.example.", "b.example\n[::1]:80")
		if err != nil {
			t.Fatal(err)
		}
		p := made("/w")
		if got := strings.Join(p.Hosts, " "); got != "*.a.example [::1]:80 b.example" || p.Width() != NameHosts || p.Name != NameHosts || p.check() != nil {
			t.Errorf("%s: %s", p.Width(), got)
		}
	}
	for _, c := range []struct{ name, hosts, want string }{
		{"none", "", `there is no profile "none"; the profiles are read-only, workspace, hosts, network, full`},
		{"", "", "there is no profile"},
		{NameHosts, "", "names no host: write names as in example.com"},
		{"", " ,", "names no host"},
		{NameNetwork, "a.example", "hosts are for the profile hosts, and the profile is network"},
		{NameFull, "a.example", "give one of them"},
		{NameHosts, "a.example, https://b.example", `the host "https://b.example" is not the name of a host`},
		{NameHosts, strings.Repeat("a.example,", mostHosts+1), "names 51 hosts; at most 50"},
	} {
		var hosts []string
		if c.hosts != "" {
			hosts = []string{c.hosts}
		}
		if _, err := Maker(c.name, hosts...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// profileBy makes a profile from its name, or from hosts.
func profileBy(t *testing.T, text string) Profile {
	t.Helper()
	name, hosts := text, []string(nil)
	if !slices.Contains(Names(), text) {
		name, hosts = "", []string{text}
	}
	made, err := Maker(name, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return made("/w")
}

// A11: which profile allows what another one does, and what both allow together.
func TestWidened(t *testing.T) {
	for _, c := range []struct {
		from, by, want string // want is "" if from covers by
	}{
		{"read-only", "workspace", "workspace"},
		{"read-only", "a.example", "a.example"},
		{"workspace", "read-only", ""},
		{"workspace", "a.example", "a.example"},
		{"workspace", "network", "network"},
		{"workspace", "full", "full"},
		{"a.example", "workspace", ""},
		{"a.example", "a.example", ""},
		{"a.example", "a.example:443", "a.example,a.example:443"}, // which may lead to a private address
		{"a.example", "b.example", "a.example,b.example"},
		{"a.example", "b.a.example", "a.example,b.a.example"},
		{"*.a.example", "b.a.example", ""},
		{"*.a.example", "*.b.a.example", ""},
		{"*.a.example", "a.example", "*.a.example,a.example"},
		{"*.a.example", "b.a.example:8443", "*.a.example,b.a.example:8443"},
		{"b.a.example", "*.a.example", "*.a.example,b.a.example"},
		{"a.example:8443", "a.example", "a.example,a.example:8443"},
		{"127.0.0.1", "127.0.0.1:80", ""},
		{"127.0.0.1", "127.0.0.1:8080", "127.0.0.1,127.0.0.1:8080"},
		{"127.0.0.1:80", "127.0.0.1", "127.0.0.1,127.0.0.1:80"},
		{"a.example", "network", "network"},
		{"a.example", "full", "full"},
		{"network", "a.example", ""},
		{"network", "full", "full"},
		{"full", "network", ""},
		{"full", "a.example", ""},
	} {
		from, by := profileBy(t, c.from), profileBy(t, c.by)
		got := from.Widened(by)
		want := from
		if c.want != "" {
			want = profileBy(t, c.want)
		}
		if from.Covers(by) != (c.want == "") || got.Width() != want.Width() || !slices.Equal(got.Hosts, want.Hosts) || got.Name != got.Width() || got.Network != want.Network {
			t.Errorf("%s by %s: %+v", c.from, c.by, got)
		}
		if !got.Covers(by) || !got.Covers(from) {
			t.Errorf("%s by %s: %+v does not cover them", c.from, c.by, got)
		}
	}
	// Other settings stay.
	p := Workspace("/w")
	p.Hidden, p.Read = []string{"/w/key"}, []string{"/r"}
	if q := p.Widened(profileBy(t, "a.example")); !slices.Equal(q.Hidden, p.Hidden) || !slices.Equal(q.Read, p.Read) || q.Limits != p.Limits || len(p.Hosts) > 0 {
		t.Errorf("%+v", q)
	}
}

// A11: an entry covers another one only if every connection that the other one allows is
// allowed by the first.
func TestCoveredHosts(t *testing.T) {
	entries := []string{"a.example", "a.example:443", "a.example:8443", "*.example", "*.a.example", "*.example:8443", "*.example:443", "127.0.0.1", "127.0.0.1:443", "127.0.0.1:8443", "localhost", "localhost:8443"}
	names := []string{"a.example", "b.a.example", "c.example", "127.0.0.1", "localhost", "127.0.0.2"}
	for _, first := range entries {
		for _, second := range entries {
			list, err := parseHosts([]string{first, second})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				for _, port := range []uint16{80, 443, 8443} {
					for _, found := range []string{"1.1.1.1", "10.0.0.1", "169.254.169.254"} {
						one, _ := allowed(list[:1], name, port, addresses(found))
						two, _ := allowed(list[1:], name, port, addresses(found))
						if list[0].covers(list[1]) && len(two) > 0 && len(one) == 0 {
							t.Errorf("%s does not cover %s: %s:%d at %s", first, second, name, port, found)
						}
					}
				}
			}
		}
	}
}

// A11: what was refused names the entry that would allow it, and with the entry it is allowed.
func TestEntriesOfRefusals(t *testing.T) {
	for _, c := range []struct {
		have, name, found string
		port              uint16
		want              string
	}{
		{"x.example", "a.example", "1.1.1.1", 443, "a.example"},
		{"x.example", "A.example.", "1.1.1.1", 80, "a.example"},
		{"x.example", "a.example", "1.1.1.1", 8443, "a.example:8443"},
		{"a.example", "a.example", "10.0.0.1", 443, "a.example:443"},
		{"*.example", "a.example", "127.0.0.1", 80, "a.example:80"},
		{"a.example", "a.example", "169.254.169.254", 80, ""},
		{"a.example", "a.example", "", 80, ""},
		{"x.example", "10.0.0.1", "", 80, "10.0.0.1"},
		{"x.example", "::1", "", 5000, "[::1]:5000"},
		{"x.example", "127.1", "", 80, ""},
		{"x.example", "", "", 80, ""},
	} {
		have, err := parseHosts([]string{c.have})
		if err != nil {
			t.Fatal(err)
		}
		_, err = allowed(have, c.name, c.port, addresses(c.found))
		r, ok := err.(*refusal)
		if !ok || r.entry != c.want {
			t.Errorf("%+v: %v, %+v", c, err, r)
			continue
		}
		if c.want == "" {
			continue
		}
		more, err := parseHosts([]string{c.want})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := allowed(append(have, more...), c.name, c.port, addresses(c.found)); len(list) == 0 {
			t.Errorf("%+v: asking for %s does not help: %v", c, c.want, err)
		}
	}
}

// A11: a program without network prints for which host, in the words of usual programs.
func TestUnresolvedHosts(t *testing.T) {
	for line, want := range map[string]string{
		"curl: (6) Could not resolve host: proxy.golang.org":                                                         "proxy.golang.org",
		"fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com":                      "github.com",
		`go: x: Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org on 127.0.0.53:53: dial udp`:      "proxy.golang.org",
		"npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org": "registry.npmjs.org",
		"wget: unable to resolve host address ‘example.com’":                                                         "example.com",
		"Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)":                             "pypi.org",
		"Err:1 http://deb.debian.org  Temporary failure resolving 'deb.debian.org'":                                  "deb.debian.org",
		"ping: connect: Network is unreachable":                                                                      "",
		"dial tcp 1.2.3.4:80: could not resolve 1.2.3.4":                                                             "",
	} {
		p := Workspace("/")
		d, ok := denialReader{Profile: &p}.denial(line)
		if !ok || d.Permission != PermissionNetwork || d.Host != want || d.Entry != want || want != "" && !strings.HasSuffix(d.Reason, "the network: "+want) {
			t.Errorf("%s: %+v", line, d)
		}
		if p.Hosts = []string{"*.golang.org"}; want == "proxy.golang.org" {
			if d, _ := (denialReader{Profile: &p}).denial(line); d.Host != want || d.Entry != "" || !strings.Contains(d.Reason, "only through its proxy") {
				t.Errorf("%s: %+v", line, d)
			}
		}
	}
}
