// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file is about what a prompt names behind an @ besides files: other conversations, which are sent with it, and
// subagents, which the model knows by their names.

const (
	// mostNamed is how many sessions are completed, the most recently written ones.
	mostNamed = 100
	// mostSent is how many bytes of another conversation are sent.
	mostSent = 1 << 20
)

// learn finds the names of subagents and, while the conversation goes on, those of other sessions. The function that it
// returns ends that.
func (t *dialogue) learn(ctx context.Context, h *host.Host) (end func()) {
	agents := agentsOf(ctx, h)
	t.named.Store(&agents)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // opening may be over before
	done := make(chan struct{})
	go func() {
		defer close(done)
		all := slices.Clone(agents)
		for info, err := range h.Store.List(ctx, session.Query{Owner: t.conf.Host.Owner, Limit: mostNamed}) {
			if errors.Is(err, session.ErrDamaged) {
				break // a row behind all others
			}
			if err != nil {
				return // then they are not completed
			}
			name := cmp.Or(info.Name, info.ID)
			if info.ID != h.Session.ID() && Nameable(name) && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		t.named.Store(&all)
	}()
	return func() {
		cancel()
		<-done
	}
}

// Nameable reports whether a session can be named behind an @.
func Nameable(name string) bool { return name != "" && !strings.ContainsAny(name, "/ \t\n") }

// agentsOf returns the names of the subagents that the file declares.
func agentsOf(ctx context.Context, h *host.Host) (names []string) {
	a, err := h.File.AgentBy(func(*agentfile.File) (agent.Model, string, error) { return new(responses.Client), "unasked", nil }, nil)
	if err != nil {
		return nil // the first turn says why
	}
	a.ToolSource = nil // servers are not started for this
	set, err := a.ToolSet(ctx)
	if err != nil {
		return nil
	}
	for name, one := range set.All() {
		if tool.AnnotationsOf(one).Subagent {
			names = append(names, name)
		}
	}
	return names
}

// noFile says that a word which looks like the name of a file names none. Other words are for the model.
func (t *dialogue) noFile(name string) {
	if strings.ContainsAny(strings.TrimRight(name, ".,;:!?)"), "./") {
		fmt.Fprintf(t.std.Err, "   @%s names no file, and is sent as text\n", show.Visible(name))
	}
}

// sessionAt returns the conversation of another session that a prompt names, or nil if none has the name, or if the person
// does not want it to be sent. They are asked, because a prompt may be pasted from somebody else, and asked again about a
// session in which more was said since. If a session cannot be sent, a line says why, and its name is text like any other
// word: in a prompt that was pasted, nobody may have meant it. K2
func (t *dialogue) sessionAt(ctx context.Context, name string, asks bool) (item.Part, error) {
	if t.host == nil || t.host.Store == nil || !Nameable(name) {
		t.noFile(name)
		return nil, nil
	}
	isText := func(err error) (item.Part, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fmt.Fprintf(t.std.Err, "   @%s is sent as text, without the session: %s\n", show.Visible(name), show.Visible(t.env.Hide(err.Error())))
		return nil, nil
	}
	info, err := t.sessionNamed(ctx, name)
	if err != nil {
		return isText(err)
	}
	if info.ID == "" || info.ID == t.host.Session.ID() {
		t.noFile(name)
		return nil, nil
	}
	s, err := session.Open(ctx, t.host.Store, info.ID)
	if err != nil {
		return isText(err)
	}
	key := fmt.Sprintf("session %s up to entry %d", info.ID, len(s.Log()))
	text, messages := conversationOf(s)
	switch {
	case messages == 0:
		return isText(errors.New("nothing was said in it yet"))
	case len(text) > mostSent:
		return isText(fmt.Errorf("it has %s, more than %s; antiphon sessions export writes it to a file", show.BytesInWords(len(text)), show.BytesInWords(mostSent)))
	}
	if !t.mayLeave.has(key) && !asks {
		return nil, errors.New("it is asked about when the work is over")
	}
	if !t.mayLeave.has(key) {
		answer, err := t.asked(ctx, fmt.Sprintf("   send what was said in the session %s, %s? [y]es, [n]o: ", show.Visible(name), show.Plural(messages, "message")))
		if err != nil {
			return nil, err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			fmt.Fprintln(t.std.Err, "   "+show.Visible(name)+" is not sent")
			return nil, nil
		}
		t.mayLeave.add(key)
	}
	fmt.Fprintf(t.std.Err, "   with the session %s\n", show.Visible(name))
	return decode.TextPart(name, text), nil
}

// sessionNamed finds the session with a name or an id. Its ID is "" if there is none.
func (t *dialogue) sessionNamed(ctx context.Context, name string) (session.Info, error) {
	in := t.host.Store
	mine := func(info session.Info) bool {
		return !info.Nested && (t.conf.Host.Owner == "" || info.Owner == t.conf.Host.Owner)
	}
	var found []session.Info
	for info, err := range in.List(ctx, session.Query{Name: name, Owner: t.conf.Host.Owner, Limit: 2}) {
		if err != nil {
			return session.Info{}, err
		}
		found = append(found, info)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 2:
		return session.Info{}, errors.New("several sessions have this name; give the id of one, which antiphon sessions list shows")
	}
	info, err := in.Info(ctx, name)
	if errors.Is(err, session.ErrNotFound) || err == nil && !mine(info) {
		return session.Info{}, nil
	}
	return info, err
}

// conversationOf returns what was said in a session, without what a guard has withdrawn, and how many messages that are.
func conversationOf(s *session.Session) (text string, messages int) {
	gone := map[int64]bool{}
	for e := range s.Entries() {
		if b, ok := e.Body.(session.ItemsWithdrawn); ok {
			for _, seq := range b.Seqs {
				gone[seq] = true
			}
		}
	}
	var b strings.Builder
	b.WriteString("What was said in another conversation, without calls of tools. All that somebody said is indented, so that nobody can speak for the other.\n")
	for _, m := range messagesIn(s.Entries()) {
		if gone[m.seq] || strings.TrimSpace(m.text) == "" {
			continue
		}
		messages++
		who := "Model"
		if m.user {
			who = "Person"
		}
		fmt.Fprintf(&b, "\n%s:\n    %s\n", who, lineEnds.Replace(m.text))
	}
	return b.String(), messages
}

// lineEnds begins each line with blanks, whatever ends the one before.
var lineEnds = strings.NewReplacer("\r\n", "\n    ", "\n", "\n    ", "\r", "\n    ", "\v", "\n    ", "\f", "\n    ", "\u0085", "\n    ", "\u2028", "\n    ", "\u2029", "\n    ")
