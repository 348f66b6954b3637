// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
)

// serverKey is the variable with the key for servers.
const serverKey = "ANTIPHON_SERVER_KEY"

// remote is a session at a server.
type remote struct {
	client *sessions.Client
	id     string
	most   int // how many bytes of a log are kept

	mu    sync.Mutex
	state sessions.Session // as the server told last
}

// isAddress reports whether --attach names a session at a server.
func isAddress(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// remoteClient returns a client for the server of an address such as
// https://HOST/NAME, and the name of the session.
func remoteClient(address string, env environment) (*sessions.Client, string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", usage(errors.New("--attach: not an address such as https://agents.example.com/NAME"))
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	cut := strings.LastIndexByte(path, '/')
	if cut < 0 || cut == len(path)-1 {
		return nil, "", usage(fmt.Errorf("--attach %s: name the session behind the server, as in %s://%s/NAME", show.Visible(u.Redacted()), u.Scheme, show.Visible(u.Host)))
	}
	name, err := url.PathUnescape(path[cut+1:])
	if err != nil {
		return nil, "", usage(fmt.Errorf("--attach: %w", err))
	}
	base := *u
	base.Path, base.RawPath = "", ""
	if base.Path, err = url.PathUnescape(path[:cut]); err != nil {
		return nil, "", usage(fmt.Errorf("--attach: %w", err))
	}
	c := &sessions.Client{URL: base.String(), Key: env[serverKey], Limit: mostFromServer}
	if err := sessions.CheckURL(c.URL); err != nil {
		return nil, "", usage(fmt.Errorf("--attach: %w", err))
	}
	return c, name, nil
}

// refusedThere explains what a server refuses.
func refusedThere(err error, host string) error {
	var refused *server.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := show.Printable(refused.Message)
	switch {
	case refused.Status == http.StatusUnauthorized:
		text += "\n  hint: put the key into $" + serverKey + "; antiphon keys create NAME --scopes sessions,approve makes one at the server"
	case refused.Code == "unknown_url":
		text = "it has no sessions for front ends: it has no keys, serves no agents, or is of an earlier version"
	}
	return usage(fmt.Errorf("the server %s: %s", show.Visible(host), text))
}

const (
	// mostFromServer is how many bytes of a log are taken from a server at a time.
	mostFromServer = 1 << 30
	// mostOfLog is how many bytes of it are kept: a server can send a log without an end.
	mostOfLog = 64 << 20
	// longLog is the size from which on a person is told that the log is still being read.
	longLog = 16 << 20
)

// entries returns the end of a log, as much of it as is kept.
func (r *remote) entries(ctx context.Context, id string) ([]session.Entry, error) {
	return r.read(ctx, id, func(session.Entry) {}, func() {})
}

// read returns the end of a log, as much of it as is kept, and passes what comes before it to
// another function. It calls long once if the log is long, before it has all of it.
func (r *remote) read(ctx context.Context, id string, before func(session.Entry), long func()) (log []session.Entry, err error) {
	var sizes []int
	all, kept := 0, 0
	for ev, err := range r.client.Read(ctx, r.id, id, 0) {
		if err != nil {
			return nil, err
		}
		r.tell(ev)
		if ev.Entry == nil {
			continue
		}
		if all < longLog && all+ev.Size >= longLog {
			long()
		}
		all, kept = all+ev.Size, kept+ev.Size
		log, sizes = append(log, *ev.Entry), append(sizes, ev.Size)
		drop := 0
		for ; kept > r.most && drop < len(log)-1; drop++ {
			before(log[drop])
			log[drop] = session.Entry{}
			kept -= sizes[drop]
		}
		log, sizes = log[drop:], sizes[drop:]
	}
	return log, ctx.Err()
}

func (r *remote) watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for ev, err := range r.client.Watch(ctx, r.id, id, after) {
			if err != nil {
				yield(nil, err)
				return
			}
			r.tell(ev)
			if ev.Entry != nil && !yield(agent.Recorded{Entry: *ev.Entry}, nil) {
				return
			}
			if ev.Text != nil && !yield(agent.Delta{Kind: agent.DeltaText, Text: ev.Text.Text}, nil) {
				return
			}
		}
	}
}

// tell keeps what the server says of the session.
func (r *remote) tell(ev sessions.Event) {
	if ev.Session == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = *ev.Session
}

func (r *remote) say(ctx context.Context, later bool, said ...item.Item) error {
	for _, it := range said {
		m, err := item.As[item.Message](it)
		if err != nil {
			return err
		}
		content := m.Content
		if len(content.Parts) == 1 { // which earlier versions of the server understand
			content = item.Text(content.Display())
		}
		if _, err := r.client.SayContent(ctx, r.id, content, later); err != nil {
			return err
		}
	}
	return nil
}

func (r *remote) stop(ctx context.Context) error {
	_, err := r.client.Stop(ctx, r.id, askedAt(), false)
	return err
}

func (r *remote) pending(ctx context.Context) ([]agent.PendingApproval, error) {
	s, err := r.client.Get(ctx, r.id)
	return s.Pending, err
}

func (r *remote) answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error {
	d.Session, d.Number, d.CallID = p.Session, p.Number, p.CallID
	return r.client.Answer(ctx, r.id, d)
}

// look never says that the session is gone: what this terminal could go on with is not here.
func (r *remote) look(context.Context, int64, bool) (asks []agent.PendingApproval, gone bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state.Pending), false, nil
}

// rests reports whether no process works on the session, as far as the server knows.
func (r *remote) rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Status == sessions.StatusIdle || r.state.Status == sessions.StatusInterrupted
}

// runRemote shows a session at a server until the person leaves.
func (c *chatCommand) runRemote(ctx context.Context, std stdio, env environment, in, out *os.File) error {
	if c.File != "" {
		return usage(errors.New("--attach needs no FILE: the session names its own"))
	}
	client, name, err := remoteClient(c.Attach, env)
	if err != nil {
		return err
	}
	u, err := url.Parse(client.URL)
	if err != nil {
		return err
	}
	found, err := reach(ctx, client, name)
	if err != nil {
		return refusedThere(err, u.Host)
	}
	t := &dialogue{tooled: map[int64]bool{}, chat: c, run: &runCommand{}, env: env, colour: !c.Plain && env["NO_COLOR"] == ""}
	// The id names files of this machine, so it is not that of the server.
	t.info = session.Info{ID: "remote-" + session.Fingerprint(client.URL+"\n"+found.ID), Name: c.Attach}
	if ctx, err = t.sit(ctx, std, in, out); err != nil {
		return err
	}
	client.Lost = func(err error) {
		if err == nil {
			fmt.Fprintf(t.std.err, "antiphon: connected to %s again\n", show.Visible(u.Host))
			return
		}
		fmt.Fprintf(t.std.err, "antiphon: the connection to %s is lost (%s); trying again\n", show.Visible(u.Host), show.Printable(env.Hide(err.Error())))
	}
	err = t.guarded(func() error {
		return refusedThere(t.visitRemote(ctx, &remote{client: client, id: found.ID, most: mostOfLog, state: found}, u.Host), u.Host)
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(err, t.face.close())
	if t.undraft(); t.left {
		fmt.Fprintf(std.err, "antiphon: left %s; antiphon chat --attach %s returns\n", show.Printable(c.Attach), quoted(c.Attach))
	}
	return err
}

// reach finds the session. A server that does not answer now is an error, and is not waited
// for.
func reach(ctx context.Context, client *sessions.Client, name string) (sessions.Session, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	client.Lost = func(err error) {
		if err != nil {
			end()
		}
	}
	return client.Get(ctx, name)
}

// visitRemote is like visit for a session at a server.
func (t *dialogue) visitRemote(ctx context.Context, r *remote, host string) error {
	t.printer(func(func(session.Entry) bool) {})
	v := &visitor{t: t, there: r, attached: &attached{std: t.std, who: t.who, src: r, info: session.Info{ID: r.id}, show: t.print, asked: map[string]bool{}}}
	log, err := r.read(ctx, r.id, func(e session.Entry) {
		v.passes(e)
		t.count(e)
	}, func() {
		fmt.Fprintf(t.std.err, "antiphon: the log of %s is long; it is being read\n", show.Printable(t.name()))
	})
	if err != nil {
		return err
	}
	if v.shown > 0 {
		fmt.Fprintf(t.std.err, "antiphon: the log is too long for this terminal: its first %d entries are counted and not kept\n", v.shown)
	}
	kept := v.shown
	if err := v.begin(ctx, log); err != nil {
		return err
	}
	v.counted(log[:v.shown-kept], true)
	fmt.Fprintf(t.std.err, "antiphon: attached to %s: what you type is said to it, Esc stops its work, and leaving leaves it as it is\n", show.Printable(t.name()))
	if v.began {
		v.works(ctx)
	} else if v.asks, err = r.pending(ctx); err != nil {
		return err
	}
	defer v.rests()
	staying, end := t.untilLeft(ctx) // a request to a server that is gone is repeated until then
	defer end()
	err = v.stay(staying)
	if staying.Err() != nil && ctx.Err() == nil {
		return v.leave(ctx)
	}
	return err
}
