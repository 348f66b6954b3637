// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server on a socket for the time of a test.
func start(t *testing.T, s *Server) (baseURL string) {
	t.Helper()
	baseURL, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
	})
	return baseURL
}

// request returns a request with the items and function tools of the names.
func request(tools []string, items ...item.Item) *api.Request {
	req := &api.Request{Model: "rehearsal", Input: item.NewList(items...)}
	for _, name := range tools {
		req.Tools = append(req.Tools, function(name, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`))
	}
	return req
}

func function(name, schema string) *item.FunctionTool {
	return &item.FunctionTool{Name: name, Parameters: item.JSON(schema), Strict: new(false)}
}

func outputOf(t *testing.T, callID string, parts ...item.Part) item.Item {
	t.Helper()
	it, err := item.Output(callID, item.Parts(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func textOutput(callID, text string) item.Item {
	return item.Must(&item.FunctionCallOutput{CallID: callID, Output: item.Text(text)})
}

// failed is an output in the envelope of failures.
func failed(callID, name, problem string) item.Item {
	return textOutput(callID, "status:\nerror\n\ntoolName:\n"+name+"\n\nerror:\n"+problem+"\n\noutput:\nso far")
}

func png(data string) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"+data))
}

// post sends a body and returns the status and what came back.
func post(t *testing.T, url string, body []byte) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/responses", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, got
}

func encode(t *testing.T, req *api.Request, stream bool) []byte {
	t.Helper()
	r := *req
	r.Stream = new(stream)
	body, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// create asks for a whole response.
func create(t *testing.T, url string, req *api.Request) *api.Response {
	t.Helper()
	resp, body := post(t, url, encode(t, req, false))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s %s: %s", resp.Status, resp.Header.Get("Content-Type"), body)
	}
	r, err := api.ParseResponse(body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// streamed asks for events and returns copies of them.
func streamed(t *testing.T, url string, req *api.Request) []api.Event {
	t.Helper()
	resp, body := post(t, url, encode(t, req, true))
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s %s: %s", resp.Status, resp.Header.Get("Content-Type"), body)
	}
	return events(t, bytes.NewReader(body))
}

func events(t *testing.T, r io.Reader) []api.Event {
	t.Helper()
	reader := sse.NewReader(r, sse.Options{})
	var list []api.Event
	for {
		raw, err := reader.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := api.ParseEvent(raw.Data)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw.Type) != string(e.Type) || raw.Unterminated {
			t.Errorf("event %q holds %q, unterminated: %v", raw.Type, e.Type, raw.Unterminated)
		}
		list = append(list, e)
	}
}

// refused sends a body that must be refused and returns the error.
func refused(t *testing.T, url string, body []byte) *api.APIError {
	t.Helper()
	resp, got := post(t, url, body)
	object, err := item.Parse(got)
	if err != nil {
		t.Fatalf("%s: %s", resp.Status, got)
	}
	e, err := api.ParseEvent([]byte(`{"type":"error",` + strings.TrimPrefix(strings.TrimSpace(object.JSON()), "{")))
	if err != nil {
		t.Fatalf("%s: %s", resp.Status, got)
	}
	apiErr, ok := e.Err()
	if resp.StatusCode != http.StatusBadRequest || !ok || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %s", resp.Status, got)
	}
	for _, name := range []string{`"message"`, `"type"`, `"param"`, `"code"`} {
		if !bytes.Contains(got, []byte(name)) {
			t.Errorf("the error has no %s: %s", name, got)
		}
	}
	return apiErr
}

// calls lists the calls of a response, one a line.
func calls(r *api.Response) string {
	var b strings.Builder
	for _, it := range r.Output {
		switch v, err := it.Decode(); v := v.(type) {
		case *item.FunctionCall:
			fmt.Fprintf(&b, "%s %s\n", v.Name, v.Arguments)
		case *item.CustomToolCall:
			fmt.Fprintf(&b, "%s: %s\n", v.Name, v.Input)
		default:
			if err != nil {
				fmt.Fprintf(&b, "error: %v\n", err)
			}
		}
	}
	return b.String()
}

// answered asks a server without a socket.
func answered(s *Server, body []byte) (*api.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		return nil, errors.New(w.Body.String())
	}
	return api.ParseResponse(w.Body.Bytes())
}
