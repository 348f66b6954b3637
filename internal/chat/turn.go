// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/internal/homedir"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// turn says a text to the agent and shows what happens. Only what makes it impossible to go
// on is an error.
func (t *dialogue) turn(ctx context.Context, text string) error {
	for {
		t.halted = false
		err := t.oneTurn(ctx, text)
		if err != nil {
			return err
		}
		if text = ""; ctx.Err() != nil || !t.arrived(ctx) || t.moved != "" || t.halted { // said too late for the run
			return nil
		}
	}
}

func (t *dialogue) oneTurn(ctx context.Context, text string) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end := t.face.working(func() { stop(errHalted) }, t.steer(ctx))
	defer end()
	t.print.Begin()
	t.told, t.replied = "", false
	t.print.Picture = func(name, uri string) { t.picture(work, name, uri) }
	a, err := t.host.Agent(work)
	var said []item.Item
	var noted *watchFiles
	had, kept := false, text == "" // by the session
	defer func() {
		if !kept {
			t.face.unsent(text)
		}
	}()
	if err == nil {
		said, err = t.first(t.message(work, text, true, t.picture))
	}
	if err == nil {
		if len(said) > 0 {
			var ran []item.Item
			for _, text := range t.ran {
				ran = append(ran, item.User(text))
			}
			said = append(ran, said...)
		}
		t.plans(a)
		t.setEffort(a)
		if t.conf.Temperature != nil {
			a.Request.Temperature = t.conf.Temperature
		}
		a.CollapseReads = a.CollapseReads || t.collapses
		noted, t.undone = t.watch(a), nil
		t.window = cmp.Or(t.window, a.Compaction.Window)
		for ev, failure := range t.host.Say(work, said...) {
			if failure != nil {
				err = failure
				break
			}
			if !t.spoke {
				t.spoke = true
				t.face.remember(nil, t.draft())
			}
			if !had && len(said) > 0 && hasSaid(ev) {
				had, kept = true, true
				t.conf.System, t.conf.Parts = "", nil
				t.face.sent(text)
				if t.ran != nil {
					t.ran = nil
					t.keepRan()
				}
			}
			if err := t.print.Show(ev); err != nil {
				return err
			}
			t.follow(ev)
		}
	}
	if noted != nil {
		err = errors.Join(err, noted.record(ctx, t.host.Session))
	}
	t.print.EndLine()
	t.face.endText()
	t.tell()
	switch {
	case err == nil:
		t.replied = t.host.Result() != nil && t.host.Result().Why == agent.StopEndTurn
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case work.Err() != nil:
		fmt.Fprintln(t.std.Err, "antiphon: stopped; what was said and done so far is kept")
		if _, err := t.host.Session.Append(ctx, session.Noticed{Kind: session.NoticeStoppedByPerson, Text: errHalted.Error()}); err != nil {
			fmt.Fprintln(t.std.Err, "!! "+show.Printable(t.env.Hide(err.Error())))
		}
	case errors.Is(err, session.ErrLost):
		return err
	default:
		said, next := t.conf.Program.Failed(err, agent.Compaction{Auto: t.cfg.Compaction.Auto, At: t.cfg.Compaction.At})
		if said != t.told {
			fmt.Fprintln(t.std.Err, "!! "+strings.ReplaceAll(show.Printable(t.env.Hide(said)), "\n", "\n   "))
		}
		if next != "" {
			fmt.Fprintln(t.std.Err, "   "+next)
		}
	}
	return nil
}

// hasSaid reports whether the session has what was said: it has recorded it, or a turn begins, because the
// same message already waited for its answer.
func hasSaid(ev agent.Event) bool {
	e, ok := ev.(agent.Recorded)
	if !ok {
		return false
	}
	switch e.Body.(type) {
	case session.InputItem, session.TurnStarted:
		return true
	}
	return false
}

// message returns a prompt as an item, with the files and sessions that it names behind @. Pictures are shown. With asks, the
// person may be asked about files; otherwise one that needs a question is an error.
func (t *dialogue) message(ctx context.Context, text string, asks bool, depict func(ctx context.Context, name, uri string)) ([]item.Item, error) {
	if text == "" {
		return nil, nil
	}
	var parts []item.Part
	for _, name := range namesIn(text) {
		at := t.sessionAt
		if isFile(name) {
			at = t.fileAt
		}
		switch part, err := at(ctx, name, asks); {
		case err != nil:
			return nil, fmt.Errorf("@%s: %w", show.Visible(name), err)
		case part != nil:
			parts = append(parts, part)
			show.PicturesIn([]item.Part{part}, func(uri string) { depict(ctx, name, uri) })
		}
	}
	if parts == nil {
		return []item.Item{item.User(text)}, nil
	}
	message, err := item.UserParts(append([]item.Part{&item.InputText{Text: text}}, parts...)...)
	return []item.Item{message}, err
}

// first adds what the flags send with the first prompt.
func (t *dialogue) first(said []item.Item, err error) ([]item.Item, error) {
	switch begins := len(said) == 0; {
	case err != nil || begins && !t.host.Fresh():
		return said, err
	case begins && len(t.conf.Parts) > 0: // they follow the question of the agent's file, as those of antiphon run do
		m, err := item.UserParts(t.conf.Parts...)
		if err != nil {
			return nil, err
		}
		said = []item.Item{m}
	case len(t.conf.Parts) > 0:
		m, err := item.As[item.Message](said[0])
		if err != nil {
			return nil, err
		}
		parts := slices.Clone(t.conf.Parts)
		if said := m.Content.Parts; len(said) > 1 { // what a prompt names follows it, and so do these
			parts = append(slices.Clone(said), parts...)
		} else {
			parts = append(parts, &item.InputText{Text: m.Content.Display()})
		}
		if said[0], err = item.UserParts(parts...); err != nil {
			return nil, err
		}
	}
	if t.conf.System != "" {
		said = append([]item.Item{item.System(t.conf.System)}, said...)
	}
	return said, nil
}

// filesIn returns the names of files that stand behind an @ in a prompt.
func filesIn(text string) []string {
	return slices.DeleteFunc(namesIn(text), func(name string) bool { return !isFile(name) })
}

// namesIn returns what stands behind an @ in a prompt, once each.
func namesIn(text string) (names []string) {
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		if name, at := strings.CutPrefix(word, "@"); at && name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// fileAt returns the file that a prompt names, or nil if the person does not want it to be sent. A
// prompt may be pasted from somebody else, so a file outside of the current folder is asked about. K2
func (t *dialogue) fileAt(ctx context.Context, name string, asks bool) (item.Part, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !t.maySend(real) {
		if !asks {
			return nil, errors.New("it is asked about when the work is over")
		}
		question := "   send " + show.Visible(real) + ", which is not in this folder? [y]es, [n]o: "
		if beside(real) != real {
			question = "   send " + show.Visible(real) + ", a hidden file of your home folder? [y]es, [n]o: "
		}
		answer, err := t.asked(ctx, question)
		if err != nil {
			return nil, err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			fmt.Fprintln(t.std.Err, "   "+show.Visible(name)+" is not sent")
			return nil, nil
		}
		t.mayLeave.add(real)
	}
	f, info, err := private.Open(real)
	if err != nil {
		return nil, cmp.Or(errors.Unwrap(err), err)
	}
	defer f.Close()
	now, err := os.Lstat(real)
	if again, gone := filepath.EvalSymlinks(path); err != nil || gone != nil || again != real || !os.SameFile(now, info) {
		return nil, errors.New("another file took its place")
	}
	part, err := decode.ReadPart(name, f)
	if err == nil {
		fmt.Fprintf(t.std.Err, "   with %s\n", show.Visible(beside(real)))
	}
	return part, err
}

// maySend reports whether a file may be sent without a question: one of this folder, one that the
// person has agreed to, or a picture that they pasted.
func (t *dialogue) maySend(real string) bool {
	_, pasted := t.pictures.Load(real)
	return pasted || t.mayLeave.has(real) || !outside(real)
}

// agreed is what the person has agreed to, by keys. It is safe for concurrent use.
type agreed struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (a *agreed) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys == nil {
		a.keys = map[string]bool{}
	}
	a.keys[key] = true
}

func (a *agreed) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.keys[key]
}

// outside reports whether a file, by its path without links, is not in the current folder, or is a
// hidden one of the home folder.
func outside(real string) bool {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return true
	}
	rest, err := filepath.Rel(here, real)
	if err != nil || !filepath.IsLocal(rest) {
		return true
	}
	home, err := homedir.Folder()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		return false
	}
	if below, err := filepath.Rel(here, home); err != nil || !filepath.IsLocal(below) {
		return false // the folder is a project
	}
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rest), "/"), func(name string) bool { return strings.HasPrefix(name, ".") })
}

// filesAt returns the files whose names begin with a text, folders with a slash.
func filesAt(begin string) (list []string) {
	folder, name := filepath.Split(begin)
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") || strings.ContainsAny(e.Name(), " \n") {
			continue
		}
		path := folder + e.Name()
		if e.IsDir() {
			path += "/"
		}
		list = append(list, path)
	}
	return list
}

// follow shows what an event says about the conversation as a whole.
func (t *dialogue) follow(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Recorded:
		t.count(ev.Entry)
		t.waiting.kept(t.host.Session.ID(), ev.Body)
		switch b := ev.Body.(type) {
		case session.RunStarted:
			t.began = ev.Seq
		case session.StopAsked:
			if b.Run == t.began {
				t.moved = cmp.Or(b.Detail, "somebody asked for it")
			}
		case session.Delivered:
			t.others, t.halted = b.By != person.Name, t.halted || b.From == queue.FromPark && b.Entries > 0
		case session.InputItem:
			if b.Own {
				return
			}
			if m, err := item.As[item.Message](b.Item); err == nil && t.others {
				t.face.said(m.Content.Display())
			}
			if !t.others { // the history has it since it was typed
				t.remembered = max(t.remembered, ev.Seq)
			}
			t.others = false
		case session.TurnEnded:
			t.ended = ev.Seq
			t.face.endText()
			t.tell()
		case session.Stopped:
			if why := agent.StopReason(b.Why); why != agent.StopEndTurn && why != agent.StopCancelled {
				t.print.Note(show.Yellow, "!! %s%s", strings.ReplaceAll(b.Why, "_", " "), show.Colon(show.Printable(b.Detail)))
				t.told = b.Detail
			}
		}
	case agent.SubagentEvent:
		t.calls.nested(ev)
		if e, ok := ev.Event.(agent.Recorded); ok {
			t.waiting.kept(ev.Session, e.Body)
		}
	case agent.Progress:
		switch {
		case ev.Kind == agent.ProgressDelayed:
			t.face.Last(show.CallKey(ev.CallID), "waits "+ev.Wait.String()+show.Colon(ev.Reason))
		case ev.Kind == agent.ProgressCache && ev.Cache.Broken != nil && ev.Cache.Broken.Why == plan.ByTools:
			t.tooled[t.ended] = true
		}
	}
}

// atOnce returns what is said to work that is under way, with the files that it names. What needs a
// question or is none for the model is an error: it waits until the work is over.
func (t *dialogue) atOnce(ctx context.Context, text string) ([]item.Item, error) {
	switch {
	case strings.HasPrefix(text, "!"):
		return nil, errors.New("a shell line is run when the work is over")
	case strings.HasPrefix(text, "/"):
		return nil, errors.New("a command is done when the work is over")
	}
	for _, name := range filesIn(text) {
		if real, err := realPath(name); err != nil || !t.maySend(real) {
			return nil, fmt.Errorf("@%s is asked about when the work is over", show.Visible(name))
		}
	}
	return t.message(ctx, text, false, func(context.Context, string, string) {}) // keys wait for this, and a picture for keys
}

// realPath returns the path of a file without links.
func realPath(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// steer returns what says something to the work: the run takes it with its next request.
func (t *dialogue) steer(ctx context.Context) func(string) error {
	s := t.host.Session
	return func(text string) error {
		if text == "/detach" {
			return t.handOver(ctx)
		}
		said, err := t.atOnce(ctx, text)
		if err != nil {
			return err
		}
		d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.Name, From: "chat"}}
		for _, it := range said {
			d.Bodies = append(d.Bodies, session.InputItem{Item: it})
		}
		_, err = s.Deliver(ctx, d)
		return err
	}
}
