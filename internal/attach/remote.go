// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
)

// serverKey is the variable with the key for servers.
const serverKey = "ANTIPHON_SERVER_KEY"

// Remote is a session at a server.
type Remote struct {
	Client *sessions.Client
	ID     string
	Host   string // of the server

	most int // how many bytes of a log are kept

	mu    sync.Mutex
	state sessions.Session // as the server told last
}

// IsAddress reports whether --attach names a session at a server.
func IsAddress(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// remoteClient returns a client for the server of an address such as
// https://HOST/NAME, and the name of the session.
func remoteClient(address string, env host.Environment) (*sessions.Client, string, error) {
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

// Refused explains what the server refuses.
func (r *Remote) Refused(err error) error {
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
	return usage(fmt.Errorf("the server %s: %s", show.Visible(r.Host), text))
}

const (
	// mostFromServer is how many bytes of a log are taken from a server at a time.
	mostFromServer = 1 << 30
	// mostOfLog is how many bytes of it are kept: a server can send a log without an end.
	mostOfLog = 64 << 20
	// longLog is the size from which on a person is told that the log is still being read.
	longLog = 16 << 20
)

// Entries returns the end of a log, as much of it as is kept.
func (r *Remote) Entries(ctx context.Context, id string) ([]session.Entry, error) {
	return r.Read(ctx, id, func(session.Entry) {}, func() {})
}

// Read returns the end of a log, as much of it as is kept, and passes what comes before it to
// another function. It calls long once if the log is long, before it has all of it.
func (r *Remote) Read(ctx context.Context, id string, before func(session.Entry), long func()) (log []session.Entry, err error) {
	var sizes []int
	all, kept := 0, 0
	for ev, err := range r.Client.Read(ctx, r.ID, id, 0) {
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

// Watch implements [Source].
func (r *Remote) Watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for ev, err := range r.Client.Watch(ctx, r.ID, id, after) {
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
func (r *Remote) tell(ev sessions.Event) {
	if ev.Session == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = *ev.Session
}

// Say implements [Source].
func (r *Remote) Say(ctx context.Context, later bool, said ...item.Item) error {
	for _, it := range said {
		m, err := item.As[item.Message](it)
		if err != nil {
			return err
		}
		content := m.Content
		if len(content.Parts) == 1 { // which earlier versions of the server understand
			content = item.Text(content.Display())
		}
		if _, err := r.Client.SayContent(ctx, r.ID, content, later); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements [Source].
func (r *Remote) Stop(ctx context.Context) error {
	_, err := r.Client.Stop(ctx, r.ID, askedAt(), false)
	return err
}

// Pending implements [Source].
func (r *Remote) Pending(ctx context.Context) ([]agent.PendingApproval, error) {
	s, err := r.Client.Get(ctx, r.ID)
	return s.Pending, err
}

// Answer implements [Source].
func (r *Remote) Answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error {
	d.Session, d.Number, d.CallID = p.Session, p.Number, p.CallID
	return r.Client.Answer(ctx, r.ID, d)
}

// Look never says that the session is gone: what this terminal could go on with is not here.
func (r *Remote) Look(context.Context, int64, bool) (asks []agent.PendingApproval, gone bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state.Pending), false, nil
}

// Rests reports whether no process works on the session, as far as the server knows.
func (r *Remote) Rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Status == sessions.StatusIdle || r.state.Status == sessions.StatusInterrupted
}

// Dial finds the session at an address such as https://HOST/NAME. The key for it is in the environment.
func Dial(ctx context.Context, address string, env host.Environment) (*Remote, error) {
	client, name, err := remoteClient(address, env)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(client.URL)
	if err != nil {
		return nil, err
	}
	found, err := reach(ctx, client, name)
	r := NewRemote(client, found)
	r.Host = u.Host
	if err != nil {
		return nil, r.Refused(err)
	}
	return r, nil
}

// NewRemote returns the session that a client has found.
func NewRemote(client *sessions.Client, found sessions.Session) *Remote {
	return &Remote{Client: client, ID: found.ID, most: mostOfLog, state: found}
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
