// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package compliance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// client asks a server, and checks everything that it sends.
type client struct {
	t           *testing.T
	base, model string
	http        *http.Client
	spec, open  *apispec.Spec // OpenAI's document, closed, and the Open Responses specification
}

func newClient(t *testing.T, base, model string) *client {
	own := new(http.Transport)
	t.Cleanup(own.CloseIdleConnections)
	return &client{t: t, base: strings.TrimSuffix(base, "/"), model: model, http: &http.Client{Transport: own}, spec: apispec.Load(t), open: apispec.LoadOpen(t)}
}

// body returns a request with members.
func (c *client) body(members string) string {
	return `{"model":` + string(item.Quote(c.model)) + "," + members + "}"
}

func (c *client) post(path, body string) (int, http.Header, []byte) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer none")
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, data
}

// create makes a response that is complete.
func (c *client) create(members string) *api.Response {
	c.t.Helper()
	status, _, data := c.post("/responses", c.body(members))
	if status != http.StatusOK {
		c.t.Fatalf("status %d: %s", status, data)
	}
	c.spec.Check(c.t, "Response", data)
	c.open.Check(c.t, "ResponseResource", data)
	r, err := api.ParseResponse(data)
	if err != nil {
		c.t.Fatal(err)
	}
	c.whole(r)
	return r
}

// whole fails if a response is not complete.
func (c *client) whole(r *api.Response) {
	c.t.Helper()
	if r.Status != item.StatusCompleted || len(r.Output) == 0 || r.ID == "" {
		c.t.Errorf("the response is not complete: %s", encoded(c.t, r))
	}
}

// compact makes a compaction, and returns its output.
func (c *client) compact(members string) string {
	c.t.Helper()
	status, _, data := c.post("/responses/compact", c.body(strings.TrimPrefix(members, ",")))
	if status != http.StatusOK {
		c.t.Fatalf("status %d: %s", status, data)
	}
	c.spec.Check(c.t, "CompactResource", data)
	c.open.Check(c.t, "CompactResource", data)
	packed, err := api.ParseCompacted(data)
	if err != nil || len(packed.Output) == 0 {
		c.t.Fatalf("%v: %s", err, data)
	}
	list, err := item.NewList(packed.Output...).MarshalJSON()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(list)
}

// refusal checks an error that came as a body.
func (c *client) refusal(body []byte) {
	c.t.Helper()
	object, err := item.Parse(body)
	if err != nil {
		c.t.Fatalf("%v: %s", err, body)
	}
	inner, _ := object.Member("error")
	c.spec.Check(c.t, "Error", []byte(inner))
	c.open.Check(c.t, "ErrorPayload", []byte(inner))
}

// stream makes a response as a stream.
func (c *client) stream(members string) (list []api.Event) {
	c.t.Helper()
	status, header, data := c.post("/responses", c.body(members+`,"stream":true`))
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		c.t.Fatalf("status %d, %s: %s", status, header.Get("Content-Type"), data)
	}
	events := sse.NewReader(bytes.NewReader(data), sse.Options{})
	for {
		raw, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if string(raw.Data) == "[DONE]" {
			continue
		}
		ev := c.event("ResponseStreamEvent", bytes.Clone(raw.Data))
		if string(raw.Type) != string(ev.Type) {
			c.t.Errorf("the event field is %q, and the type %q", raw.Type, ev.Type)
		}
		list = append(list, ev)
	}
	c.whole(c.last(list))
	return list
}

// event checks an event.
func (c *client) event(schema string, data []byte) api.Event {
	c.t.Helper()
	c.spec.Check(c.t, schema, data)
	ev, err := api.ParseEvent(data)
	if err != nil {
		c.t.Fatalf("%v: %s", err, data)
	}
	if ev.Type == api.EventError && schema != "ResponseStreamEvent" {
		c.open.Check(c.t, "WebSocketErrorEvent", data)
	} else {
		c.open.Check(c.t, apispec.OpenEvent, data)
	}
	return ev
}

// last checks the events of a response together, and returns the response at the end.
func (c *client) last(list []api.Event) *api.Response {
	c.t.Helper()
	var all api.Accumulator
	for i, ev := range list {
		if ev.SequenceNumber != int64(i) {
			c.t.Errorf("event %d has the number %d", i, ev.SequenceNumber)
		}
		if _, err := all.Add(ev); err != nil {
			c.t.Errorf("%v: %s", err, ev.JSON())
		}
		if ev.Terminal() && i < len(list)-1 {
			c.t.Errorf("something follows %s", ev.JSON())
		}
	}
	r, whole := all.Response()
	if !whole || len(list) < 3 {
		c.t.Fatalf("a stream of %d events has no end", len(list))
	}
	for i, want := range []api.EventType{api.EventCreated, api.EventInProgress} {
		if list[i].Type != want {
			c.t.Errorf("event %d is %s, want %s", i, list[i].Type, want)
			continue
		}
		c.full(list[i], list[len(list)-1])
	}
	return r
}

// changing are the members of a response that its end has other values of.
var changing = []string{"status", "output", "usage", "error", "incomplete_details", "completed_at"}

// full fails if the response in an event lacks something of the response at the end.
func (c *client) full(first, last api.Event) {
	c.t.Helper()
	a, b := responseIn(c.t, first), responseIn(c.t, last)
	for name, value := range b {
		if got, ok := a[name]; !ok || !bytes.Equal(got, value) && !slices.Contains(changing, name) {
			c.t.Errorf("%s has %s %s, and the end %s", first.Type, name, got, value)
		}
	}
}

func responseIn(t *testing.T, ev api.Event) (members map[string]json.RawMessage) {
	t.Helper()
	text, _ := ev.Member("response")
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatalf("%v in %s", err, ev.JSON())
	}
	return members
}

func encoded(t *testing.T, r *api.Response) string {
	t.Helper()
	b, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// socket is a WebSocket.
type socket struct {
	c    *client
	conn *websocket.Conn
}

// maxFrame is the longest message that is read, in bytes.
const maxFrame = 1 << 20

func (c *client) dial() *socket {
	c.t.Helper()
	header := http.Header{"Authorization": {"Bearer none"}}
	conn, _, err := websocket.Dial(c.t.Context(), "ws"+strings.TrimPrefix(c.base, "http")+"/responses", &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header}) //nolint:bodyclose // Dial closes it
	if err != nil {
		c.t.Fatal(err)
	}
	conn.SetReadLimit(maxFrame)
	c.t.Cleanup(func() { _ = conn.CloseNow() }) // it may be closed
	return &socket{c, conn}
}

// say sends a request, and returns the events up to the end of its response.
func (s *socket) say(members string) (list []api.Event) {
	c := s.c
	c.t.Helper()
	if err := s.conn.Write(c.t.Context(), websocket.MessageText, []byte(c.body(`"type":"response.create",`+members))); err != nil {
		c.t.Fatal(err)
	}
	for {
		_, data, err := s.conn.Read(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		ev := c.event("ResponsesServerEvent", data)
		if list = append(list, ev); ev.Terminal() {
			return list
		}
	}
}

// respond makes a response that is complete.
func (s *socket) respond(members string) *api.Response {
	s.c.t.Helper()
	list := s.say(members)
	if list[0].Type == api.EventError {
		s.c.t.Fatalf("refused: %s", list[0].JSON())
	}
	r := s.c.last(list)
	s.c.whole(r)
	return r
}

// refused sends a request that must be refused with a code.
func (s *socket) refused(members, code string) {
	s.c.t.Helper()
	list := s.say(members)
	ev := list[len(list)-1]
	problem, failed := ev.Err()
	if !failed || code != "" && problem.Code != code {
		s.c.t.Errorf("want the error %s, got %s", code, ev.JSON())
	}
}
