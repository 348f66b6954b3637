// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/platform"
)

// signal is a body that tells when it is first read.
type signal struct {
	io.ReadCloser
	begun chan struct{}
	once  sync.Once
}

func (s *signal) Read(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	return s.ReadCloser.Read(p)
}

// An upload that does not go on delays no other request.
func TestPlatformDuringUpload(t *testing.T) {
	p, begun := new(agenttest.Platform), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Body = &signal{ReadCloser: r.Body, begun: begun}
		}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c := &platform.Client{BaseURL: srv.URL + "/v1", HTTP: srv.Client()}
	r, w := io.Pipe()
	uploaded := make(chan error)
	go func() {
		_, err := c.Upload(t.Context(), &platform.Upload{Source: platform.Source{Name: "a.txt", Content: r}})
		uploaded <- err
	}()
	<-begun
	if _, err := c.RetrieveModel(t.Context(), "test-model"); err != nil {
		t.Error(err)
	}
	_, err := w.Write([]byte("hello"))
	if err := errors.Join(err, w.Close(), <-uploaded); err != nil {
		t.Error(err)
	}
}

// What the API refuses, the stub refuses.
func TestPlatformRefuses(t *testing.T) {
	c := agenttest.StartPlatform(t, nil)
	good, err := c.CreateStore(t.Context(), &platform.StoreRequest{Metadata: `{"a":"b"}`})
	if err != nil {
		t.Fatal(err)
	}
	_, purpose := c.Upload(t.Context(), &platform.Upload{Source: platform.Source{Name: "a", Content: io.LimitReader(nil, 0)}, Purpose: "foo"})
	_, metadata := c.CreateStore(t.Context(), &platform.StoreRequest{Metadata: `{"a":1}`})
	_, list := c.CreateStore(t.Context(), &platform.StoreRequest{Metadata: `["a"]`})
	_, changed := c.UpdateStore(t.Context(), good.ID, &platform.StoreRequest{Metadata: `{"a":{}}`})
	for param, err := range map[string]error{"purpose": purpose, "metadata": metadata, "metadata ": list, "metadata  ": changed} {
		if e, ok := errors.AsType[*endpoint.Error](err); !ok || e.Class != endpoint.BadRequest || e.Status != 400 {
			t.Errorf("%s: %v", param, err)
		}
	}
}
