// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Table holds profiles and models: the built-in ones and the additions and changes of a file, see
// [LoadProfiles]. A nil *Table holds only the built-in ones. A Table is immutable and safe for
// concurrent use.
type Table struct {
	profiles []Profile // searched before the built-in ones
	models   []Model
}

// all yields every profile. Profiles from a file come first and so take precedence. It yields
// pointers because a profile is large.
func (t *Table) all(yield func(*Profile) bool) {
	if t != nil {
		for i := range t.profiles {
			if !yield(&t.profiles[i]) {
				return
			}
		}
	}
	for i := range profiles {
		if t.replaced(profiles[i].Name) {
			continue
		}
		if !yield(&profiles[i]) {
			return
		}
	}
}

// replaced reports whether the table's file defines the profile.
func (t *Table) replaced(name string) bool {
	return t != nil && slices.ContainsFunc(t.profiles, func(p Profile) bool { return p.Name == name })
}

// Detect returns the profile for a base URL. It compares host, port and path segments. For an
// unknown endpoint it returns the profile "careful".
func (t *Table) Detect(base *url.URL) Profile {
	var careful Profile
	for p := range t.all {
		if slices.ContainsFunc(p.Hosts, func(pattern string) bool { return matchBase(pattern, base) }) {
			return *p
		}
		if p.Name == "careful" {
			careful = *p
		}
	}
	return careful
}

// DetectServer returns the profile for the Server header of an answer.
func (t *Table) DetectServer(server string) (Profile, bool) {
	product, _, _ := strings.Cut(strings.TrimSpace(server), "/")
	if product == "" {
		return Profile{}, false
	}
	for p := range t.all {
		if slices.ContainsFunc(p.Servers, func(s string) bool { return strings.EqualFold(s, product) }) {
			return *p, true
		}
	}
	return Profile{}, false
}

// ByName returns the profile with the given name. The error for an unknown name lists the known
// names.
func (t *Table) ByName(name string) (Profile, error) {
	for p := range t.all {
		if p.Name == name {
			return *p, nil
		}
	}
	return Profile{}, fmt.Errorf("unknown profile %q; the profiles are %s", name, strings.Join(t.Names(), ", "))
}

// Names returns the names of all profiles, sorted.
func (t *Table) Names() []string {
	var names []string
	for p := range t.all {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// Model returns the description of a model. It looks for the exact name first, then for the name
// without its provider, the date of its snapshot, or the prefix and suffix of a fine-tuned model.
// Other parts of a name must match: my-gpt-5-clone is not known.
func (t *Table) Model(name string) (Model, bool) {
	for _, n := range []string{name, bareModel(name)} {
		if t != nil {
			if m, ok := findModel(t.models, n); ok {
				return m, true
			}
		}
		if m, ok := findModel(models, n); ok {
			return m, true
		}
	}
	return Model{}, false
}

func findModel(list []Model, name string) (Model, bool) {
	for i := range list {
		if slices.ContainsFunc(list[i].Names, func(known string) bool { return matchModel(known, name) }) {
			return list[i], true
		}
	}
	return Model{}, false
}

// Clone returns a copy that shares no memory with p.
func (p Profile) Clone() Profile {
	for _, list := range p.lists() {
		*list = slices.Clone(*list)
	}
	p.Header, p.SocketHeader = maps.Clone(p.Header), maps.Clone(p.SocketHeader)
	p.Set, p.Roles = maps.Clone(p.Set), maps.Clone(p.Roles)
	p.Dialects = maps.Clone(p.Dialects)
	for api, settings := range p.Dialects {
		p.Dialects[api] = maps.Clone(settings)
	}
	return p
}

func (p *Profile) lists() []*[]string {
	return []*[]string{&p.Hosts, &p.Servers, &p.APIs, &p.Omit, &p.Refuse, &p.Efforts, &p.Items, &p.OmitInItems, &p.Parts, &p.Tools, &p.Windows}
}

// matchBase reports whether a base URL matches a pattern of [Profile.Hosts].
func matchBase(pattern string, base *url.URL) bool {
	if base == nil {
		return false
	}
	host, path, _ := strings.Cut(pattern, "/")
	return matchHost(host, base) && matchPath(path, base.EscapedPath())
}

func matchHost(pattern string, base *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(base.Hostname(), "."))
	if name, port, ok := cutPort(pattern); ok {
		if base.Port() != port {
			return false
		}
		if pattern = name; pattern == "" {
			return host != ""
		}
	}
	if strings.HasPrefix(pattern, ".") {
		return strings.HasSuffix(host, pattern) && len(host) > len(pattern)
	}
	return host == strings.ToLower(strings.Trim(pattern, "[]"))
}

// cutPort splits a host and its port. It also handles IPv6 addresses, which contain colons and are
// written in brackets.
func cutPort(pattern string) (host, port string, ok bool) {
	at := strings.LastIndexByte(pattern, ':')
	if at < 0 || strings.HasSuffix(pattern, "]") {
		return pattern, "", false
	}
	return pattern[:at], pattern[at+1:], true
}

// matchPath compares whole segments. A path with . or .. segments does not match, because only the
// server knows where it leads.
func matchPath(pattern, path string) bool {
	pattern = strings.Trim(pattern, "/")
	if pattern == "" {
		return true
	}
	want := strings.Split(pattern, "/")
	have := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(have) < len(want) || slices.ContainsFunc(have, func(s string) bool { return s == "." || s == ".." }) {
		return false
	}
	return slices.Equal(have[:len(want)], want)
}

func byName(name string) Profile {
	for _, p := range profiles {
		if p.Name == name {
			return p
		}
	}
	panic("endpoint: no profile " + name)
}
