// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session/store"
)

// The exit codes, as docs/commands.md documents them.
const (
	exitOK          = 0
	exitFailed      = 1   // something else went wrong, such as a disk that is full
	exitUsage       = 2   // bad arguments or a bad file: nothing was sent
	exitProvider    = 3   // the endpoint could not be reached, refused, or broke off
	exitLimit       = 4   // a limit ended the run
	exitNeedsAllow  = 5   // the run ended well, but a call was refused for want of an approval
	exitInterrupted = 130 // Ctrl-C
)

// stdio is what the program reads from and writes to.
type stdio struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// terminal reports whether a stream is one that a person looks at.
func terminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr }) // a file, or a file with a screen over it
	return ok && term.IsTerminal(int(f.Fd()))
}

// environment is the process environment.
type environment = host.Environment

// grammar is the command line.
type grammar struct {
	Run      runCommand      `cmd:"" help:"Run an agent file."`
	Check    checkCommand    `cmd:"" help:"Report all problems of agent files."`
	Fmt      fmtCommand      `cmd:"" help:"Give agent files one layout, without changing what they say."`
	Convert  convertCommand  `cmd:"" help:"Convert a conversation between Chat Completions, items, JSON lines and ChatMarkdown."`
	Sessions sessionsCommand `cmd:"" help:"List, show, fork, compact, export and delete the sessions of run --session."`
	Doctor   doctorCommand   `cmd:"" help:"Look at the configuration and try what an endpoint can do."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// flagGroups are the headings over the many flags of antiphon run.
var flagGroups = []kong.Group{
	{Key: "keep", Title: "Where the conversation is kept:"},
	{Key: "show", Title: "What is shown:"},
	{Key: "who", Title: "Who answers:"},
	{Key: "may", Title: "What tools may do:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "long", Title: "Long conversations and outputs:"},
}

const description = `Agents as text files, over the Responses API.

Exit codes: 0 done, 1 failed, 2 bad arguments or file, 3 the endpoint failed,
4 a limit ended the run, 5 done but a call was refused for want of an approval,
130 interrupted.`

// parsed carries the exit code out of kong, which reports --help by exiting.
type parsed struct{ code int }

// run is the program: it returns the exit code. The tests call it as main does.
func run(ctx context.Context, args, env []string, std stdio) (code int) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case parsed:
			code = p.code
		default:
			panic(p)
		}
	}()
	return dispatch(ctx, args, env, std)
}

func dispatch(ctx context.Context, args, env []string, std stdio) int {
	var cli grammar
	parser, err := kong.New(&cli,
		kong.Name("antiphon"),
		kong.Description(description),
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { panic(parsed{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups(flagGroups),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std, host.Environ(env)),
	)
	if err != nil {
		return report(std, err)
	}
	parser.Model.HelpFlag.Help = "Show this help."
	args = usual(args)
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return report(std, usage(fmt.Errorf("the argument %q is not UTF-8 text; convert it, or name a file", arg)))
		}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return report(std, usage(fmt.Errorf("%s; see %s --help", plainer(err), helpFor(err))))
	}
	if err := filledFlags(command); err != nil {
		return report(std, err)
	}
	err = command.Run()
	if errors.Is(err, syscall.EPIPE) && command.Selected().Name != "run" {
		err = &exitError{codeOf(err), errors.New("standard output was closed before everything was written")}
	}
	return report(std, err)
}

// filledFlags returns an error for a flag whose text is empty, as an unset variable
// of a script leaves it, or whose list has nothing in it. A flag that may be empty
// is a pointer.
func filledFlags(command *kong.Context) error {
	for _, p := range command.Path {
		if p.Flag == nil {
			continue
		}
		said, ok := "", false
		switch value := command.FlagValue(p.Flag).(type) {
		case string:
			said, ok = value, true
		case []string:
			said, ok = strings.Join(value, ""), true
		}
		if ok && strings.TrimSpace(said) == "" {
			return usage(fmt.Errorf("--%s is empty: give it a value, or leave it out", p.Flag.Name))
		}
	}
	return nil
}

// usual gives what people type to a program that they do not know the form that
// this one has.
func usual(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	case len(args) == 1 && args[0] == "sessions":
		return []string{"sessions", "--help"}
	}
	return tagsLast(args)
}

// helpFor returns the command whose help tells what was meant.
func helpFor(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil && p.Context.Selected() != nil {
		return p.Context.Selected().FullPath()
	}
	return "antiphon"
}

// slips are what the parser says of a flag's value in a programmer's words, and
// the same in plain ones.
var slips = []struct {
	said  *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)$`), "its value is missing"},
	{regexp.MustCompile(`expected a valid \d+ bit int but got (".*")$`), "$1 is not a whole number"},
	{regexp.MustCompile(`expected duration but got (".*"): .*$`), "$1 is not a time such as 90s or 5m"},
	{regexp.MustCompile(`^missing flags: (.*)$`), "missing: $1"},
	{regexp.MustCompile(`^expected "(<\S+>).*"$`), "missing: $1"},
	{regexp.MustCompile(`expected \w+ value but got "([^"]*)" \(.*flag\); perhaps try (--[^"]+="[^"]*")\?$`), "$1 looks like a flag; if it is the value, write $2"},
	{regexp.MustCompile(`^(--\S+) must be one of (.*) but got (".*")$`), "$1: $3 is none of $2"},
}

// plainer is an error of the parser in plain words, with what to do next.
func plainer(err error) string {
	said := err.Error()
	for _, slip := range slips {
		said = slip.said.ReplaceAllString(said, slip.plain)
	}
	flag, unknown := strings.CutPrefix(said, "unknown flag ")
	if unknown && helpFor(err) == "antiphon sessions search" {
		flag, _, _ = strings.Cut(flag, ", did you mean")
		return fmt.Sprintf("unknown flag %s; to search for a word that begins with -, put it behind --: antiphon sessions search -- %s", flag, quoted(flag))
	}
	if name, _, guessed := strings.Cut(flag, ", did you mean"); unknown && usualFlags[name] != "" && helpFor(err) == "antiphon run" {
		return fmt.Sprintf("unknown flag %s, did you mean %s?", name, usualFlags[name])
	} else if unknown && guessed && len(name) == 2 { // every letter is like every other
		return "unknown flag " + name
	}
	if arg, unexpected := strings.CutPrefix(said, "unexpected argument "); unexpected {
		if word, _, _ := strings.Cut(arg, ", did you mean"); isVerb(err, word) {
			return fmt.Sprintf("unexpected argument %s, did you mean antiphon sessions %[1]s?", word)
		}
		return "unexpected argument " + arg + meant(helpFor(err), arg)
	}
	return said
}

// usualFlags are what other programs call flags of run.
var usualFlags = map[string]string{"-m": "--model", "-o": "--out", "-s": "--session", "--verbose": "--show-output", "--yes": "--allow"}

// verbs are what other programs call what sessions does.
var verbs = map[string]string{
	"cat": "show", "copy": "fork", "cp": "fork", "del": "rm", "delete": "rm", "find": "search", "grep": "search",
	"log": "show", "move": "rename", "mv": "rename", "print": "show", "remove": "rm", "unarchive": "archive --undo", "view": "show",
}

// isVerb reports what stands behind antiphon and belongs behind antiphon sessions.
func isVerb(err error, arg string) bool {
	var p *kong.ParseError
	if helpFor(err) != "antiphon" || !errors.As(err, &p) || p.Context == nil {
		return false
	}
	for _, command := range p.Context.Model.Children {
		if command.Name == "sessions" {
			return slices.ContainsFunc(command.Children, func(verb *kong.Node) bool { return verb.Name == arg })
		}
	}
	return false
}

// meant says what to type for an argument that a command does not take.
func meant(command, arg string) string {
	info, err := os.Stat(arg)
	switch {
	case command == "antiphon run":
		return ": put a prompt of several words in quotes"
	case command == "antiphon" && err == nil && info.Mode().IsRegular():
		return fmt.Sprintf(": antiphon run %s runs it", quoted(arg))
	case command == "antiphon" && arg == "chat":
		return ": there is no chat yet; antiphon run FILE --session NAME PROMPT goes on with a conversation, a prompt at a time"
	case command == "antiphon" && arg == "serve":
		return ": agents are not served to other programs yet"
	case command == "antiphon" && strings.ContainsAny(arg, " ?") && !strings.Contains(arg, "did you mean"):
		return `: a question goes to an agent's file: antiphon run FILE "QUESTION"`
	case command == "antiphon sessions" && verbs[arg] != "":
		return ", did you mean " + verbs[arg] + "?"
	case strings.HasPrefix(command, "antiphon sessions "):
		return ": put a name with blanks in quotes"
	}
	return ""
}

// exitError is an error that has been given its exit code. A nil cause means
// that everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

// report prints an error for a person and returns its exit code.
func report(std stdio, err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return code
	}
	message := strings.Join(eachOnce(err), "\n")
	var problems chatmd.ErrorList
	var provider *endpoint.Error
	switch {
	case errors.As(err, &problems) && len(problems) > 1:
		fmt.Fprintln(std.err, printable(message))
		message = plural(len(problems), "problem") + "; nothing was sent"
		if code == exitUsage {
			message = plural(len(problems), "problem") + " in the file; nothing was sent"
		}
	case code == exitInterrupted:
		message = "interrupted"
	case errors.Is(err, syscall.EPIPE):
		message = "standard output was closed, so the run was stopped"
	case errors.Is(err, agent.ErrNothingToSend):
		message = "nothing to answer: give a prompt, or add a <user> element to the file"
	case errors.As(err, &provider) && provider.Class == endpoint.Truncated && provider.Hint == "":
		message += "; run it again to go on"
	case provider != nil && provider.Class == endpoint.NotFound && strings.HasSuffix(provider.URL, "/responses") && strings.Contains(provider.Hint, "at this path"):
		message += "; if it has nothing but Chat Completions, give --api chat"
	}
	fmt.Fprintln(std.err, printable("antiphon: "+message))
	return code
}

// eachOnce is what joined errors say, none of it twice: one fault of a store meets
// all that end with it.
func eachOnce(err error) (said []string) {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []string{err.Error()} // or it adds words of its own
	}
	for _, one := range joined.Unwrap() {
		for _, text := range eachOnce(one) {
			if !slices.ContainsFunc(said, func(before string) bool { return strings.Contains(before, text) }) {
				said = append(said, text)
			}
		}
	}
	return said
}

func codeOf(err error) int {
	var exit *exitError
	var provider *endpoint.Error
	var badURL *endpoint.URLError
	var refused *endpoint.RefusedError
	var config *host.ConfigError
	var place *store.PlaceError
	var limit *host.LimitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &config), errors.As(err, &place), errors.Is(err, store.ErrKey):
		return exitUsage
	case errors.As(err, &limit):
		return exitLimit
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, agent.ErrNothingToSend), errors.As(err, &badURL), errors.As(err, &refused):
		return exitUsage
	case errors.As(err, &provider), errors.Is(err, agent.ErrContextFull):
		return exitProvider
	}
	return exitFailed
}
