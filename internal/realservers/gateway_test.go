// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// W8: antiphon serve gives what a model server lacks: stored responses that can be continued,
// streamed and made in the background.
func TestGateway(t *testing.T) {
	for _, server := range []string{"llama-server", "Ollama"} {
		for _, api := range []string{"responses", "chat"} {
			t.Run(server+" "+api, func(t *testing.T) {
				servers(t)
				base := ""
				if server == "Ollama" {
					base = ollama(t, freePort(t), map[string]Model{"made-up": counting})
				} else {
					base = llama(t, counting, freePort(t))
				}
				port, home := freePort(t), t.TempDir()
				serve(t, "http://127.0.0.1:"+port+"/healthz", []string{"HOME=" + home, "XDG_DATA_HOME=" + home}, antiphon,
					"serve", "--upstream", base, "--api", api, "--listen", "127.0.0.1:"+port, "--store", filepath.Join(home, "s.db"))
				at := "http://127.0.0.1:" + port + "/v1/responses"
				first := stored(t, http.MethodPost, at, `{"model":"made-up","input":"Count."}`)
				if first.Status != "completed" || !strings.Contains(first.text, "twenty") {
					t.Errorf("%s", first.text)
				}
				if next := stored(t, http.MethodPost, at, `{"model":"made-up","input":"Again.","previous_response_id":"`+first.ID+`"}`); next.Status != "completed" {
					t.Errorf("%s", next.text)
				}
				if read := stored(t, http.MethodGet, at+"/"+first.ID, ""); read.text != first.text {
					t.Errorf("it was\n%s\nand is\n%s", first.text, read.text)
				}
				later := stored(t, http.MethodPost, at, `{"model":"made-up","input":"Count.","background":true}`)
				for later.Status == "queued" || later.Status == "in_progress" {
					select {
					case <-t.Context().Done():
						t.Fatal("it does not end")
					case <-time.After(100 * time.Millisecond):
					}
					later = stored(t, http.MethodGet, at+"/"+later.ID, "")
				}
				if later.Status != "completed" || !strings.Contains(later.text, "twenty") {
					t.Errorf("%s", later.text)
				}
				if text := sent(t, http.MethodPost, at, `{"model":"made-up","input":"Count.","stream":true}`); !strings.Contains(text, "event: response.completed") {
					t.Errorf("%s", text)
				}
			})
		}
	}
}

// response is what the tests read of one.
type response struct{ ID, Status, text string }

func stored(t *testing.T, method, url, body string) (r response) {
	t.Helper()
	text := sent(t, method, url, body)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r.text = text
	return r
}

// sent sends a request and returns the body of the answer, which must be a success.
func sent(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %s", resp.Status, err, text)
	}
	return string(text)
}
