// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// Client uses the routes of a server. Set the fields before the first request; then it is
// safe for concurrent use.
//
// Its methods return what the server refuses as a [*server.Error]. A request that got no
// answer, or one of 502 to 504, is sent again, with pauses, until ctx is done: a delivery has a key, so it counts
// once.
type Client struct {
	// URL is the address of the server, such as https://agents.example.com, with the path
	// in front of /antiphon if it has one. http is only for loopback.
	URL string
	// Key is the server's key for this client, or "". It is sent to the host of URL alone:
	// the Client follows no redirects.
	Key string
	// Transport sends requests. Nil means [http.DefaultTransport].
	Transport http.RoundTripper
	// Lost is called with the reason when the server cannot be reached, once for each time,
	// and with nil when it answers again. It may be nil. Calls may come from any goroutine
	// that uses the Client.
	Lost func(err error)
	// Patience is how long the server may send nothing of a stream, not even a comment,
	// until the connection counts as lost. 0 means 45 seconds.
	Patience time.Duration
	// Limit is how many bytes of events one call of Read or Watch takes, over all its
	// connections; 0 means no limit. What the server sends beyond it ends the call with
	// [ErrLimit].
	Limit int64

	link link
}

// Event is an event of a session: one of Entry, Session and Text is set.
type Event struct {
	// Entry is an entry of the log.
	Entry *session.Entry
	// Session is what the session is like now.
	Session *Session
	// Text is more of a message that the model writes, if the server runs the session itself.
	// No piece is yielded twice, also if the connection was lost meanwhile.
	Text *Text
	// Size is the length of the event's data as the server sent it, in bytes.
	Size int
}

// ErrLimit is the error of a server that sends more than [Client].Limit.
var ErrLimit = errors.New("the server sends more events than the limit allows")

// usualPatience is three times the silence of a server.
const usualPatience = 3 * usualSilence

// mostAnswer is the largest answer that is not a stream, and the largest entry, in bytes.
const mostAnswer = 256 << 20

// CheckURL returns an error for an address that a Client does not use.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("not an address such as https://agents.example.com")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("%q is not an address such as https://agents.example.com", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address has a user, a query or a fragment; a key is never part of it")
	case u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		return fmt.Errorf("http is for loopback alone, because nothing would be encrypted: use https://%s", u.Host)
	}
	return nil
}

// List returns a page of the sessions: the first one, or the one after Next of another. limit is how many; 0 means 20.
func (c *Client) List(ctx context.Context, after string, limit int) (p Page, err error) {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return p, c.call(ctx, http.MethodGet, "", q, nil, &p)
}

// Get returns a session, by its id or its name.
func (c *Client) Get(ctx context.Context, name string) (s Session, err error) {
	return s, c.call(ctx, http.MethodGet, "/"+url.PathEscape(name), nil, nil, &s)
}

// Say delivers what a person says. It is part of the next request to the model or, with
// later, waits until the run has its answer.
func (c *Client) Say(ctx context.Context, id, text string, later bool) (r Receipt, err error) {
	return c.SayContent(ctx, id, item.Text(text), later)
}

// SayContent is like Say for a text with images and files, whose data is in the parts. An earlier version of the server
// refuses lists of parts.
func (c *Client) SayContent(ctx context.Context, id string, content item.Content, later bool) (r Receipt, err error) {
	input, err := content.JSON()
	if err != nil {
		return r, err
	}
	return r, c.call(ctx, http.MethodPost, "/"+url.PathEscape(id)+"/input", nil, inputRequest{Input: input, Later: later, Key: rand.Text()}, &r)
}

// Stop asks the run of a session to stop: at once, or after the reply that is under way and
// its calls.
func (c *Client) Stop(ctx context.Context, id, reason string, afterTurn bool) (r Receipt, err error) {
	return r, c.call(ctx, http.MethodPost, "/"+url.PathEscape(id)+"/stop", nil, stopRequest{AfterTurn: afterTurn, Reason: reason, Key: rand.Text()}, &r)
}

// Answer answers a call of the session id, or of a session nested in it, that waits for an
// approval. The server records who answers. If somebody else was first, the error wraps
// [agent.ErrDecided] and names them.
func (c *Client) Answer(ctx context.Context, id string, d agent.Decision) error {
	in := answerRequest{Session: d.Session, Number: d.Number, CallID: d.CallID, Approve: &d.Allow, Reason: d.Reason, Arguments: d.Arguments, Remember: d.Remember, Shown: d.Shown}
	err := c.call(ctx, http.MethodPost, "/"+url.PathEscape(id)+"/approvals", nil, in, &Answered{})
	var refused *server.Error
	if errors.As(err, &refused) && refused.Code == "already_answered" {
		return &decided{refused: refused}
	}
	return err
}

// decided is the error of an answer that was not the first.
type decided struct{ refused *server.Error }

func (e *decided) Error() string   { return e.refused.Message }
func (e *decided) Unwrap() []error { return []error{e.refused, agent.ErrDecided} }

// Watch yields the entries of a session after number after, and those that follow, each
// once and in order, and what the session is like whenever that changes. log is the id of
// the session, or of one nested in it. When the connection is lost, Watch takes the stream
// up again. It ends when ctx is done, which is not an error, or with the error of a server
// that refuses.
func (c *Client) Watch(ctx context.Context, id, log string, after int64) iter.Seq2[Event, error] {
	return c.stream(ctx, id, log, after, true)
}

// Read yields the entries of a session after number after, and ends. See [Client.Watch].
func (c *Client) Read(ctx context.Context, id, log string, after int64) iter.Seq2[Event, error] {
	return c.stream(ctx, id, log, after, false)
}

func (c *Client) stream(ctx context.Context, id, log string, after int64, follow bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var wrote Text
		var taken int64
		for try := (retry{}); ; {
			s := streaming{c: c, id: id, log: log, after: after, follow: follow, wrote: wrote, taken: &taken}
			more := s.run(ctx, func(ev Event) bool {
				try = retry{}
				return yield(ev, nil)
			})
			after, wrote = s.after, s.wrote
			switch {
			case !more || ctx.Err() != nil:
				return
			case final(s.err):
				yield(Event{}, s.err)
				return
			}
			c.link.lost(c.Lost, s.err)
			if !try.wait(ctx) {
				return
			}
		}
	}
}

// streaming is one connection of a stream.
type streaming struct {
	c       *Client
	id, log string
	after   int64 // the last entry that was yielded
	follow  bool
	end     int64  // the last entry when the stream began
	wrote   Text   // where the text that was yielded ends
	taken   *int64 // bytes, of all connections of the stream
	err     error  // why it ended
}

// errBroken is why a stream ended, if the server just closed it.
var errBroken = errors.New("the server closed the connection")

// run yields events until the connection ends, and sets err. It returns false if the
// stream is complete, or nobody wants more.
func (s *streaming) run(ctx context.Context, yield func(Event) bool) (more bool) {
	q := url.Values{"after": {strconv.FormatInt(s.after, 10)}, "follow": {strconv.FormatBool(s.follow)}}
	if s.log != s.id {
		q.Set("session", s.log)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	silent := time.AfterFunc(s.c.patience(), func() { end(fmt.Errorf("the server has said nothing for %v", s.c.patience())) })
	defer silent.Stop()
	resp, err := s.c.send(ctx, http.MethodGet, "/"+url.PathEscape(s.id)+"/events", q, nil)
	if err != nil {
		s.err = cause(ctx, err)
		return true
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		s.err = errNoRoutes
		return true
	}
	s.c.link.found(s.c.Lost)
	events := sse.NewReader(&heard{resp.Body, func(n int) error {
		silent.Reset(s.c.patience())
		if *s.taken += int64(n); s.c.Limit > 0 && *s.taken > s.c.Limit {
			return ErrLimit
		}
		return nil
	}}, sse.Options{MaxEvent: mostAnswer})
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && !s.follow && s.after >= s.end:
			return false
		case errors.Is(err, ErrLimit):
			s.err = &finalError{fmt.Errorf("%w: %d bytes", ErrLimit, s.c.Limit)}
			return true
		case errors.Is(err, io.EOF), err == nil && ev.Unterminated:
			s.err = errBroken
			return true
		case err != nil:
			s.err = cause(ctx, err)
			return true
		}
		one, ok, err := s.event(ev)
		if err != nil {
			s.err = err
			return true
		}
		one.Size = len(ev.Data)
		if ok && !yield(one) {
			return false
		}
	}
}

// event reads an event. ok is false for one that is not known, or was yielded before.
func (s *streaming) event(ev sse.Event) (one Event, ok bool, err error) {
	switch string(ev.Type) {
	case typeSession:
		one.Session = new(Session)
		if err := json.Unmarshal(ev.Data, one.Session, asIs); err != nil {
			return one, false, &finalError{fmt.Errorf("the server sent what is not a session: %w", err)}
		}
		if s.log == s.id || s.log == one.Session.ID {
			s.end = one.Session.Entries
		}
	case typeEntry:
		e, err := session.ParseEntry(ev.Data)
		switch {
		case err != nil:
			return one, false, &finalError{err}
		case e.Seq <= s.after:
			return one, false, nil
		case e.Seq != s.after+1:
			return one, false, fmt.Errorf("entry %d came after entry %d", e.Seq, s.after)
		}
		s.after, one.Entry = e.Seq, &e
	case typeText:
		t := new(Text)
		if err := json.Unmarshal(ev.Data, t, asIs); err != nil {
			return one, false, &finalError{fmt.Errorf("the server sent what is not a text: %w", err)}
		}
		one.Text, ok = s.text(t)
		return one, ok, nil
	default:
		return one, false, nil
	}
	return one, true, nil
}

// text returns what is new of a text.
func (s *streaming) text(t *Text) (*Text, bool) {
	have := 0
	if s.wrote.After == t.After {
		have = s.wrote.At
	}
	end := t.At + len(t.Text)
	if t.After > s.after || t.At < 0 || t.At > have || end <= have {
		return nil, false
	}
	t.Text, t.At = t.Text[have-t.At:], have
	s.wrote = Text{After: t.After, At: end}
	return t, true
}

func (c *Client) patience() time.Duration {
	if c.Patience > 0 {
		return c.Patience
	}
	return usualPatience
}

// heard calls something with the number of bytes when something was read. Its error ends
// the reading.
type heard struct {
	io.Reader
	something func(n int) error
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		if problem := h.something(n); problem != nil {
			return 0, problem
		}
	}
	return n, err
}

// cause returns why a request ended, if it was the client that ended it.
func cause(ctx context.Context, err error) error {
	if own := context.Cause(ctx); own != nil {
		return own
	}
	return err
}

// call sends a request until it has an answer.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, body, into any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body, asIs); err != nil {
			return err
		}
	}
	for try := (retry{}); ; {
		err := c.once(ctx, method, path, q, sent, into)
		if err == nil || final(err) || ctx.Err() != nil {
			if err == nil || final(err) {
				c.link.found(c.Lost)
			}
			return err
		}
		c.link.lost(c.Lost, err)
		if !try.wait(ctx) {
			return err
		}
	}
}

// slowest is how many bytes of a request are sent in a second over a connection that is not given up.
const slowest = 64 << 10

func (c *Client) once(ctx context.Context, method, path string, q url.Values, sent []byte, into any) error {
	upload := time.Duration(len(sent)/slowest) * time.Second
	ctx, end := context.WithTimeout(ctx, c.patience()+upload)
	defer end()
	resp, err := c.send(ctx, method, path, q, sent)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into, asIs); err != nil {
		return errNoRoutes
	}
	return nil
}

// errNoRoutes means that something else answers at the address.
var errNoRoutes = &finalError{errors.New("what answers there is not a server with sessions")}

// finalError is an error that another attempt would have too.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// final reports whether another attempt is pointless.
func final(err error) bool {
	var refused *server.Error
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
			return false
		}
		return true
	}
	return errors.As(err, new(*finalError))
}

// send sends a request once, to the host of the URL and to no other.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, body []byte) (*http.Response, error) {
	if err := CheckURL(c.URL); err != nil {
		return nil, &finalError{err}
	}
	address := strings.TrimSuffix(c.URL, "/") + Path + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, &finalError{err}
	}
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	r.Header.Set("Accept-Encoding", "identity") // what is unpacked could be a thousand times larger than what was sent
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	resp, err := transport.RoundTrip(r) // unlike an http.Client it follows no redirect
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

// refusal returns the error of an answer other than 200.
func refusal(resp *http.Response) error {
	if to := resp.Header.Get("Location"); resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return &finalError{fmt.Errorf("the server sends us to %.200q; a key goes only to the server that it is for, so name that one if it is right", to)}
	}
	const most = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // without it there is still the status
	var body struct {
		Error struct {
			Message, Code, Param string
		} `json:"error"`
	}
	e := &server.Error{Status: resp.StatusCode, Header: resp.Header}
	if json.Unmarshal(text, &body, json.MatchCaseInsensitiveNames(true)) == nil && body.Error.Message != "" {
		e.Message, e.Code, e.Param = body.Error.Message, body.Error.Code, body.Error.Param
		return e
	}
	e.Message = "the server answers with status " + resp.Status
	return e
}
