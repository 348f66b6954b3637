// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/chat"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session/store"
)

// The exit codes, as docs/commands.md documents them.
const (
	exitOK          = 0
	exitFailed      = 1   // other failures, such as a full disk
	exitUsage       = 2   // invalid arguments or file: nothing was sent
	exitProvider    = 3   // the endpoint was unreachable, refused, or broke off
	exitLimit       = 4   // a limit ended the run
	exitNeedsAllow  = 5   // the run ended, but a call was refused because nobody could approve it
	exitInterrupted = 130 // Ctrl-C
)

// stdio holds the program's standard streams.
type stdio struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// printed keeps the first error of writing. Commands that print line by line leave it
// to run to find it: what a full disk did not take must not pass for printed.
type printed struct {
	io.Writer
	err error
}

func (p *printed) Write(data []byte) (int, error) {
	n, err := p.Writer.Write(data)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// onScreen puts status lines below what the streams show, if they are a terminal.
func onScreen(std stdio, env environment, plain bool) (s *show.Screen, with stdio) {
	s, std.out, std.err = show.NewScreen(std.out, std.err, env, plain)
	return s, std
}

// environment is the process environment.
type environment = host.Environment

// grammar is the command line.
type grammar struct {
	Run      runCommand      `cmd:"" help:"Run an agent file."`
	Ask      askCommand      `cmd:"" help:"Ask a question, without a file: antiphon \"QUESTION\" is the same."`
	Init     initCommand     `cmd:"" help:"Write a first agent file."`
	Chat     chatCommand     `cmd:"" help:"Hold a conversation at the terminal."`
	Serve    serveCommand    `cmd:"" help:"Serve agents to programs that speak the Responses API."`
	MCP      mcpCommand      `cmd:"" name:"mcp" help:"Serve agents as tools, to programs that speak MCP."`
	Keys     keysCommand     `cmd:"" help:"Create, list and revoke the keys of a server's clients."`
	Usage    usageCommand    `cmd:"" help:"Show what the clients of a server have used."`
	Check    checkCommand    `cmd:"" help:"Report all problems of agent files."`
	Fmt      fmtCommand      `cmd:"" help:"Give agent files one layout, without changing what they say."`
	Convert  convertCommand  `cmd:"" help:"Convert a conversation between Chat Completions, items, JSON lines and ChatMarkdown."`
	Sessions sessionsCommand `cmd:"" help:"List, show, fork, compact, export and delete the sessions of run --session."`
	Work     workCommand     `cmd:"" help:"Run sessions as a worker, leave work for workers, and see why work does not move."`
	Trust    trustCommand    `cmd:"" help:"Agree to what an agent's file may do; list and revoke agreements."`
	Audit    auditCommand    `cmd:"" help:"Show and verify the log of who agreed to what, and what was started."`
	Doctor   doctorCommand   `cmd:"" help:"Look at the configuration and try what an endpoint can do."`
	Config   configCommand   `cmd:"" help:"Print what is configured, and where each value comes from."`
	Models   modelsCommand   `cmd:"" help:"List the models that an endpoint offers."`
	Login    loginCommand    `cmd:"" help:"Keep the key of an endpoint, in the keyring or a file of your own."`
	Logout   logoutCommand   `cmd:"" help:"Forget the key of an endpoint."`
	Version  versionCommand  `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script that completes commands in a shell."`
	Man        manCommand        `cmd:"" help:"Print the manual page of a command."`
}

// flagGroups are the headings for the flags of antiphon run.
var flagGroups = []kong.Group{
	{Key: "say", Title: "What is said:"},
	{Key: "keep", Title: "Where the conversation is kept:"},
	{Key: "show", Title: "What is shown:"},
	{Key: "who", Title: "Who answers:"},
	{Key: "clients", Title: "Clients:"},
	{Key: "may", Title: "What tools may do:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "long", Title: "Long conversations and outputs:"},
}

const description = `Agents as text files, over the Responses API.

Exit codes: 0 done, 1 failed, 2 bad arguments or file, 3 the endpoint failed,
4 a limit or sessions stop ended the run, 5 done but a call was refused because
nobody could approve it, or calls wait (--pause), 130 interrupted.

Without a command, antiphon begins a chat if it is at a terminal.`

// run is the program: it returns the exit code. The tests call it as main does.
func run(ctx context.Context, args, env []string, std stdio) int {
	hide := func(text string) string { return host.Environ(env).Hide(text) }
	out := &printed{Writer: std.out}
	if !show.IsTerminal(std.out) { // a terminal stays what it is, for the status line
		std.out = out
	}
	if show.IsTerminal(std.in) && show.IsTerminal(std.out) && talks(args) {
		args = append([]string{"chat"}, args...)
	}
	exited, code := false, 0 // by --help, which kong reports by exiting
	parser, err := newParser(ctx, args, std, func(with int) { exited, code = true, with })
	if err != nil {
		return report(std, hide, args, err)
	}
	if len(args) > 0 && args[0] == completes {
		return report(std, hide, args, complete(ctx, std.out, parser, host.Environ(env), args[1:]))
	}
	var unread error
	piped := func() bool { // text is piped in, and not only an empty pipe of a supervisor
		if _, isFile := std.in.(*os.File); !isFile || !hasInput(std.in) {
			return false
		}
		var text string
		text, unread = readInput(ctx, std, awaited(""))
		std.in = strings.NewReader(text)
		return spoken(text) != ""
	}
	args = usual(args, piped, commandNames())
	if unread != nil {
		return report(std, hide, args, unread)
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return report(std, hide, args, usage(fmt.Errorf("the argument %q is not UTF-8 text; convert it, or name a file", args[i])))
	}
	command, err := parser.Parse(args)
	if out.err != nil { // what was printed so far, such as help, is incomplete
		return report(std, hide, args, out.err)
	}
	if exited { // kong continues after --help, and may report an argument that help does not need
		return code
	}
	if found := (*exitError)(nil); errors.As(err, &found) { // of a file of flags
		return report(std, hide, args, found)
	}
	if err != nil {
		return report(std, hide, args, usage(fmt.Errorf("%s; see %s --help", plainer(err), helpFor(err))))
	}
	full, err := perform(command, std, host.Environ(env))
	if full != nil {
		hide = full.Hide
	}
	if err == nil {
		err = out.err
	}
	if errors.Is(err, syscall.EPIPE) && command.Selected().Name != "run" {
		err = &exitError{codeOf(err), errors.New("standard output was closed before everything was written")}
	}
	return report(std, hide, args, err)
}

// newParser returns the parser of a command line. exits is told the exit code of --help.
func newParser(ctx context.Context, args []string, std stdio, exits func(code int)) (*kong.Kong, error) {
	parser, err := kong.New(grammarFor(args),
		kong.Name("antiphon"),
		kong.Description(description),
		kong.Writers(std.out, std.err),
		kong.Exit(exits),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups(flagGroups),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err == nil {
		parser.Model.HelpFlag.Help = "Show this help."
	}
	return parser, err
}

// perform runs a command with the settings, and returns its environment, which is nil if it was not run.
func perform(command *kong.Context, std stdio, env environment) (environment, error) {
	if err := filledFlags(command); err != nil {
		return nil, err
	}
	own, err := readSettings(env)
	if err != nil && command.Selected().Name != "version" {
		return nil, err
	}
	if err := own.unalias(command, env); err != nil {
		return nil, err
	}
	full := own.over(env)
	if err == nil && asksEndpoints(command.Command()) {
		if full, err = own.withKept(full, std.err); err != nil {
			return nil, err
		}
	}
	return full, command.Run(std, full, own)
}

// filledFlags returns an error for a flag with an empty text or list, for example
// from an unset variable in a script. Flags that may be empty are pointers.
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

// usual translates arguments that people try with an unknown program. Piped reports whether
// standard input holds text, which may be a question; commands are the names of the commands.
func usual(args []string, piped func() bool, commands []string) []string {
	switch {
	case len(args) == 0 && piped():
		return []string{"ask"}
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	case len(args) == 1 && args[0] == "sessions":
		return []string{"sessions", "--help"}
	case len(args) == 1 && (args[0] == "trust" || args[0] == "audit" || args[0] == "work"):
		return []string{args[0], "--help"}
	case asks(args, piped, commands):
		return append([]string{"ask"}, args...)
	}
	return tagsLast(countsBack(args))
}

// talks reports whether arguments without a command begin a chat at a terminal: no arguments, or only flags of chat.
func talks(args []string) bool {
	if len(args) == 0 {
		return true
	}
	if !strings.HasPrefix(args[0], "-") {
		return false
	}
	args = countsBack(append([]string{"chat"}, args...))
	chat := new(struct {
		Chat chatCommand `cmd:""`
	})
	helped := false
	parser, err := kong.New(chat, kong.Name("antiphon"), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { helped = true }))
	if err != nil {
		return false
	}
	_, err = parser.Parse(args)
	// antiphon -v prints the version.
	return err == nil && !helped && chat.Chat.File == "" && !slices.Equal(args[1:], []string{"-v"})
}

// grammarFor returns the part of the command line that these arguments need: all of it, or
// the command that they name. To make the parser for all commands takes a fifth of the start of
// the program. Completion and manual pages are about all commands.
func grammarFor(args []string) any {
	for _, field := range commandsIn(reflect.TypeFor[grammar]()) {
		if name := commandName(field); len(args) > 0 && args[0] == name && name != "man" {
			return reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface()
		}
	}
	return new(grammar)
}

// commandsIn returns the fields of a command that are commands.
func commandsIn(t reflect.Type) (list []reflect.StructField) {
	for _, field := range reflect.VisibleFields(t) {
		if _, is := field.Tag.Lookup("cmd"); is {
			list = append(list, field)
		}
	}
	return list
}

// commandName returns the name of a command as the parser has it.
func commandName(field reflect.StructField) string {
	return cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
}

// commandNames returns the names of the commands, and of the commands of sessions, which
// people forget to write.
func commandNames() (names []string) {
	for _, command := range commandsIn(reflect.TypeFor[grammar]()) {
		names = append(names, commandName(command))
		if command.Type == reflect.TypeFor[sessionsCommand]() {
			for _, verb := range commandsIn(command.Type) {
				names = append(names, commandName(verb))
			}
		}
	}
	return names
}

// asks reports whether the arguments are those of ask: a question of more than one word, or
// flags before anything else. A single word is a command or a mistake, unless piped text
// goes with it.
func asks(args []string, piped func() bool, commands []string) bool {
	first := args[0]
	switch _, err := os.Stat(first); {
	case first == "-h" || first == "--help" || err == nil:
		return false
	case strings.HasPrefix(first, "-"):
		for i, arg := range args {
			if slices.Contains(commands, arg) && !(i > 0 && takesValue(args[i-1])) { // --api chat names no command
				return false
			}
		}
		return true
	case strings.ContainsAny(first, " \t\n?？"):
		return true
	}
	alike := func(name string) bool { return name == first || host.Nearly(name, first) }
	return !slices.ContainsFunc(commands, alike) && verbs[first] == "" && !strings.ContainsAny(first, `./\`) && piped()
}

// takesValue reports whether what follows an argument is the value of a flag of ask.
func takesValue(arg string) bool {
	if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
		return false
	}
	ask := new(struct {
		Ask askCommand `cmd:""`
	})
	parser, err := kong.New(ask, kong.Name("antiphon"))
	if err != nil {
		return false
	}
	for _, flag := range parser.Model.Leaves(true)[0].Flags {
		if arg == "--"+flag.Name || flag.Short != 0 && arg == "-"+string(flag.Short) {
			return !flag.IsBool()
		}
	}
	return false
}

// helpFor returns the command whose help is relevant to the error.
func helpFor(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil && p.Context.Selected() != nil {
		return p.Context.Selected().FullPath()
	}
	return "antiphon"
}

// slips are the parser's messages about flag values, and plain replacements.
var slips = []struct {
	said  *lazyregexp.Regexp
	plain string
}{
	{lazyregexp.New(`expected \w+ value but got "EOL" \(<EOL>\)$`), "its value is missing"},
	{lazyregexp.New(`expected a valid \d+ bit int but got (".*")$`), "$1 is not a whole number"},
	{lazyregexp.New(`expected duration but got (".*"): .*$`), "$1 is not a time such as 90s or 5m"},
	{lazyregexp.New(`expected a float but got (".*") \(\w+\)$`), "$1 is not a number"},
	{lazyregexp.New(`^missing flags: (.*)$`), "missing: $1"},
	{lazyregexp.New(`^expected "(<\S+>).*"$`), "missing: $1"},
	{lazyregexp.New(`expected \w+ value but got "([^"]*)" \(.*flag\); perhaps try (--[^"]+="[^"]*")\?$`), "$1 looks like a flag; if it is the value, write $2"},
	{lazyregexp.New(`^(--\S+|<\S+>) must be one of (.*) but got (".*")$`), "$1: $3 is not one of $2"},
}

// plainer returns an error of the parser in plain words, with a suggestion.
func plainer(err error) string {
	said := err.Error()
	for _, slip := range slips {
		said = slip.said.ReplaceAllString(said, slip.plain)
	}
	said = strings.Replace(said, ` is not one of "",`, " is not one of ", 1) // the default, which nobody writes
	flag, unknown := strings.CutPrefix(said, "unknown flag ")
	if helpFor(err) == "antiphon login" && !strings.HasPrefix(said, "missing: ") { // what is too much may be the key
		return "name one endpoint, and nothing else; the key is asked for, or read from standard input"
	}
	if unknown && helpFor(err) == "antiphon sessions search" {
		flag, _, _ = strings.Cut(flag, ", did you mean")
		return fmt.Sprintf("unknown flag %s; to search for a word that begins with -, put it behind --: antiphon sessions search -- %s", flag, quoted(flag))
	}
	if unknown {
		return unknownFlag(err, flag)
	}
	if arg, unexpected := strings.CutPrefix(said, "unexpected argument "); unexpected {
		if word, guess, guessed := strings.Cut(arg, `, did you mean "`); guessed && !host.Nearly(word, strings.TrimSuffix(guess, `"?`)) {
			arg = word
		}
		if word, _, _ := strings.Cut(arg, ", did you mean"); isVerb(err, word) {
			return fmt.Sprintf("unexpected argument %s, did you mean antiphon sessions %[1]s?", word)
		}
		hint := meant(helpFor(err), arg)
		if command := otherCommands[strings.Trim(arg, `"`)]; helpFor(err) == "antiphon" && command != "" {
			return fmt.Sprintf("unexpected argument %s, did you mean %s?", arg, command)
		}
		if helpFor(err) == "antiphon" && hint == "" && !strings.Contains(arg, "did you mean") {
			return fmt.Sprintf("%s is neither a command nor a file; antiphon ask %s asks it as a question", arg, quoted(arg))
		}
		return "unexpected argument " + arg + hint
	}
	return said
}

// unknownFlag says what may have been meant by a flag that a command does not have. Said may have a
// guess of the parser.
func unknownFlag(err error, said string) string {
	name, guess, guessed := strings.Cut(said, ", did you mean ")
	meant := strings.Trim(guess, `"?`)
	talks := slices.Contains([]string{"antiphon run", "antiphon ask", "antiphon chat"}, helpFor(err))
	switch {
	case talks && usualFlags[name] != "":
		return fmt.Sprintf("unknown flag %s, did you mean %s?", name, usualFlags[name])
	case talks && name >= "-1" && name <= "-9" && len(name) == 2:
		return fmt.Sprintf("unknown flag %s: -c continues the last session, -r chooses one, and --session %[1]s names one by its place in the list", name)
	case talks && (name == "-p" || name == "--prompt"):
		return fmt.Sprintf("unknown flag %s: the prompt needs no flag", name)
	case helpFor(err) == "antiphon serve" && name == "--port":
		return "unknown flag --port, did you mean --listen HOST:PORT?"
	case helpFor(err) == "antiphon sessions rename" && name == "--name":
		return "unknown flag --name: the new name needs no flag, as in antiphon sessions rename SESSION NAME"
	case helpFor(err) == "antiphon" && belongsToCommand(err, name):
		return fmt.Sprintf("unknown flag %s: the flags of a command come after its name, as in antiphon run %[1]s", name)
	case guessed && len(name) > 2 && host.Nearly(name, meant): // single letters are all similar
		return fmt.Sprintf("unknown flag %s, did you mean %s?", name, meant)
	}
	return "unknown flag " + name
}

// belongsToCommand reports whether antiphon run has a flag, which somebody wrote before the command.
func belongsToCommand(err error, flag string) bool {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return false
	}
	return slices.ContainsFunc(p.Context.Model.Children, func(command *kong.Node) bool {
		return command.Name == "run" && slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return "--"+f.Name == flag })
	})
}

// usualFlags are the names of other programs for flags of commands that talk to a model.
var usualFlags = map[string]string{
	"--verbose": "--show-output", "--yes": "--allow", "--yolo": "--allow", "--full-auto": "--allow", "--dangerously-skip-permissions": "--allow",
	"--attachment": "--file", "--output-format": "--json", "--resume": "--choose",
}

// otherCommands are the names of other programs for commands.
var otherCommands = map[string]string{"exec": "antiphon run", "resume": "antiphon -r", "prompt": "antiphon ask", "settings": "antiphon config"}

// verbs are the names of other programs for commands of sessions.
var verbs = map[string]string{
	"cat": "show", "copy": "fork", "cp": "fork", "del": "rm", "delete": "rm", "find": "search", "grep": "search",
	"log": "show", "move": "rename", "mv": "rename", "print": "show", "remove": "rm", "unarchive": "archive --undo", "view": "show",
}

// isVerb reports whether an argument of antiphon is a command of antiphon sessions.
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

// meant returns a suggestion for an argument that a command does not accept.
func meant(command, arg string) string {
	switch {
	case command == "antiphon run":
		return ": put a prompt of several words in quotes"
	case command == "antiphon" && chat.IsFile(arg):
		return fmt.Sprintf(": antiphon run %s runs it", quoted(arg))
	case command == "antiphon sessions" && verbs[arg] != "":
		return ", did you mean " + verbs[arg] + "?"
	case strings.HasPrefix(command, "antiphon sessions "):
		return ": put a name with blanks in quotes"
	}
	return ""
}

// exitError is an error with its exit code. If err is nil, everything has been
// reported already.
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

// report prints the error of a command line, without what is to be hidden, and returns its exit
// code.
func report(std stdio, hide func(string) string, args []string, err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return code
	}
	message := hide(strings.Join(eachOnce(err), "\n"))
	var problems chatmd.ErrorList
	switch {
	case errors.As(err, &problems) && len(problems) > 1:
		fmt.Fprintln(std.err, unforged(message, args...))
		message = show.Plural(len(problems), "problem") + "; nothing was sent"
		if code == exitUsage {
			message = show.Plural(len(problems), "problem") + " in the file; nothing was sent"
		}
		if len(args) > 0 && args[0] == "convert" {
			message = show.Plural(len(problems), "problem") + " in the file; nothing was converted"
		}
	case code == exitInterrupted:
		message = "interrupted"
	case errors.Is(err, syscall.EPIPE):
		message = "standard output was closed, so the run was stopped"
	case errors.As(err, new(*agent.PriceError)):
		message = strings.TrimSuffix(strings.TrimPrefix(message, "agent: "), ": set Agent.Prices") + "; give --price, or prices in the settings"
	case errors.Is(err, agent.ErrNothingToSend):
		message = "nothing to answer: give a prompt, or add a <user> element to the file"
	default:
		if next := nextStep(err); next != "" {
			message += "; " + next
		}
	}
	fmt.Fprintln(std.err, unforged("antiphon: "+message, args...))
	return code
}

// nextStep returns what to do after an error that does not say so in the words of the program, or "".
func nextStep(err error) string {
	var provider *endpoint.Error
	var unfit *agent.AnswerError
	switch {
	case errors.As(err, &unfit) && unfit.Why == agent.StopUnfit:
		return "try another model, or say in the prompt what the schema leaves open"
	case errors.As(err, &provider) && provider.Class == endpoint.NotFound && strings.HasSuffix(provider.URL, "/responses") && strings.Contains(provider.Hint, "at this path"):
		return "if it has nothing but Chat Completions, give --api chat"
	}
	return ""
}

// eachOnce returns the messages of joined errors without duplicates, because one
// failure of a store affects every operation that ends with it.
func eachOnce(err error) (said []string) {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []string{err.Error()} // or the error adds its own text
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
	var answer *agent.AnswerError
	var price *agent.PriceError
	stopped := errors.Is(err, context.Canceled)
	switch {
	case errors.As(err, &exit) && (!stopped || exit.code != exitUsage):
		return exit.code
	case stopped && (exit != nil || errors.As(err, &config)): // while the person was asked, or something was read
		return exitInterrupted
	case errors.As(err, &config), errors.As(err, &place), errors.Is(err, store.ErrKey):
		return exitUsage
	case errors.As(err, &limit):
		return exitLimit
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, agent.ErrNothingToSend), errors.As(err, &badURL), errors.As(err, &refused), errors.As(err, &price):
		return exitUsage
	case errors.As(err, &provider), errors.As(err, &answer), errors.Is(err, agent.ErrContextFull):
		return exitProvider
	}
	return exitFailed
}
