// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/private"
)

// configFlags are the flags of commands whose flags may be in a file.
type configFlags struct {
	Config configFile `name:"config" placeholder:"FILE" help:"Read flags from a file: a line KEY = VALUE for each, such as listen = 127.0.0.1:9000, and agents = FOLDER for the arguments. Flags on the command line have precedence."`
	Agents []string   `name:"agents" sep:"none" hidden:"" help:"The agents, for a file of flags."`
	Check  bool       `name:"check" help:"Print what would be served, with which powers and where, and end. Nothing is started, and no store is opened."`
}

// configFile is the name of a file of flags. The parser's own grammar reads the values.
type configFile string

// maxConfig is how large such a file may be, in bytes.
const maxConfig = 256 << 10

// BeforeResolve lets the file answer for the flags that the command line does not have.
func (configFile) BeforeResolve(command *kong.Context, trace *kong.Path) error {
	path, _ := command.FlagValue(trace.Flag).(configFile)
	text, err := readConfig(string(path))
	if err != nil {
		return usage(fmt.Errorf("--config: %w", err))
	}
	said, err := parseConfig(string(path), text, command.Selected())
	if err != nil {
		return usage(err)
	}
	command.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		v, ok := said[flag.Name]
		if !ok {
			return nil, nil
		}
		return v, nil
	}))
	return nil
}

// readConfig reads a file of flags. They decide what may run and who may ask, so a file that others can
// write is not one.
func readConfig(path string) ([]byte, error) {
	text, err := private.ReadFile(path, maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s says who may ask and what may run: %w", path, err)
	}
	return text, err
}

// notInConfig are flags that are for the command line alone.
var notInConfig = []string{"config", "check", "help"}

// parseConfig returns the values of a file by the names of the flags of a command: a text,
// or a list for a flag that may be repeated.
func parseConfig(path string, text []byte, command *kong.Node) (map[string]any, error) {
	flags, names := flagsOf(command)
	said, at := map[string]any{}, 0
	for line := range strings.Lines(string(text)) {
		at++
		entry := strings.TrimSpace(line)
		if entry == "" || entry[0] == '#' {
			continue
		}
		column := strings.Index(line, entry) + 1
		bad := func(message, hint string) error {
			return &chatmd.Error{File: path, Line: at, Column: column, Message: message, Hint: hint}
		}
		name, value, ok := strings.Cut(entry, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		f := flags[name]
		switch {
		case !ok:
			return nil, bad("a line is KEY = VALUE", "such as listen = 127.0.0.1:8787, or trust = true for a flag without a value; comments begin with #")
		case strings.HasPrefix(name, "-"):
			return nil, bad(fmt.Sprintf("%q is not a key", name), "keys have no dashes in front: "+cmp.Or(strings.TrimLeft(name, "-"), "listen"))
		case slices.Contains(notInConfig, name):
			return nil, bad(name+" is for the command line", "leave the line out")
		case f == nil:
			return nil, bad(fmt.Sprintf("%q is not a flag of %s", name, command.FullPath()), nearest(name, names))
		case value == "":
			return nil, bad(name+" is empty", "give it a value, or leave the line out")
		case len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"':
			return nil, bad(name+" is in quotes", "a value goes to the end of its line, without quotes")
		}
		if err := tryFlag(f, value); err != nil {
			hint := hintOf(f)
			if strings.Contains(value, " #") {
				hint = "a comment needs a line of its own"
			}
			return nil, bad(name+": "+err.Error(), hint)
		}
		if f.Target.Kind() == reflect.Slice {
			list, _ := said[name].([]any)
			said[name] = appendParts(list, f, value)
			continue
		}
		if said[name] != nil {
			return nil, bad(name+" has a value already", "only lists may be repeated")
		}
		said[name] = value
	}
	return said, nil
}

// appendParts adds the parts of a value to the list of a flag that may be repeated.
func appendParts(list []any, f *kong.Flag, value string) []any {
	parts := []string{value}
	if f.Tag.Sep != -1 {
		parts = kong.SplitEscaped(value, f.Tag.Sep)
	}
	for _, part := range parts {
		list = append(list, strings.TrimSpace(part))
	}
	return list
}

// flagsOf returns the flags of a command by their names, and the names of those that a file may set.
func flagsOf(command *kong.Node) (flags map[string]*kong.Flag, names []string) {
	flags = map[string]*kong.Flag{}
	for _, group := range command.AllFlags(false) {
		for _, f := range group {
			flags[f.Name] = f
			if !slices.Contains(notInConfig, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return flags, names
}

// tryFlag reads a value as the command line does, and returns what is wrong with it.
func tryFlag(f *kong.Flag, value string) error {
	to := reflect.New(f.Target.Type()).Elem()
	err := f.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), to)
	if err != nil {
		_, said, _ := strings.Cut(plainer(err), ": ")
		return errors.New(cmp.Or(said, err.Error()))
	}
	if f.Enum != "" {
		if list := strings.Split(f.Enum, ","); !slices.Contains(list, value) {
			return fmt.Errorf("%q is not one of %s", value, strings.Join(list, ", "))
		}
	}
	return nil
}

// hintOf says what a flag is for.
func hintOf(f *kong.Flag) string {
	first, _, _ := strings.Cut(f.Help, ". ")
	return "--" + f.Name + ": " + strings.TrimSuffix(first, ".")
}

// nearest returns a hint for an unknown name.
func nearest(name string, names []string) string {
	slices.Sort(names)
	if i := slices.IndexFunc(names, func(known string) bool { return host.Nearly(known, name) }); i >= 0 {
		return "did you mean " + names[i] + "?"
	}
	return "keys are " + strings.Join(names, ", ")
}
