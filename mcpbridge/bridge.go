// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/tool"
)

// Options vary a bridge. The zero value works.
type Options struct {
	// Reserved are the names of the agent's other tools, which no tool of a
	// server gets.
	Reserved []string
	// AlwaysPrefix calls every tool server__tool, not only those whose names
	// clash.
	AlwaysPrefix bool
	// Roots are directories, as file URIs or absolute paths, that are sent to
	// servers which ask what they may work on. Without any, the bridge does not
	// offer roots.
	Roots []string
	// Files says which media types of audio and files become parts of an
	// output. Others are described in its text. nil takes all.
	Files func(mediaType string) bool
	// Notify is called with what servers do besides answering. It must return soon
	// and may be called from several goroutines at once.
	Notify func(Event)
	// LookupEnv finds the variables that programs get. nil is [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
	// HTTP carries requests to servers. nil is a transport of the bridge's own
	// with the defaults of net/http.
	HTTP http.RoundTripper

	pace *pace // for tests
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	Starting EventKind = "starting" // it takes long to start; Text says how long it may
	Started  EventKind = "started"  // the server is there; Text is its name, version and protocol
	Ended    EventKind = "ended"    // it is gone, not by Close; Text says why
	Changed  EventKind = "changed"  // it has other tools than before
	Progress EventKind = "progress" // a call goes on: Done of Total, and Text
	Log      EventKind = "log"      // the server logs Text
	Stray    EventKind = "stray"    // it printed Text, a line that is not a message and was skipped; the first few are told
	Missing  EventKind = "missing"  // it is optional and could not be started; Text says why
)

// Event is something that a server does besides answering.
type Event struct {
	Server string
	Kind   EventKind
	// Text is for people. It comes from the server, without secrets.
	Text string
	// Call is the call that makes progress. What it tells last may come after
	// its answer.
	Call tool.Call
	// Done and Total are in the server's own measure; Total is 0 when it does
	// not say.
	Done, Total float64
}

// Info tells what a server says of itself.
type Info struct {
	// Name is what the server is called here.
	Name string
	// Title and Version are what it calls itself.
	Title, Version string
	// Protocol is the version of the protocol that is spoken.
	Protocol string
	// Instructions is how it wants to be used, if it says.
	Instructions string
	// Tools counts those that are taken.
	Tools int
	// Up reports whether it is there.
	Up bool
}

// Bridge is a set of servers and their tools. It is safe for concurrent use.
type Bridge struct {
	opts  Options
	pace  pace
	links []*link
	http  http.RoundTripper

	life   context.Context
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	opened  bool // all servers were listed once: names can be given
	closed  bool
	names   *names
	tools   []tool.Tool
	changed chan struct{}
}

// Connect starts the servers, all at once, and lists their tools. If one cannot
// be had, there is no bridge: the error names every server that failed, except
// those that are optional, whose tools are missing. ctx
// bounds the connecting alone; the bridge lives until [Bridge.Close].
func Connect(ctx context.Context, opts Options, servers ...Server) (*Bridge, error) {
	b := &Bridge{opts: opts, pace: defaultPace, names: newNames(opts.AlwaysPrefix, opts.Reserved), changed: make(chan struct{})}
	if opts.pace != nil {
		b.pace = *opts.pace
	}
	if b.opts.LookupEnv == nil {
		b.opts.LookupEnv = os.LookupEnv
	}
	if b.http = opts.HTTP; b.http == nil {
		b.http = http.DefaultTransport.(*http.Transport).Clone()
	}
	b.life, b.cancel = context.WithCancelCause(context.Background())
	if err := b.addLinks(servers); err != nil {
		return nil, err
	}
	failures := make([]error, len(b.links))
	var wg sync.WaitGroup
	for i, l := range b.links {
		wg.Go(func() {
			slow := time.AfterFunc(b.pace.slow, l.sayStarting)
			failures[i] = l.open(ctx)
			slow.Stop()
		})
	}
	wg.Wait()
	for i, l := range b.links {
		if failures[i] != nil && l.server.Optional && ctx.Err() == nil && !l.up() {
			b.notify(Event{Server: l.server.Name, Kind: Missing, Text: failures[i].Error()})
			failures[i] = nil
		}
	}
	if err := errors.Join(failures...); err != nil {
		b.Close()
		return nil, err
	}
	b.mu.Lock()
	b.opened = true
	b.mu.Unlock()
	b.rebuild()
	return b, nil
}

func (b *Bridge) addLinks(servers []Server) error {
	servers, err := complete(servers)
	for _, s := range servers {
		b.links = append(b.links, newLink(b, s))
	}
	return err
}

// complete checks the servers and sees that no two are called the same.
func complete(servers []Server) (list []Server, err error) {
	seen := map[string]bool{}
	for _, s := range servers { // those that have a name keep it
		if s.Name != "" && seen[label(s.Name)] {
			return nil, fmt.Errorf("MCP server %s: another is called so too", s.Name)
		}
		seen[label(s.Name)] = s.Name != ""
	}
	for _, s := range servers {
		given := s.Name != ""
		if s, err = s.complete(); err != nil {
			return nil, err
		}
		for name, n := s.Name, 2; !given && seen[label(s.Name)]; n++ {
			s.Name = fmt.Sprintf("%s-%d", name, n)
		}
		seen[label(s.Name)] = true
		list = append(list, s)
	}
	return list, nil
}

// ServerNames checks servers as [Connect] does, and returns what it calls each.
func ServerNames(servers ...Server) (list []string, err error) {
	servers, err = complete(servers)
	for _, s := range servers {
		list = append(list, s.Name)
	}
	return list, err
}

// Tools returns the tools that there are now, in the order of the servers and
// as each lists its own. A tool that did not change is the same value as
// before.
func (b *Bridge) Tools() []tool.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tools)
}

// Changed returns a channel that is closed when [Bridge.Tools] has other tools
// than now.
func (b *Bridge) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Refresh waits until what servers have announced as changed is listed again, at
// most for a few seconds. It is for the moment between two turns. A server that
// does not answer keeps the tools that it had.
func (b *Bridge) Refresh(ctx context.Context) error {
	var failures []error
	for _, l := range b.links {
		failures = append(failures, l.refresh(ctx))
	}
	return errors.Join(failures...)
}

// Origin returns which server the tool comes from that a model calls by the
// name, and what it is called there.
func (b *Bridge) Origin(name string) (server, toolName string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for o, given := range b.names.given {
		if given == name {
			return o.server, o.tool, true
		}
	}
	return "", "", false
}

// Servers tells what the servers say of themselves.
func (b *Bridge) Servers() []Info {
	var list []Info
	for _, l := range b.links {
		list = append(list, l.info())
	}
	return list
}

// Close ends all servers, calls that are under way too, and returns when they
// are gone: a program is given a moment, then it and all that it started are
// ended.
func (b *Bridge) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if first {
		b.cancel(errClosed)
	}
	for _, l := range b.links {
		l.close()
	}
	b.tasks.Wait()
	if t, ok := b.http.(*http.Transport); ok && b.opts.HTTP == nil {
		t.CloseIdleConnections()
	}
	return nil
}

// background runs a task that Close waits for, unless the bridge is closed.
func (b *Bridge) background(task func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.tasks.Go(func() { task(b.life) })
	}
}

// rebuild makes the list of tools anew and tells whoever waits for it.
func (b *Bridge) rebuild() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.opened {
		return
	}
	var origins []origin
	for _, l := range b.links {
		for _, t := range l.listed() {
			origins = append(origins, origin{l.server.Name, t.name})
		}
	}
	b.names.assign(origins)
	var list []tool.Tool
	for _, l := range b.links {
		for _, t := range l.listed() {
			list = append(list, t.named(b.names.given[origin{l.server.Name, t.name}]))
		}
	}
	if slices.Equal(list, b.tools) {
		return
	}
	b.tools = list
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Bridge) notify(ev Event) {
	if b.opts.Notify != nil {
		b.opts.Notify(ev)
	}
}
