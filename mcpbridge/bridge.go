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

// Options configure a bridge. The zero value is ready for use.
type Options struct {
	// Reserved are the names of the agent's other tools. No tool of a server gets such
	// a name.
	Reserved []string
	// AlwaysPrefix names every tool server__tool, not only those with conflicting
	// names.
	AlwaysPrefix bool
	// Roots are directories, as file URIs or absolute paths, that are sent to servers
	// that ask for them. Without any, the bridge does not offer roots.
	Roots []string
	// Files reports which media types of audio and files become parts of an output.
	// Others are described in its text. Nil accepts all.
	Files func(mediaType string) bool
	// Notify is called with the events of servers. It must return soon and may be
	// called concurrently.
	Notify func(Event)
	// LookupEnv returns the environment variables for programs. Nil means
	// [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
	// HTTP sends requests to servers. Nil means a separate transport with the defaults
	// of net/http.
	HTTP http.RoundTripper

	pace *pace // for tests
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	Starting EventKind = "starting" // the start takes long; Text gives the limit
	Started  EventKind = "started"  // the server is running; Text is its name, version and protocol
	Ended    EventKind = "ended"    // the server ended, but not by Close; Text says why
	Changed  EventKind = "changed"  // its tools have changed
	Progress EventKind = "progress" // progress of a call: Done of Total, and Text
	Log      EventKind = "log"      // the server logs Text
	Stray    EventKind = "stray"    // it printed Text, a line that is not a message and was skipped; only the first few are reported
	Planted  EventKind = "planted"  // its program, which has ended, left what other programs obey; Text says what, see [sandbox.Run.Planted]
	Missing  EventKind = "missing"  // the server is optional and could not be started; Text says why
)

// Event is something that a server does besides answering calls.
type Event struct {
	Server string
	Kind   EventKind
	// Text is for people. It comes from the server; secrets are removed.
	Text string
	// Call is the call that makes progress. Its last progress may arrive after its
	// answer.
	Call tool.Call
	// Done and Total are in the server's own unit; Total is 0 if the server does not
	// give it.
	Done, Total float64
}

// Info describes a server.
type Info struct {
	// Name is the bridge's name for the server.
	Name string
	// Title and Version are given by the server.
	Title, Version string
	// Protocol is the negotiated version of the protocol.
	Protocol string
	// Instructions are the server's instructions for its use, or "".
	Instructions string
	// Tools is the number of selected tools.
	Tools int
	// Up reports whether the server is running.
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
	opened  bool // all servers were listed once: names can be assigned
	closed  bool
	names   *names
	tools   []tool.Tool
	changed chan struct{}
}

// Connect starts all servers concurrently and lists their tools. If a server fails,
// Connect returns no bridge, and the error names every server that failed. Failures
// of optional servers are not errors; their tools are missing. ctx limits only the
// connecting; the bridge lives until [Bridge.Close].
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
		_ = b.Close()
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
		if len(s.Command) > 0 {
			s.holdTools(pathOf(s.environment(b.opts.LookupEnv)))
		}
		b.links = append(b.links, newLink(b, s))
	}
	return err
}

// complete checks the servers and makes their names unique.
func complete(servers []Server) (list []Server, err error) {
	seen := map[string]bool{}
	for _, s := range servers { // given names are kept
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

// ServerNames checks servers like [Connect], and returns their names.
func ServerNames(servers ...Server) (list []string, err error) {
	servers, err = complete(servers)
	for _, s := range servers {
		list = append(list, s.Name)
	}
	return list, err
}

// Tools returns the current tools, in the order of the servers and of each server's
// list. A tool that did not change is the same value as before.
func (b *Bridge) Tools() []tool.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tools)
}

// Changed returns a channel that is closed when [Bridge.Tools] changes.
func (b *Bridge) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Refresh waits, at most a few seconds, until announced changes of tools have been
// listed. Call it between two turns. A server that does not answer keeps its
// previous tools.
func (b *Bridge) Refresh(ctx context.Context) error {
	var failures []error
	for _, l := range b.links {
		failures = append(failures, l.refresh(ctx))
	}
	return errors.Join(failures...)
}

// Origin returns the server of the tool that a model calls by the given name, and
// the tool's name at the server.
func (b *Bridge) Origin(name string) (server, toolName string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		return "", "", false
	}
	for o, given := range b.names.given {
		if given == name {
			return o.server, o.tool, true
		}
	}
	return "", "", false
}

// Servers describes the servers.
func (b *Bridge) Servers() []Info {
	var list []Info
	for _, l := range b.links {
		list = append(list, l.info())
	}
	return list
}

// Close ends all servers and running calls, and returns when the servers have ended.
// A program gets a moment to end; then it and all its children are killed.
func (b *Bridge) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if first && b.cancel != nil {
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

// rebuild makes the list of tools anew and wakes the waiters.
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
