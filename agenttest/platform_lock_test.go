// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
)

// stuckWriter is a client that does not read yet.
type stuckWriter struct {
	*httptest.ResponseRecorder
	writes, reads chan struct{}
}

func (w *stuckWriter) Write(b []byte) (int, error) {
	w.writes <- struct{}{}
	<-w.reads
	return w.ResponseRecorder.Write(b)
}

// A client that does not read its answer delays no other, and a function of the test may
// ask the server itself.
func TestPlatformAnswersWithoutLock(t *testing.T) {
	for _, key := range []string{"", "key"} {
		p := new(agenttest.Platform)
		ask := func(w http.ResponseWriter, method, path, body string) {
			r := httptest.NewRequest(method, "/v1"+path, strings.NewReader(body))
			if key != "" {
				r.Header.Set("Idempotency-Key", key+path)
			}
			p.ServeHTTP(w, r)
		}
		harmful := httptest.NewRecorder()
		p.Harmful = func(string) bool {
			ask(harmful, http.MethodGet, "/models", "")
			return true
		}
		stuck := &stuckWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			ask(stuck, http.MethodGet, "/files", "")
		}()
		<-stuck.writes
		other := httptest.NewRecorder()
		ask(other, http.MethodPost, "/vector_stores", `{"name":"s"}`)
		if other.Code != http.StatusOK {
			t.Errorf("%d %s", other.Code, other.Body)
		}
		judged := httptest.NewRecorder()
		if ask(judged, http.MethodPost, "/moderations", `{"input":"x"}`); !strings.Contains(judged.Body.String(), `"flagged":true`) || !strings.Contains(harmful.Body.String(), "test-model") {
			t.Errorf("%s %s", judged.Body, harmful.Body)
		}
		close(stuck.reads)
		<-done
	}
}
