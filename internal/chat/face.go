// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
)

// face is what the person sees: a terminal that is redrawn, or plain lines.
type face interface {
	show.Waits
	text() io.Writer
	notes() io.Writer
	lines() io.Reader
	width() int
	// endText says that the text of a reply is over.
	endText()
	// next waits for the next prompt. The error is io.EOF when the person leaves.
	next(ctx context.Context) (string, error)
	// sent says that a prompt of next needs not be kept as a draft any more; unsent makes it the
	// draft again.
	sent(text string)
	unsent(text string)
	// working says that a reply is under way until end is called.
	working(stop func(), steer func(string) error) (end func())
	// watching is like working, for what another program does: it goes on when the person
	// leaves.
	watching(stop func(), steer func(string) error) (end func())
	// asking says that a line is awaited as the answer to a question; words that it may be any text.
	asking(words bool) (end func())
	status(text string)
	said(text string)
	put(text string)
	// suggest shows a prompt that the person may take, while the draft is empty. It may be called beside all other methods.
	suggest(text string)
	copy(text string) error
	picture(load func(width, height int) (image.Image, error)) error
	theme(name string) error
	// complete sets what completes the arguments of commands.
	complete(values func(command, begin string) []string)
	// pasting sets what reads the clipboard for Ctrl-V.
	pasting(read func() (string, error))
	// allKeys reports whether keys such as Shift-Enter arrive.
	allKeys() bool
	// browse sets what Ctrl-O and Ctrl-G look into.
	browse(o tui.Outline)
	// edit opens a text in the person's editor. The error is tui.ErrNoEditor if there is none.
	edit(text, suffix string) (string, error)
	// mode returns the approval mode, which the person may change at any time.
	mode() string
	setMode(name string)
	modeApplies(yes bool)
	remember(prompts []string, draft string)
	close() error
}

// liveFace is a terminal that is redrawn.
type liveFace struct{ t *tui.Terminal }

func newLiveFace(in, out *os.File, env host.Environment, colour bool, lost func()) (*liveFace, error) {
	how, err := parseNotify(env["ANTIPHON_NOTIFY"])
	if err != nil {
		return nil, usage(fmt.Errorf("ANTIPHON_NOTIFY: %w\n  hint: %s", err, notifyHint))
	}
	pictures, err := show.PictureWay(env)
	if err != nil {
		return nil, usage(err)
	}
	for _, name := range []string{"ANTIPHON_TITLES", "ANTIPHON_SUGGEST"} {
		if !slices.Contains(asides, cmp.Or(env[name], asides[0])) {
			return nil, usage(fmt.Errorf("%s is %q; it is one of %s", name, env[name], strings.Join(asides, ", ")))
		}
	}
	motion := cmp.Or(env["ANTIPHON_MOTION"], motions[0])
	if !slices.Contains(motions, motion) {
		return nil, usage(fmt.Errorf("ANTIPHON_MOTION is %q; it is one of %s", motion, strings.Join(motions, ", ")))
	}
	hands := cmp.Or(env["ANTIPHON_KEYS"], keySets[0])
	if !slices.Contains(keySets, hands) {
		return nil, usage(fmt.Errorf("ANTIPHON_KEYS is %q; it is one of %s", hands, strings.Join(keySets, ", ")))
	}
	bind, err := tui.ParseBindings(env["ANTIPHON_BIND"])
	if err != nil {
		return nil, usage(fmt.Errorf("ANTIPHON_BIND: %w\n  hint: %s", err, bindHint))
	}
	f := &liveFace{}
	options := tui.Options{
		Bind:  bind,
		Still: motion == "reduced", Vi: hands == "vi",
		In: in, Out: out, Colour: colour, Term: env["TERM"], Program: env["TERM_PROGRAM"], Commands: commands, Files: filesAt, Back: "/back", Drop: "/context drop", Set: []string{"collapse", "effort", "mode", "model", "theme"}, Now: []string{"/detach"}, Lost: lost, Modes: modes,
		Editor: strings.Fields(cmp.Or(env["VISUAL"], env["EDITOR"])), Notice: how.kind, Tmux: env["TMUX"] != "",
		Pictures: pictures, TrueColour: env["COLORTERM"] == "truecolor" || env["COLORTERM"] == "24bit",
	}
	if folder, err := os.Getwd(); err == nil {
		options.About = filepath.Base(folder)
	}
	if how.command != nil {
		options.Tell = how.teller(env, func(problem string) { fmt.Fprintln(f.notes(), "!! "+show.Printable(env.Hide(problem))) })
	}
	f.t, err = tui.Open(options)
	return f, err
}

func (f *liveFace) Wait(key, what string) { f.t.Wait(key, what) }
func (f *liveFace) Done(key string)       { f.t.Done(key) }
func (f *liveFace) suggest(text string)   { f.t.Suggest(text) }

func (f *liveFace) Last(key, text string) {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) != "" {
			f.t.Last(key, show.Shorten(line, 300))
			return
		}
	}
}

func (f *liveFace) text() io.Writer                                   { return f.t.Text() }
func (f *liveFace) notes() io.Writer                                  { return f.t.Notes() }
func (f *liveFace) lines() io.Reader                                  { return f.t.Lines() }
func (f *liveFace) width() int                                        { return f.t.Width() }
func (f *liveFace) endText()                                          { f.t.EndText() }
func (f *liveFace) next(ctx context.Context) (string, error)          { return f.t.Next(ctx) }
func (f *liveFace) sent(text string)                                  { f.t.Sent(text) }
func (f *liveFace) unsent(text string)                                { f.t.Unsent(text) }
func (f *liveFace) working(stop func(), s func(string) error) func()  { return f.t.Working(stop, s) }
func (f *liveFace) watching(stop func(), s func(string) error) func() { return f.t.Watching(stop, s) }
func (f *liveFace) asking(words bool) func()                          { return f.t.Ask(words) }
func (f *liveFace) status(text string)                                { f.t.SetStatus(text) }
func (f *liveFace) said(text string)                                  { f.t.Say(text) }
func (f *liveFace) put(text string)                                   { f.t.Put(text) }
func (f *liveFace) mode() string                                      { return f.t.Mode() }
func (f *liveFace) setMode(name string)                               { f.t.SetMode(name) }
func (f *liveFace) modeApplies(yes bool)                              { f.t.ModeApplies(yes) }
func (f *liveFace) close() error                                      { return f.t.Close() }

func (f *liveFace) edit(text, suffix string) (string, error) { return f.t.Edit(text, suffix) }

func (f *liveFace) pasting(read func() (string, error)) { f.t.Pasting(read) }
func (f *liveFace) allKeys() bool                       { return f.t.AllKeys() }
func (f *liveFace) browse(o tui.Outline)                { f.t.Browse(o) }

func (f *liveFace) complete(values func(command, begin string) []string) { f.t.Complete(values) }

func (f *liveFace) copy(text string) error {
	f.t.Copy(text)
	return nil
}

func (f *liveFace) theme(name string) error {
	if !f.t.SetTheme(name) {
		return fmt.Errorf("%q is not a theme; themes are %s", name, strings.Join(tui.Themes, ", "))
	}
	return nil
}

func (f *liveFace) remember(prompts []string, draft string) {
	f.t.Remember(prompts...)
	f.t.KeepDraft(draft)
}
