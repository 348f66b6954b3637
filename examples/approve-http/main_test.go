// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
)

// A call waits, a person answers over HTTP, and the run goes on; from the page and
// from a program alike. A second answer is refused.
func TestApprove(t *testing.T) {
	d, stop, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	server := httptest.NewServer(d.Handler())
	defer server.Close()
	post := func(path, contentType, body string) (int, string) {
		t.Helper()
		resp, err := http.Post(server.URL+path, contentType, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	reply := func(status int, text string) (r Reply) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &r); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		return r
	}

	r := reply(post("/chat/ann", "text/plain", "Remove my notes."))
	if r.Why != agent.StopApprovalPending || len(r.Waiting) != 1 || r.Waiting[0].Arguments != `{"path":"notes"}` {
		t.Fatalf("%+v", r)
	}

	resp, err := http.Get(server.URL + "/chat/ann")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(html.UnescapeString(string(page)), `remove {"path":"notes"}`) {
		t.Fatalf("%v: %s", err, page)
	}
	button := regexp.MustCompile(`value="([^"]*)">Allow`).FindSubmatch(page)
	if button == nil {
		t.Fatalf("no button: %s", page)
	}
	form := url.Values{"decision": {html.UnescapeString(string(button[1]))}}.Encode()
	const formType = "application/x-www-form-urlencoded"
	if r = reply(post("/decide/ann", formType, form)); r.Why != agent.StopEndTurn || r.Text != "They are gone." {
		t.Errorf("%+v", r)
	}
	if status, text := post("/decide/ann", formType, form); status != http.StatusConflict {
		t.Errorf("the second answer: %d %s", status, text)
	}

	r = reply(post("/chat/ann", "text/plain", "And more."))
	no, err := json.Marshal(agent.Decision{Number: r.Waiting[0].Number, CallID: r.Waiting[0].CallID, Reason: "keep it"})
	if err != nil {
		t.Fatal(err)
	}
	if r = reply(post("/decide/ann", "application/json", string(no))); r.Text != "I left it." {
		t.Errorf("%+v", r)
	}

	other, err := http.NewRequest(http.MethodPost, server.URL+"/decide/ann", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	other.Header.Set("Sec-Fetch-Site", "cross-site")
	if resp, err = http.DefaultClient.Do(other); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %v %v", resp, err)
	}
	resp.Body.Close()
}
