// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// session is a running server after the handshake, until it ends.
type session struct {
	link *link
	cs   *mcp.ClientSession
	proc *process // nil over HTTP
	http *carrier // nil over stdio

	life    context.Context // ends with the session; its cause is the reason
	cancel  context.CancelCauseFunc
	wire    context.Context // ends after the server was told of the end
	hangUp  context.CancelFunc
	gone    chan struct{} // closed when everything of it has ended
	counted bool          // guarded by link.mu

	answered atomic.Bool // at least one call was answered
	probing  atomic.Bool

	mu    sync.Mutex
	token int
	calls map[string]tool.Call // by progress token
}

// lastInitialize is the newest protocol version that begins with a handshake. It is
// tried with a server that fails with the newer beginning.
const lastInitialize = "2025-11-25"

// dial starts the server and makes the handshake.
func (l *link) dial(ctx context.Context) (*session, error) {
	deadline, _ := ctx.Deadline()
	first, cancel := context.WithDeadline(ctx, time.Now().Add(time.Until(deadline)/2))
	defer cancel()
	s, err := l.dialVersion(first, l.server.Protocol)
	if err == nil || ctx.Err() != nil || l.server.Protocol != "" || !worthAnother(err) {
		return s, err
	}
	if s, again := l.dialVersion(ctx, lastInitialize); again == nil {
		return s, nil
	}
	return nil, err
}

// errNotStarted marks a program that could not be started at all.
var errNotStarted = errors.New("not started")

// worthAnother reports whether an older protocol version might succeed.
func worthAnother(err error) bool {
	var stray *StrayOutputError
	_, refused := wireError(err)
	return !errors.Is(err, errNotStarted) && !errors.As(err, &stray) && !refused
}

func (l *link) dialVersion(ctx context.Context, version string) (*session, error) {
	s := &session{link: l, gone: make(chan struct{}), calls: map[string]tool.Call{}}
	s.life, s.cancel = context.WithCancelCause(l.bridge.life)
	s.wire, s.hangUp = context.WithCancel(context.Background())
	transport, err := s.transport()
	if err != nil {
		s.cancel(err)
		s.hangUp()
		return nil, &ServerError{Server: l.server.Name, Problem: "cannot be started: " + l.server.hideAll(err.Error()), Err: errors.Join(errNotStarted, err)}
	}
	greeted := make(chan error, 1)
	go func() {
		var err error
		s.cs, err = s.client().Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		greeted <- err
	}()
	select {
	case err = <-greeted:
	case <-ctx.Done():
		s.abandon(ctx.Err())
		if err = <-greeted; err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		s.abandon(err)
		problem := "could not be started"
		if s.proc == nil {
			problem = "could not be reached"
		}
		// Once the time is over, the error may be that of the connection that was given up.
		if (isDone(err) || ctx.Err() != nil) && l.bridge.life.Err() == nil {
			problem += fmt.Sprintf(" within %v", l.server.StartTimeout)
		} else if s.http != nil && s.http.status.Load() != 0 {
			problem = s.http.unwelcome()
		}
		err = s.explain(err, problem)
		if s.cs != nil {
			_ = s.cs.Close()
		}
		close(s.gone)
		return nil, err
	}
	l.bridge.tasks.Go(s.watch) // an attempt is under way, so nobody waits for the tasks yet
	l.bridge.notify(Event{Server: l.server.Name, Kind: Started, Text: s.title()})
	return s, nil
}

// transport starts the program, or prepares the requests.
func (s *session) transport() (mcp.Transport, error) {
	server := &s.link.server
	var err error
	if len(server.Command) == 0 {
		s.http, err = newCarrier(s.wire, server, s.link.bridge.http, s.link.bridge.pace.stream, s.link.outdated)
		if err != nil {
			return nil, err
		}
		return s.http.transport(), nil
	}
	s.proc, err = startProcess(server, s.link.bridge.opts.LookupEnv, s.link.outdated, func(kind EventKind, text string) {
		s.link.bridge.notify(Event{Server: server.Name, Kind: kind, Text: s.said(text)})
	})
	return s.proc, err
}

// abandon ends everything that a handshake waits for.
func (s *session) abandon(err error) {
	s.cancel(err)
	s.hangUp()
	if s.proc != nil {
		s.proc.end(s.link.bridge.pace.grace)
	}
}

// watch waits for the end of the session, whatever its cause, and cleans up.
func (s *session) watch() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := s.cs.Wait(); err != nil && s.proc == nil {
			s.cancel(err)
		}
		s.cancel(io.EOF) // more is known about a program
	}()
	<-s.life.Done()
	if s.proc != nil {
		s.proc.end(s.link.bridge.pace.grace)
	}
	late := time.AfterFunc(s.link.bridge.pace.grace, s.hangUp)
	_ = s.cs.Close()
	late.Stop()
	s.hangUp()
	<-over
	if cause := s.cause(); !errors.Is(cause, errClosed) { // not our own close
		s.link.bridge.notify(Event{Server: s.link.server.Name, Kind: Ended, Text: cause.Error()})
	}
	close(s.gone)
}

// end ends the session.
func (s *session) end(cause error) { s.cancel(cause) }

// over reports whether the session has ended or is about to.
func (s *session) over() bool { return s.life.Err() != nil }

// What a server may have of tools that are selected. All of it is in each request to the model.
const (
	mostTools   = 10_000
	mostDefined = 8 << 20 // bytes of names, descriptions and schemas
)

var tooManyTools = fmt.Sprintf("a list of more than %d tools, or they are described by more than %d MiB", mostTools, mostDefined>>20)

// list requests the selected tools.
func (s *session) list(ctx context.Context) ([]*listedTool, error) {
	const maxPages = 1000
	list := []*listedTool{}
	seen := map[string]bool{}
	cursors, size := map[string]bool{}, 0
	ctx, cancel := s.bind(ctx)
	defer cancel()
	for cursor := ""; ; {
		page, err := s.cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if t == nil || seen[t.Name] || !s.link.server.takes(t.Name) {
				continue
			}
			seen[t.Name] = true
			list = append(list, newListedTool(s.link, t))
			if size += list[len(list)-1].size(); len(list) > mostTools || size > mostDefined {
				return nil, errors.New("it sent " + tooManyTools)
			}
		}
		cursor = page.NextCursor
		if cursor == "" {
			return list, nil
		}
		if cursors[cursor] || len(cursors) > maxPages {
			return nil, fmt.Errorf("its list of tools has no end")
		}
		cursors[cursor] = true
	}
}

// bind returns a context that also ends with the session.
func (s *session) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// call makes one call. Over HTTP it notes in sent what became of its requests.
func (s *session) call(ctx context.Context, name string, call tool.Call, sent *sending) (*mcp.CallToolResult, error) {
	bound, cancel := s.bind(context.WithValue(ctx, sendingKey{}, sent))
	defer cancel()
	params := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage("{}")}
	if strings.TrimSpace(call.Arguments) != "" {
		params.Arguments = json.RawMessage(call.Arguments)
	}
	if s.link.bridge.opts.Notify != nil {
		params.SetProgressToken(s.follow(call))
	}
	res, err := s.cs.CallTool(bound, params)
	if _, refused := wireError(err); err == nil || refused {
		s.answered.Store(true)
	}
	return res, err
}

// unsent reports whether a call certainly did not reach the server, because the
// connection was broken before. The end of the program's output is another error: a call
// that waits for its answer gets it.
func (s *session) unsent(err error) bool {
	return s.proc != nil && (errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, errNotSent))
}

// forgotten reports whether a call over HTTP did not run because the server does not know
// the session. The SDK gives up a session, and every call in it, when any request is refused
// because of the session, so a call whose own request the server did not turn away may run.
// One that was turned away, or was not sent, failed for this reason if the SDK says so, if
// the server refuses even a ping in the same way, or if the SDK has given up the session.
func (s *session) forgotten(ctx context.Context, err error, sent *sending) bool {
	switch {
	case s.http == nil || sent.accepted():
		return false
	case errors.Is(err, mcp.ErrSessionMissing):
		return true
	case sent.made.Load() > 0 && !sent.unknown.Load():
		return false
	}
	ping := new(sending)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, sendingKey{}, ping), s.link.bridge.pace.ping)
	defer cancel()
	err = s.cs.Ping(ctx, nil)
	return ping.unknown.Load() || errors.Is(err, mcp.ErrConnectionClosed)
}

// said returns a text of the server for people.
func (s *session) said(text string) string { return short(s.clean(text)) }

func (s *session) clean(text string) string {
	text, _ = output.Sanitize(s.link.server.hideAll(text))
	return text
}

// probe pings a server after a call timed out, and ends it if it does not answer, so
// that the next call starts it again.
func (s *session) probe() {
	if !s.probing.CompareAndSwap(false, true) {
		return
	}
	s.link.bridge.background(func(ctx context.Context) {
		defer s.probing.Store(false)
		ctx, cancel := context.WithTimeout(ctx, s.link.bridge.pace.ping)
		defer cancel()
		bound, release := s.bind(ctx)
		defer release()
		err := s.cs.Ping(bound, nil)
		if _, refused := wireError(err); err == nil || refused || s.over() {
			return
		}
		s.end(errors.New("it hung: it answered neither a call nor a ping"))
	})
}

func (s *session) title() string {
	var info Info
	s.describe(&info)
	name := strings.TrimSpace(info.Title + " " + info.Version) // some servers have no version
	return s.said(fmt.Sprintf("%s, protocol %s", name, info.Protocol))
}

func (s *session) describe(info *Info) {
	if r := s.cs.InitializeResult(); r != nil {
		info.Protocol, info.Instructions = r.ProtocolVersion, s.link.server.hide(r.Instructions)
		if r.ServerInfo != nil {
			info.Title, info.Version = r.ServerInfo.Name, r.ServerInfo.Version
		}
	}
}

// explain turns an error of the SDK into a [ServerError] with the known state of the
// server.
func (s *session) explain(err error, problem string) error {
	e := &ServerError{Server: s.link.server.Name, Err: err, Problem: problem}
	if s.http != nil {
		e.Status = int(s.http.status.Load())
	}
	if why := s.why(err); why != "" && why != http.StatusText(e.Status) {
		e.Problem += ": " + why
	}
	if s.proc != nil {
		if line := s.proc.strayLine(); line != "" && !strings.Contains(e.Problem, notMessage) {
			e.Problem += "; before, it " + (&StrayOutputError{Line: beginning([]byte(s.clean(line)), maxStray)}).Error()
		}
	}
	if s.proc != nil {
		if lacked := s.proc.run.Lacked(s.proc.stderr.all()); lacked != "" {
			e.Problem += "; " + s.clean(lacked)
		}
		e.Stderr = s.proc.stderr.show(s.clean)
	}
	return e
}

// exitWait is how long to wait for the exit status of a program that closed its
// output.
const exitWait = 250 * time.Millisecond

// why returns the reason why a call failed.
func (s *session) why(err error) string {
	switch cause := context.Cause(s.life); {
	case errors.Is(cause, errClosed):
		return cause.Error()
	case isDone(cause), cause == nil && isDone(err):
		return "it did not answer in time"
	case cause != nil && cause != io.EOF && cause != err:
		return s.said(plain(cause))
	}
	if s.proc != nil && s.brokeOff(err) {
		timer := time.NewTimer(exitWait)
		defer timer.Stop()
		select {
		case <-s.proc.exited:
		case <-timer.C:
		}
		state, fault := s.proc.condition()
		switch {
		case fault != nil:
			var stray *StrayOutputError
			if errors.As(fault, &stray) {
				return "it " + s.link.server.hideAll(stray.Error())
			}
			return "it " + fault.Error()
		case state != "":
			return "its program ended: " + state
		}
		return "it closed its output"
	}
	return s.said(plain(err))
}

// brokeOff reports whether an error comes from the end of the connection. The
// failure of a single HTTP request does not count.
func (s *session) brokeOff(err error) bool {
	if s.over() || errors.Is(err, mcp.ErrConnectionClosed) {
		return true
	}
	if s.proc == nil {
		return false
	}
	_, fault := s.proc.condition()
	return fault != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed)
}

// cause returns the reason why the session is over.
func (s *session) cause() error {
	err := context.Cause(s.life)
	if err == nil || err == io.EOF {
		if s.proc != nil {
			return errors.New(s.why(io.EOF))
		}
		return errors.New("the connection ended")
	}
	return err
}
