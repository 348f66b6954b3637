// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// kept is a session of a store, locked for a run.
type kept struct {
	store  keeper
	info   session.Info
	unlock func() error    // nil as long as it is not locked
	log    []session.Entry // what earlier runs left
	fresh  bool            // it was made for this run, which has not begun yet
}

// close gives the session and the store back. A session of a run that could not
// begin, for want of a model or a file, goes with it.
func (k *kept) close() (err error) {
	if k == nil {
		return nil
	}
	if k.unlock != nil {
		if k.fresh && len(k.log) == 0 {
			err = k.store.Delete(context.Background(), k.info.ID)
		}
		err = errors.Join(err, k.unlock())
	}
	return errors.Join(err, k.store.Close())
}

// stays says that the run begins.
func (k *kept) stays() {
	if k != nil {
		k.fresh = false
	}
}

// keep opens the session that --session names, of this file, or begins it with
// what the file says. What agents in the file's messages said is in the log of a
// session that has begun: they are not asked again.
func (c *runCommand) keep(ctx context.Context, std stdio, env environment, options agentfile.Options) (*agentfile.File, *session.Session, error) {
	path, err := resolved(c.File)
	if err != nil {
		return nil, nil, usage(err)
	}
	store, err := c.storeFlag.open(ctx, env, true)
	if err != nil {
		return nil, nil, err
	}
	c.kept = &kept{store: store}
	if c.kept.info, err = c.named(ctx, store, path); err != nil {
		return nil, nil, err
	}
	if err := c.checkOut(env, c.kept.info.ID); err != nil {
		return nil, nil, err
	}
	var file *agentfile.File
	if c.kept.info.ID == "" { // of a file with mistakes no session is made
		if file, err = agentfile.Load(ctx, c.File, options); err != nil {
			return nil, nil, unread(err)
		}
		if c.kept.info, err = c.begin(ctx, store, path); err != nil {
			return nil, nil, err
		}
		c.kept.fresh = true
	}
	s, err := c.kept.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c.Spill == "" {
		c.spill = store.Spill(s.ID())
	}
	c.kept.log = s.Log()
	begun := len(c.kept.log) > 0
	if begun {
		options.Check, options.Runner = true, nil
	}
	if file == nil {
		if file, err = agentfile.Load(ctx, c.File, options); err != nil {
			return nil, nil, unread(err)
		}
	}
	warn(std, file)
	c.sayOther(std, path)
	if begun {
		if !file.Partial && !beginsWith(s, file) {
			fmt.Fprintf(std.err, "antiphon: the messages of %s are not those that the session %s began with; it goes on with its own (a session of another name begins anew)\n", printable(c.File), printable(c.Session))
		}
		return file, s, nil
	}
	_, err = s.Append(ctx, file.Log()...)
	return file, s, err
}

// sayOther tells of a session that was named by its id and is not where one
// would look for it.
func (c *runCommand) sayOther(std stdio, path string) {
	info := c.kept.info
	if info.Path != "" && info.Path != path {
		fmt.Fprintf(std.err, "antiphon: the session %s belongs to %s; it goes on with %s\n", printable(info.ID), printable(info.Path), printable(c.File))
	}
	if info.Archived {
		fmt.Fprintf(std.err, "antiphon: the session %s is archived; antiphon sessions archive --undo takes it back\n", printable(info.ID))
	}
}

// lock opens the session to write to it.
func (k *kept) lock(ctx context.Context) (*session.Session, error) {
	s, err := session.Open(ctx, k.store, k.info.ID)
	if err == nil {
		k.unlock, err = s.Lock(ctx)
	}
	return s, err
}

// shortened reports whether an earlier run may have shortened an output, and told
// the model how to read the rest.
func (k *kept) shortened() bool {
	if k == nil {
		return false
	}
	for _, e := range k.log {
		if b, ok := e.Body.(session.Answered); ok && strings.Contains(b.Item.JSON(), tool.ReadOutputName) {
			return true
		}
	}
	return false
}

// named returns the session of that name, or by that id, for the file at path.
// If there is none, it has no ID.
func (c *runCommand) named(ctx context.Context, store keeper, path string) (session.Info, error) {
	for info, err := range store.List(ctx, session.Query{Name: c.Session, Path: path}) {
		return info, err
	}
	info, err := store.Info(ctx, c.Session)
	if errors.Is(err, session.ErrNotFound) {
		if err := checkName(c.Session); err != nil {
			return session.Info{}, usage(err)
		}
		return session.Info{}, nil
	}
	if err == nil && info.Nested {
		return session.Info{}, usage(fmt.Errorf("the session %s is part of %s, and goes on with that; to try something else with it, fork it", info.ID, info.Parent))
	}
	return info, err
}

// begin makes the session of that name for the file at path.
func (c *runCommand) begin(ctx context.Context, store keeper, path string) (session.Info, error) {
	info := session.Info{ID: newSessionID(c.Session), Name: c.Session, Path: path}
	err := store.Create(ctx, info)
	if errors.Is(err, session.ErrExists) {
		return c.named(ctx, store, path) // another process was quicker
	}
	return info, err
}

// beginsWith reports whether a session began with what the file says now.
func beginsWith(s *session.Session, file *agentfile.File) bool {
	log := s.Log()
	for _, body := range file.Log() {
		given, ok := body.(session.Given)
		if !ok {
			continue
		}
		for len(log) > 0 {
			first, ok := log[0].Body.(session.Given)
			if ok && sameItem(first.Item, given.Item) {
				break
			}
			if ok {
				return false
			}
			log = log[1:]
		}
		if len(log) == 0 {
			return false
		}
		log = log[1:]
	}
	return true
}

// sameItem reports whether two items are the same bytes, of which a store may
// hold payloads. None is read for that.
func sameItem(a, b item.Item) bool {
	if a == b || !a.Held() && !b.Held() {
		return a == b
	}
	restA, cutsA, _ := a.Cut(item.LeastPayload)
	restB, cutsB, _ := b.Cut(item.LeastPayload)
	return restA == restB && slices.Equal(cutsA, cutsB)
}

// lastSaid returns the last message of a log that is not the model's.
func lastSaid(s *session.Session) item.Item {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		given, ok := log[i].Body.(session.Given)
		if ok && given.Item.Type() == item.TypeMessage && given.Item.Role() != item.RoleAssistant {
			return given.Item
		}
	}
	return item.Item{}
}

// unanswered reports whether a run that says nothing new would go on.
func unanswered(s *session.Session) bool {
	var state agent.State
	for e := range s.Entries() {
		state.Apply(e)
	}
	state.Apply(session.Entry{Body: session.RunStarted{}})
	stop, ok := state.Next().(agent.Stop)
	return !ok || stop.Why != agent.NothingToSend
}

// resolved returns the path that tells a file from all others: absolute, with
// its links followed.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Validate refuses an empty --session, such as that of a variable that is not
// set: the run would be kept nowhere.
func (c *runCommand) Validate(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "session" && c.Session == "" {
			return errors.New("--session wants a name, and this one is empty")
		}
	}
	return nil
}

const maxName = 64

// checkName refuses what cannot be told apart, typed, or seen.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("a session's name %q: give one without white space around it", name)
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("a session's name has at most %d characters", maxName)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("a session's name %q: it looks like a flag", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || reorders(r) || r == '/' || r == '\\' }):
		return fmt.Errorf("a session's name %q: no slashes or control characters", name)
	}
	return nil
}

// newSessionID returns an id that begins with what can stand in one of the name.
func newSessionID(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == ' ' || r == '.':
			return '-'
		}
		return -1
	}, name)
	slug = strings.Trim(slug[:min(len(slug), 24)], "-")
	if slug == "" {
		slug = "session"
	}
	var random [5]byte
	rand.Read(random[:])
	return slug + "-" + hex.EncodeToString(random[:])
}
