// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/chat"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session/store"
)

// settingsFolder returns the folder of a person's settings and agents, or "" if the
// environment names no home.
func settingsFolder(env environment) string {
	dir := env["XDG_CONFIG_HOME"]
	switch {
	case filepath.IsAbs(dir):
	case runtime.GOOS == "windows" && filepath.IsAbs(env["APPDATA"]):
		dir = env["APPDATA"]
	case filepath.IsAbs(env["HOME"]):
		dir = filepath.Join(env["HOME"], ".config")
	default:
		return ""
	}
	return filepath.Join(dir, "antiphon")
}

// settable are the attributes of the settings' <config/>, and the variables that they stand
// for. A variable that is set has precedence.
var settable = map[string]string{"model": "OPENAI_MODEL", "base_url": "OPENAI_BASE_URL", "hangup": "ANTIPHON_HANGUP", "theme": "ANTIPHON_THEME", "notify": "ANTIPHON_NOTIFY", "images": "ANTIPHON_IMAGES", "motion": "ANTIPHON_MOTION", "keys": "ANTIPHON_KEYS", "bind": "ANTIPHON_BIND", "prices": "ANTIPHON_PRICES", "titles": "ANTIPHON_TITLES", "suggest": "ANTIPHON_SUGGEST"}

// settings are what a person wrote for all agents.
type settings struct {
	path  string            // of the file, which may be absent
	there bool              // whether the file exists
	said  map[string]string // the values, by the variable that they stand for
	from  map[string]string // where a value is from that its own variable does not give

	at string // the base URL that the model names for itself, or ""

	// endpoints and models are the names that the person gave to base URLs, and to models with
	// or without an endpoint, as in MODEL@ENDPOINT.
	endpoints, models map[string]string
}

// maxSettings is how large the settings may be, in bytes. A few attributes need a few hundred.
const maxSettings = 64 << 10

// readSettings reads the file config in the folder of the settings. An absent file says
// nothing.
func readSettings(env environment) (s settings, err error) {
	folder := settingsFolder(env)
	if folder == "" {
		return s, nil
	}
	s.path = filepath.Join(folder, "config")
	text, err := private.ReadFile(s.path, maxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, usage(fmt.Errorf("%s decides where your messages and your key go: %w", s.path, err))
	}
	s.there = true
	return s, s.parse(text)
}

// parse reads the one <config/> of a file of settings.
func (s *settings) parse(text []byte) error {
	file, err := chatmd.Parse(s.path, text)
	if err != nil {
		return usage(err)
	}
	s.said = map[string]string{}
	for i, e := range file.Elements {
		bad := func(message, hint string) error {
			return usage(&chatmd.Error{File: s.path, Line: e.Line, Column: e.Column, Message: message, Hint: hint})
		}
		if e.Tag != "config" || i > 0 {
			return bad("settings are one <config/>, and nothing else", `write <config model="NAME" base_url="URL"/>`)
		}
		for _, a := range e.Attrs {
			if message, hint := s.set(a.Name, a.Value); message != "" {
				return bad(message, hint)
			}
		}
		if message, hint := s.misnamed(); message != "" {
			return bad(message, hint)
		}
		if base := s.said["OPENAI_BASE_URL"]; base != "" {
			if s.said["OPENAI_BASE_URL"] = s.endpoint(base); !isBaseURL(s.endpoint(base)) {
				return bad(fmt.Sprintf("base_url is %q", base), "it is a URL such as http://localhost:11434/v1, or a name among endpoints")
			}
		}
		if name, at := s.model(s.said["OPENAI_MODEL"]); name != "" {
			s.said["OPENAI_MODEL"], s.at = name, at
			switch base := s.said["OPENAI_BASE_URL"]; {
			case at == "":
			case base != "" && base != at:
				return bad("the model is asked at "+at+", and base_url is "+base, "leave base_url out, or name a model without an endpoint")
			default:
				s.said["OPENAI_BASE_URL"] = at
			}
		}
	}
	return nil
}

// misnamed finds a model whose endpoint is mistyped: it would be asked at another place than
// the person means. Another text behind an @ may be part of the model's name.
func (s *settings) misnamed() (message, hint string) {
	known := slices.Sorted(maps.Keys(s.endpoints))
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		model := s.models[name]
		at := model[strings.LastIndexByte(model, '@')+1:]
		if at == model || s.endpoints[at] != "" {
			continue
		}
		if slices.ContainsFunc(known, func(e string) bool { return host.Nearly(e, at) }) {
			return fmt.Sprintf("models: %s is %s, and no endpoint is called %s", name, model, at), "endpoints are " + strings.Join(known, ", ")
		}
	}
	return "", ""
}

// set takes an attribute, or says what is wrong with it.
func (s *settings) set(attribute, value string) (message, hint string) {
	name := settable[attribute]
	switch {
	case attribute == "endpoints":
		s.endpoints, message = aliases(value, isBaseURL)
		return message, `write endpoints="NAME=URL NAME=URL", such as local=http://localhost:11434/v1`
	case attribute == "models":
		s.models, message = aliases(value, func(model string) bool { return model != "" })
		return message, `write models="NAME=MODEL NAME=MODEL@ENDPOINT", such as fast=qwen3@local`
	case name == "":
		known := append(slices.Collect(maps.Keys(settable)), "endpoints", "models")
		slices.Sort(known)
		message = attribute + " is not a setting for all agents"
		if i := slices.IndexFunc(known, func(name string) bool { return host.Nearly(attribute, name) }); i >= 0 {
			message += ", did you mean " + known[i] + "?"
		}
		return message, "settings are " + strings.Join(known, ", ") + "; others belong in an agent's file"
	case strings.TrimSpace(value) == "":
		return attribute + " is empty", "give it a value, or leave it out"
	case attribute == "hangup" && value != "detach" && value != "stop":
		return fmt.Sprintf("hangup is %q", value), "it is detach, or stop"
	case attribute == "theme" && !slices.Contains(tui.Themes, value):
		return fmt.Sprintf("theme is %q", value), "themes are " + strings.Join(tui.Themes, ", ")
	case attribute == "images" && !slices.Contains(tui.Pictures, value):
		return fmt.Sprintf("images is %q", value), "it is one of " + strings.Join(tui.Pictures, ", ")
	}
	if problem, hint := chat.Problem(attribute, value); problem != "" {
		return problem, hint
	}
	if attribute == "prices" {
		if _, err := pricesFor(value); err != nil {
			return err.Error(), `write prices="MODEL=IN,CACHED,OUT MODEL=IN,CACHED,OUT", for a million tokens of each kind`
		}
	}
	s.said[name] = value
	return "", ""
}

func isBaseURL(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" && at.User == nil
}

// aliasName is what a person may call a model or an endpoint: nothing that looks like a URL or
// a host.
var aliasName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// aliases parses names for values, NAME=VALUE with blanks between them, or says what is wrong.
func aliases(text string, good func(value string) bool) (list map[string]string, message string) {
	list = map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case !aliasName.MatchString(name):
			return nil, fmt.Sprintf("%q is not a name for a model or an endpoint", name)
		case name == rehearsal.Model || list[name] != "":
			return nil, fmt.Sprintf("the name %s is taken", name)
		case !good(value):
			return nil, "the value of " + name + " is wrong" // it may hold a password
		}
		list[name] = value
	}
	return list, ""
}

// endpoint returns the base URL that a name stands for, or the text itself.
func (s *settings) endpoint(name string) string { return cmp.Or(s.endpoints[name], name) }

// model returns the model that a name stands for, and its base URL if it has one of its own: the
// name of an endpoint behind an @. A text that is not a name is the model.
func (s *settings) model(name string) (model, baseURL string) {
	model = cmp.Or(s.models[name], name)
	if i := strings.LastIndexByte(model, '@'); i > 0 {
		if at := s.endpoints[model[i+1:]]; at != "" {
			return model[:i], at
		}
	}
	return model, ""
}

// unalias replaces names in --model and --base-url by what they stand for. It fails if the model of the
// settings, or of OPENAI_MODEL, would be asked at another place than it names, because a variable names one.
func (s *settings) unalias(command *kong.Context, env environment) error {
	flags := map[string]reflect.Value{}
	for _, group := range command.Selected().AllFlags(false) {
		for _, f := range group {
			if f.Target.Kind() == reflect.String {
				flags[f.Name] = f.Target
			}
		}
	}
	base, based := flags["base-url"]
	if based {
		base.SetString(s.endpoint(base.String()))
	}
	model, modelled := flags["model"]
	if modelled {
		name, at := s.model(model.String())
		model.SetString(name)
		if based && at != "" && base.String() == "" {
			base.SetString(at)
		}
	}
	wanted, at, by := s.said["OPENAI_MODEL"], s.at, s.path
	if env["OPENAI_MODEL"] != "" {
		wanted, by = env["OPENAI_MODEL"], "OPENAI_MODEL"
		wanted, at = s.model(wanted)
	}
	flagged := based && base.String() != "" || modelled && model.String() != ""
	asks := asksEndpoints(command.Command()) && (modelled || !based) // antiphon models asks no model
	if place := env["OPENAI_BASE_URL"]; at != "" && place != "" && s.endpoint(place) != at && !flagged && asks {
		return usage(fmt.Errorf("%s asks the model %s at %s, and OPENAI_BASE_URL is another place: unset it, or give --base-url or --model", by, wanted, at))
	}
	return nil
}

// over returns the environment with the settings where it says nothing, and what its names of models and
// endpoints stand for.
func (s *settings) over(env environment) environment {
	full := maps.Clone(env)
	s.from = map[string]string{}
	const place = "OPENAI_BASE_URL"
	if name := full[place]; name != "" {
		full[place] = s.endpoint(name)
	}
	if name := full["OPENAI_MODEL"]; name != "" {
		model, at := s.model(name)
		if full["OPENAI_MODEL"] = model; at != "" && full[place] == "" {
			full[place], s.from[place] = at, "$OPENAI_MODEL"
		}
	}
	for name, value := range s.said {
		if full[name] == "" {
			full[name], s.from[name] = value, s.path
		}
	}
	return full
}

// agentFile returns the file of an agent that a person names: a path, or the name of a file in
// .antiphon/agents of the project, or in agents of the settings. It says if the project's hides the
// person's own, because a project may be a stranger's.
func agentFile(w io.Writer, env environment, name string) string {
	if _, err := os.Stat(name); err == nil || name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return name
	}
	var found []string
	for _, folder := range agentFolders(env) {
		for _, file := range []string{name, name + ".md"} {
			path := filepath.Join(folder, file)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !strays(env, path) {
				found = append(found, path)
				break
			}
		}
	}
	if len(found) == 0 {
		return name
	}
	if last := found[len(found)-1]; last != found[0] && filepath.Dir(last) == filepath.Join(settingsFolder(env), "agents") {
		fmt.Fprintf(w, "antiphon: %s is the project's, %s; your own of this name is %s\n", show.Visible(quoted(name)), show.Visible(quoted(found[0])), show.Visible(quoted(last)))
	}
	return found[0]
}

// agentNames returns the names of the agents that have names.
func agentNames(env environment) (list []string) {
	for _, folder := range agentFolders(env) {
		files, _ := os.ReadDir(folder)
		for _, f := range files {
			if name, isAgent := strings.CutSuffix(f.Name(), ".md"); isAgent && !strays(env, filepath.Join(folder, f.Name())) {
				list = append(list, name)
			}
		}
	}
	return list
}

// agentFolders returns the folders with agents that have names, those of the project first.
func agentFolders(env environment) (list []string) {
	for i, folder := range projectFolders() {
		agents := filepath.Join(folder, ".antiphon", "agents")
		if info, err := os.Stat(agents); i > 0 && err == nil && !private.Owned(info) {
			continue // everybody may make a repository in a shared folder, around all that is in it
		}
		if strays(env, agents) {
			continue
		}
		list = append(list, agents)
	}
	if folder := settingsFolder(env); folder != "" {
		list = append(list, filepath.Join(folder, "agents"))
	}
	return list
}

// strays reports whether a project's agent, or its folder of agents, is a link to what is outside of the
// project: a person who names an agent of the project does not mean a file of their own. Their own
// agents may be links to anywhere.
func strays(env environment, path string) bool {
	own := settingsFolder(env)
	if own != "" && (path == filepath.Join(own, "agents") || filepath.Dir(path) == filepath.Join(own, "agents")) {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	folders := projectFolders()
	if err != nil || len(folders) == 0 {
		return true
	}
	root, err := filepath.EvalSymlinks(folders[len(folders)-1])
	if err != nil {
		return true
	}
	rest, err := filepath.Rel(root, real)
	return err != nil || !filepath.IsLocal(rest)
}

// projectFolders returns the current folder, and those above it up to the root of its git
// repository. What is above a project may be anybody's.
func projectFolders() (list []string) {
	folder, err := os.Getwd()
	if err != nil {
		return nil
	}
	for {
		list = append(list, folder)
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return list
		}
		above := filepath.Dir(folder)
		if above == folder {
			return list[:1] // no repository
		}
		folder = above
	}
}

// configCommand is antiphon config.
type configCommand struct {
	storeFlag
}

// Help is shown by antiphon config --help.
func (configCommand) Help() string {
	return `Prints what is configured for all agents, and where each value comes from: a variable
of the environment, or the file config in the folder antiphon of your configuration folder
(~/.config/antiphon/config), such as

  <config model="qwen3" base_url="http://localhost:11434/v1"/>

endpoints="local=http://localhost:11434/v1 router=https://openrouter.ai/api/v1" gives
names to endpoints, and models="fast=qwen3@local" to models; both can be used for
--base-url and --model.

A variable has precedence over the file, an agent's file over both, and a flag over all.
Files in the folder agents beside it, and in .antiphon/agents of a project, can be named
without a path and without .md: antiphon run NAME. It asks no endpoint; antiphon doctor does.`
}

// Run prints the configuration.
func (c *configCommand) Run(_ context.Context, std stdio, env environment, own settings) error {
	line := func(what, value, from string) {
		if from != "" {
			value = fmt.Sprintf("%-40s (%s)", value, from)
		}
		fmt.Fprintf(std.out, "%-9s %s\n", what, show.Visible(value))
	}
	place := cmp.Or(own.path, "none: the environment names no home")
	if own.path != "" && !own.there {
		place += ", which is not there"
	}
	line("settings", place, "")
	for _, setting := range []struct{ what, name string }{{"model", "OPENAI_MODEL"}, {"endpoint", "OPENAI_BASE_URL"}, {"hangup", "ANTIPHON_HANGUP"}, {"theme", "ANTIPHON_THEME"}, {"notify", "ANTIPHON_NOTIFY"}, {"images", "ANTIPHON_IMAGES"}, {"motion", "ANTIPHON_MOTION"}, {"keys", "ANTIPHON_KEYS"}, {"bind", "ANTIPHON_BIND"}, {"titles", "ANTIPHON_TITLES"}, {"suggest", "ANTIPHON_SUGGEST"}, {"prices", "ANTIPHON_PRICES"}} {
		value, from := env[setting.name], cmp.Or(own.from[setting.name], "$"+setting.name)
		if value == "" {
			value, from = "not set", ""
		}
		line(setting.what, value, from)
	}
	key, from := "not set", ""
	if env["OPENAI_API_KEY"] != "" {
		key, from = "set", "$OPENAI_API_KEY"
	}
	line("key", key, from)
	if err := own.aliasLines(env, line); err != nil {
		return err
	}
	if err := c.storeLine(env, line); err != nil {
		return err
	}
	return agentLines(env, line)
}

// aliasLines prints the names of endpoints and models, and the keys that are kept.
func (s *settings) aliasLines(env environment, line func(what, value, from string)) error {
	kept, err := readKept(env)
	if err != nil {
		return err
	}
	for _, k := range kept {
		line("key", "kept for "+k.URL, k.where(env))
	}
	for _, name := range slices.Sorted(maps.Keys(s.endpoints)) {
		line("endpoint", name+" is "+s.endpoints[name], s.path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		line("model", name+" is "+s.models[name], s.path)
	}
	return nil
}

func (c *configCommand) storeLine(env environment, line func(what, value, from string)) error {
	place, err := c.place(env)
	if err != nil {
		return err
	}
	from := "the default"
	switch {
	case c.Store != "":
		from = "--store"
	case env["ANTIPHON_STORE"] != "":
		from = "$ANTIPHON_STORE"
	}
	if !store.IsPath(place) { // an address may hold a password
		scheme, _, _ := strings.Cut(place, ":")
		place = scheme + "://…"
	}
	line("store", place, from)
	return nil
}

// agentLines prints the agents that have names. Those of a folder nearer by hide others of the
// same name.
func agentLines(env environment, line func(what, value, from string)) error {
	seen, own := map[string]bool{}, false
	for _, folder := range agentFolders(env) {
		files, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, f := range files {
			name, isAgent := strings.CutSuffix(f.Name(), ".md")
			if isAgent && !seen[name] && !strays(env, filepath.Join(folder, f.Name())) {
				seen[name] = true
				line("agent", quoted(name), quoted(filepath.Join(folder, f.Name())))
				own = own || name == "assistant" && folder == filepath.Join(settingsFolder(env), "agents")
			}
		}
	}
	if !own { // a project's does not answer in its place
		line("agent", "assistant", "built in")
	}
	return nil
}
