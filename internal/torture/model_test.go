// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// model is a rehearsal server that somebody looks at: every request must pair
// up, and none may be refused.
type model struct {
	handler http.Handler

	mu       sync.Mutex
	count    int
	problems []error
	left     int // pieces until kill is called
	kill     func()
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever asked was killed
	}
	if err := paired(body); err != nil {
		m.problem(fmt.Errorf("a request: %w\n%s", err, shorten(body)))
	}
	m.mu.Lock()
	m.count++
	m.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	watched := &watchedWriter{ResponseWriter: w, model: m}
	m.handler.ServeHTTP(watched, r)
	if watched.status >= 400 {
		m.problem(fmt.Errorf("a request was refused: %s\n%s", watched.said.Bytes(), shorten(body)))
	}
}

// paired checks the items of a request.
func paired(body []byte) error {
	req, err := api.ParseRequest(body)
	if err != nil {
		return err
	}
	var items []item.Item
	for _, it := range req.Input.All() {
		items = append(items, it)
	}
	return agenttest.CheckPairing(items...)
}

func shorten(body []byte) []byte { return body[:min(len(body), 3000)] }

func (m *model) problem(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = append(m.problems, err)
}

// trouble returns what was wrong with requests.
func (m *model) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.problems...)
}

func (m *model) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// killAt calls kill at the n-th piece of a reply from now on.
func (m *model) killAt(n int, kill func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.kill = n, kill
}

func (m *model) piece() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left > 0 {
		if m.left--; m.left == 0 {
			m.kill()
		}
	}
}

// watchedWriter is the way back of an answer.
type watchedWriter struct {
	http.ResponseWriter
	model  *model
	status int
	said   bytes.Buffer // of a refusal
}

func (w *watchedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	if w.status >= 400 {
		w.said.Write(b)
	}
	w.model.piece()
	return w.ResponseWriter.Write(b)
}

// FlushError lets pieces go out one by one.
func (w *watchedWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}
