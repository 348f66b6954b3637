// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// commands of a chat, for completion and help.
var commands = []tui.Command{
	{Name: "allow", Arguments: "[[allow|ask|deny] TOOL | reset]", Help: "show the rules about tools, or change one until you leave"},
	{Name: "as-sent", Help: "show what the next request holds, and why"},
	{Name: "back", Arguments: "[TEXT]", Help: "choose an earlier message to go back to, as Esc twice does"},
	{Name: "branches", Help: "list the sessions of this file, with what they were forked from"},
	{Name: "collapse", Arguments: "[on|off]", Help: "send a marker instead of what a later call read again"},
	{Name: "compact", Arguments: "[TOKENS]", Help: "send a summary instead of the older part; TOKENS of the newest stay"},
	{Name: "context", Arguments: "[drop ENTRY]", Help: "show what fills the model's window, or take something out of it"},
	{Name: "copy", Arguments: "[N|code]", Help: "copy the last reply, the one N before it, or its last code block"},
	{Name: "cost", Help: "show what this conversation used"},
	{Name: "detach", Help: "while the agent works: leave it to workers, and leave"},
	{Name: "edit", Arguments: "[N|code]", Help: "open the last reply, the one N before it, or its last code block in $EDITOR; what you change becomes the draft"},
	{Name: "effort", Arguments: "[LEVEL]", Help: "how much the model reasons: none, minimal, low, medium, high, xhigh or max; without LEVEL as the file says"},
	{Name: "export", Arguments: "FILE", Help: "write the conversation to FILE: .md, .html or .jsonl"},
	{Name: "fork", Arguments: "[NAME]", Help: "go on in a copy; this conversation stays as it is"},
	{Name: "fullscreen", Help: "use the whole screen, with scrolling, or go back; also Ctrl-X Ctrl-F"},
	{Name: "help", Help: "show the commands"},
	{Name: "keys", Help: "show the keys"},
	{Name: "mode", Arguments: "[ask|edits|plan]", Help: "what is asked about, as Shift-Tab chooses: as the rules say, no edits in the workspace, or nothing but reading runs"},
	{Name: "model", Arguments: "NAME", Help: "ask another model from now on"},
	{Name: "plan", Help: "the same as /mode plan"},
	{Name: "quit", Help: "leave; the conversation is kept"},
	{Name: "redo", Help: "do again what /undo took back"},
	{Name: "redraw", Help: "show the whole conversation again, as the width is now"},
	{Name: "retry", Help: "ask the last message again, in a fork"},
	{Name: "save", Arguments: "[NAME]", Help: "give the session a name; it is kept in any case"},
	{Name: "steer", Arguments: "TEXT", Help: "say something to the work that is under way"},
	{Name: "theme", Arguments: "dark|light|contrast|none", Help: "change the colours; ANTIPHON_THEME, or theme in the settings, keeps one"},
	{Name: "title", Arguments: "[TEXT]", Help: "give the conversation a title for lists; without TEXT, the model is asked for one"},
	{Name: "tools", Help: "list the tools: where each comes from, and what is asked"},
	{Name: "undo", Arguments: "[N]", Help: "go back before your last message, or the Nth from the end: the conversation, the files, or both"},
	{Name: "why", Help: "show what broke the prompt cache"},
}

// command performs what was typed behind a slash. Only what makes it impossible to go on is
// an error.
func (t *dialogue) command(ctx context.Context, text string) error {
	name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "/"), " ")
	err := t.perform(ctx, name, strings.TrimSpace(rest))
	if errors.Is(err, errLeaves) {
		return io.EOF
	}
	if t.host == nil && err != nil { // the session could not be opened again
		return err
	}
	if err != nil {
		t.warn(err)
	}
	return nil
}

// errLeaves is the result of a command that ends the chat.
var errLeaves = errors.New("the person leaves")

// perform performs a command. Its error is errLeaves if the chat ends.
func (t *dialogue) perform(ctx context.Context, name, rest string) error {
	switch name {
	case "quit", "exit", "q":
		return errLeaves
	case "help", "?":
		t.help()
	case "keys":
		t.keys()
	case "fullscreen": // a terminal that is redrawn does it itself
		return errors.New("plain lines have no full screen")
	case "redraw":
		t.recall(t.host.Session.Entries(), 0)
	case "theme":
		return t.face.theme(rest)
	case "tools":
		return t.tools(ctx)
	case "allow":
		return t.allow(ctx, rest)
	case "why":
		return t.why()
	case "context":
		return t.context(ctx, rest)
	case "collapse":
		return t.collapse(rest)
	case "save":
		return t.save(ctx, rest)
	case "title":
		return t.title(ctx, rest)
	case "mode":
		return t.chooseMode(rest)
	case "plan":
		return t.chooseMode(modePlan)
	case "model":
		return t.model(ctx, rest)
	case "effort":
		return t.chooseEffort(rest)
	case "fork":
		return t.fork(ctx, rest)
	case "undo":
		return t.undo(ctx, rest)
	case "redo":
		return t.redo(ctx)
	case "back":
		return t.back(ctx, rest)
	case "retry":
		return t.retry(ctx)
	case "branches":
		return t.branches(ctx)
	case "as-sent":
		if err := t.kept(); err != nil {
			return err
		}
		return t.conf.Program.ShowSent(ctx, t.std.Err, t.info.ID)
	case "cost":
		t.cost()
	case "export":
		return t.export(ctx, rest)
	case "copy":
		return t.copy(rest)
	case "edit":
		return t.edit(rest)
	case "compact":
		return t.compact(ctx, rest)
	case "detach":
		return cmp.Or(t.handOver(ctx), errLeaves)
	case "steer":
		return errors.New("nothing is under way that could be told something; send it as a prompt")
	default:
		return errors.New(unknownCommand(name))
	}
	return nil
}

// usualCommands says what does the same as commands of other programs.
var usualCommands = map[string]string{
	"new":      "leave with Ctrl-D and start antiphon chat again: each start without -c, -r and --session is a new conversation",
	"clear":    "leave with Ctrl-D and start antiphon chat again: each start without -c, -r and --session is a new conversation",
	"resume":   "leave with Ctrl-D, and antiphon chat -r lists the conversations",
	"sessions": "leave with Ctrl-D, and antiphon chat -r lists the conversations",
	"take":     "it goes on here already: /take is for a conversation that runs elsewhere",
	"status":   "/cost says what the conversation used, and /context what fills the model's window",
	"usage":    "/cost says what the conversation used, and /context what fills the model's window",
}

// unknownCommand says that there is no such command, and what the person may mean.
func unknownCommand(name string) string {
	said := "there is no command /" + name
	if usual := usualCommands[name]; usual != "" {
		return said + "; " + usual
	}
	for _, near := range []func(a, b string) bool{sameLetters, host.Nearly} {
		if at := slices.IndexFunc(commands, func(c tui.Command) bool { return near(name, c.Name) }); at >= 0 {
			said += ", did you mean /" + commands[at].Name + "?"
			break
		}
	}
	return said + "; /help lists them. To send a text that begins with /, put a blank before it"
}

// sameLetters reports whether two names differ at most in the order of their letters.
func sameLetters(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values([]rune(a))), slices.Sorted(slices.Values([]rune(b))))
}

func (t *dialogue) help() {
	for _, c := range commands {
		t.explained(strings.TrimSpace("/"+c.Name+" "+c.Arguments), c.Help)
	}
	hands := "Enter sends, Esc stops the work and keeps all, Ctrl-D leaves; /keys lists all keys"
	if t.conf.Plain {
		hands = "Enter sends, Ctrl-D leaves; /keys lists all keys"
	}
	fmt.Fprintln(t.std.Err, "  "+show.Wrap(hands, max(20, t.face.width()-3), "  "))
}

// explained prints a name and what it does beside it, or below it if the name is long.
func (t *dialogue) explained(name, does string) {
	const beside = 22
	indent := strings.Repeat(" ", beside+3)
	if n := show.ColumnsOf(name); n <= beside {
		name += strings.Repeat(" ", beside+1-n)
	} else {
		name += "\n" + indent
	}
	rows := show.Wrap(does, max(20, t.face.width()-len(indent)-1), "")
	fmt.Fprintln(t.std.Err, "  "+name+strings.ReplaceAll(rows, "\n", "\n"+indent))
}

// plainKeys are the keys where nothing is redrawn.
var plainKeys = []tui.Key{
	{Keys: "Enter", Does: "sends; while the agent works, the line is the next prompt"},
	{Keys: "\\ at the end", Does: "the next line goes on with this prompt"},
	{Keys: "! at the beginning", Does: "runs a command line in the sandbox; its output goes with your next message"},
	{Keys: "Ctrl-C", Does: "stops the work, and leaves; all is kept"},
	{Keys: "Ctrl-D", Does: "leaves, in an empty line"},
	{Keys: "Ctrl-Z", Does: "suspends the program"},
}

// keys lists the keys.
func (t *dialogue) keys() {
	list := plainKeys
	if !t.conf.Plain {
		list = tui.Keys(t.face.allKeys(), t.env["ANTIPHON_KEYS"] == "vi")
	}
	if own := t.env["ANTIPHON_BIND"]; own != "" && !t.conf.Plain {
		list = append(list, tui.Key{Keys: "your own", Does: show.Printable(own)})
	}
	for _, k := range list {
		t.explained(k.Keys, k.Does)
	}
}

// model asks another model from now on.
func (t *dialogue) model(ctx context.Context, name string) error {
	if name == "" {
		setup := &t.print.Setup
		if t.answers != nil {
			setup = &t.answers.setup
		}
		return fmt.Errorf("name a model, as in /model gpt-5.1; now it is %s", show.Asking(setup))
	}
	model, at := t.conf.Program.Model(name)
	return t.reopen(ctx, func(cfg *host.Config) {
		cfg.Endpoint.Model, cfg.Endpoint.BaseURL = model, cmp.Or(at, t.conf.Host.Endpoint.BaseURL)
	})
}

// Efforts are the levels of reasoning.
var Efforts = []string{api.EffortNone, api.EffortMinimal, api.EffortLow, api.EffortMedium, api.EffortHigh, api.EffortXHigh, api.EffortMax}

func (t *dialogue) chooseEffort(level string) error {
	if level != "" && !slices.Contains(Efforts, level) {
		return fmt.Errorf("%s is not a level; they are %s", level, strings.Join(Efforts, ", "))
	}
	t.effort = level
	t.tell()
	fmt.Fprintln(t.std.Err, "  effort: "+cmp.Or(level, "as the file says"))
	return nil
}

// setEffort sets the effort that the person chose.
func (t *dialogue) setEffort(a *agent.Agent) {
	if t.fileEffort == nil {
		own := ""
		if r := a.Request.Reasoning; r != nil {
			own = r.Effort
		}
		t.fileEffort = &own
	}
	level := cmp.Or(t.effort, *t.fileEffort)
	if r := a.Request.Reasoning; r == nil && level == "" || r != nil && r.Effort == level {
		return
	}
	var reasoning api.ReasoningConfig
	if a.Request.Reasoning != nil {
		reasoning = *a.Request.Reasoning
	}
	reasoning.Effort = level
	a.Request.Reasoning = &reasoning
}

// kept returns an error if the session does not hold anything yet.
func (t *dialogue) kept() error {
	if t.host.Fresh() {
		return errors.New("nothing was said yet")
	}
	return nil
}

// fork goes on in a copy of the session.
func (t *dialogue) fork(ctx context.Context, name string) error {
	if err := t.kept(); err != nil {
		return err
	}
	if name != "" {
		if err := host.CheckName(name); err != nil {
			return err
		}
	}
	return t.forkAt(ctx, t.last(), name)
}

// last returns the number of the last entry.
func (t *dialogue) last() (seq int64) {
	for e := range t.host.Session.Entries() {
		seq = e.Seq
	}
	return seq
}

func (t *dialogue) forkAt(ctx context.Context, at int64, name string) error {
	before := cmp.Or(t.info.Name, t.info.ID)
	made, err := host.Fork(ctx, t.host.Store, t.info, at, name)
	if err != nil {
		return t.conf.Program.Taken(err, name)
	}
	for _, d := range made.Dropped {
		fmt.Fprintln(t.std.Err, "!! "+show.Unbroken(t.env.Hide("not taken over: "+d.What)))
	}
	fmt.Fprintf(t.std.Err, "antiphon: %s stays as it is; this goes on in a fork\n", show.Printable(before))
	return t.reopen(ctx, func(cfg *host.Config) { cfg.Session = made.ID })
}

// retry asks the last message of the person again, in a fork that ends before it.
func (t *dialogue) retry(ctx context.Context) error {
	if err := t.kept(); err != nil {
		return err
	}
	list := t.said()
	if len(list) == 0 {
		return errors.New("there is no message to ask again")
	}
	last := list[len(list)-1]
	if err := t.before(ctx, last); err != nil {
		return err
	}
	t.sendAgain(last)
	t.face.said(last.text)
	return t.turn(ctx, last.text)
}

// branches lists the sessions of the file.
func (t *dialogue) branches(ctx context.Context) error {
	names := map[string]string{}
	var list []session.Info
	var unread error // of a damaged row, behind all others
	const most = 100
	for info, err := range t.host.Store.List(ctx, session.Query{Path: t.info.Path, Owner: t.info.Owner, Limit: most}) {
		if err != nil {
			unread = err
			break
		}
		names[info.ID] = cmp.Or(info.Name, info.ID)
		list = append(list, info)
	}
	children := map[string][]session.Info{}
	var tops []session.Info
	for _, info := range list {
		if names[info.Parent] == "" {
			tops = append(tops, info)
		} else {
			children[info.Parent] = append(children[info.Parent], info)
		}
	}
	var row func(info session.Info, in string)
	row = func(info session.Info, in string) {
		mark, from := " ", ""
		if info.ID == t.info.ID {
			mark = "*"
		}
		if info.Parent != "" {
			from = fmt.Sprintf(" (from entry %d)", info.At)
		}
		fmt.Fprintf(t.std.Err, "%s %s%s%s, %s: %s\n", mark, in, show.Visible(names[info.ID]), from, show.Plural(int(info.Entries), "entry"), show.Shorten(t.env.Hide(info.Title), 60))
		for _, child := range slices.Backward(children[info.ID]) {
			row(child, in+"  ")
		}
	}
	for _, info := range slices.Backward(tops) {
		row(info, "")
	}
	return unread
}

func (t *dialogue) export(ctx context.Context, path string) error {
	if !t.conf.Program.Exports(path) {
		return errors.New("name a file: /export FILE, where FILE ends with .md, .html or .jsonl")
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; name a new file", path)
	}
	if err := t.kept(); err != nil {
		return err
	}
	return t.conf.Program.Export(ctx, t.std.Err, t.info.ID, path)
}

func (t *dialogue) cost() {
	u := t.used
	all := u.All()
	line := fmt.Sprintf("%s, %s", show.Plural(u.Turns, "turn"), show.Plural(u.Calls, "call"))
	line += show.UsedText(all, u.Nested, show.Tokens{Input: u.InputTokens, Cached: u.CachedTokens, Output: u.OutputTokens, Total: u.TotalTokens})
	if all.Cost == 0 && all.Tokens > 0 {
		line += "; prices in the settings (antiphon config) say what tokens cost, and so does --price at the start"
	}
	fmt.Fprintln(t.std.Err, "  "+line)
	for _, m := range u.Models {
		fmt.Fprintf(t.std.Err, "  %s: %d tokens\n", show.Shorten(cmp.Or(m.Model, "no model named"), 100), m.Tokens)
	}
}

// copy copies a reply.
func (t *dialogue) copy(which string) error {
	text, err := t.reply(which)
	if err != nil {
		return err
	}
	if err := t.face.copy(text); err != nil {
		return err
	}
	how := ""
	if t.env["TMUX"] != "" {
		how = "; tmux passes it on only with set-clipboard on or allow-passthrough on"
	}
	fmt.Fprintf(t.std.Err, "antiphon: %s given to the terminal's clipboard%s\n", show.Plural(len([]rune(text)), "character"), how)
	return nil
}

// edit opens a reply in the editor. What the person makes of it becomes the draft.
func (t *dialogue) edit(which string) error {
	text, err := t.reply(which)
	if err != nil {
		return err
	}
	suffix := ".md"
	if which == "code" {
		suffix = ".txt"
	}
	text = strings.TrimRight(text, "\n")
	edited, err := t.face.edit(text, suffix)
	if err != nil || edited == text || edited == "" {
		return err
	}
	t.face.put(edited)
	return nil
}

// reply returns the last reply, the one so many before it, or its last code block.
func (t *dialogue) reply(which string) (string, error) {
	back, code := 0, which == "code"
	if which != "" && !code {
		n, err := strconv.Atoi(which)
		if err != nil || n < 0 {
			return "", errors.New("that takes a number, such as 1 for the reply before the last, or code")
		}
		back = n
	}
	var replies []string
	for e := range t.host.Session.Entries() {
		if b, ok := e.Body.(session.OutputItem); ok && b.Item.Type() == item.TypeMessage {
			if m, err := item.As[item.Message](b.Item); err == nil {
				replies = append(replies, m.Content.Display())
			}
		}
	}
	if back >= len(replies) {
		return "", errors.New("there is no such reply")
	}
	text := replies[len(replies)-1-back]
	if code {
		if text = lastCode(text); text == "" {
			return "", errors.New("the last reply has no code block")
		}
	}
	return text, nil
}

// lastCode returns the last code block of a text.
func lastCode(text string) (code string) {
	var block strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~")):
			fence = bare[:3]
			block.Reset()
		case fence != "" && strings.HasPrefix(bare, fence):
			fence, code = "", block.String()
		case fence != "":
			block.WriteString(line)
		}
	}
	return code
}

// compact shortens what is sent.
func (t *dialogue) compact(ctx context.Context, keep string) error {
	if err := t.kept(); err != nil {
		return err
	}
	tokens := int64(0)
	if keep != "" {
		n, err := strconv.ParseInt(keep, 10, 64)
		if err != nil || n < 0 {
			return errors.New("/compact takes the number of the newest tokens that stay")
		}
		tokens = n
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer t.face.working(stop, nil)()
	t.face.Wait("compaction", "a shorter history")
	defer t.face.Done("compaction")
	cfg := t.cfg
	cfg.FrontEnd = t.conf.Program.FrontEnd(t.std.Err, true)
	if err := t.trusted(&cfg); err != nil {
		return err
	}
	done, err := host.Compact(work, t.host.Session, cfg, tokens)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.std.Err, "-- about %d tokens became %d, by %s; nothing is lost: the log keeps all\n", done.Before, done.After, done.By)
	return nil
}
