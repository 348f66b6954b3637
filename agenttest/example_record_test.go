// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// A test that asks the real server once, with ANTIPHON_RECORD=TestGreeting in
// the environment, and its recording ever after.
func ExampleRecord() {
	_ = func(t *testing.T) { // func TestGreeting(t *testing.T)
		key := endpoint.NewKey(os.Getenv("OPENAI_API_KEY"))
		tape := agenttest.Record(t, "testdata/greeting.rec", key)
		client := &responses.Client{Key: key, HTTP: tape.Client()}
		resp, err := client.Create(context.Background(), &api.Request{
			Model: "gpt-5-nano",
			Input: item.NewList(item.User("Say hello.")),
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Output) == 0 {
			t.Error("no greeting")
		}
	}
}

// What a recording looks like: the key is not in it.
func ExampleRecorder() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header()["Date"] = nil
		_, _ = io.WriteString(w, `{"output":[]}`)
	}))
	defer srv.Close()
	key := endpoint.NewKey("sk-this-is-secret")
	rec := &agenttest.Recorder{Secrets: []endpoint.Key{key}, Transport: srv.Client().Transport}
	client := &responses.Client{BaseURL: srv.URL, Key: key, HTTP: &http.Client{Transport: rec}}
	_, err := client.Create(context.Background(), &api.Request{Model: "m", Input: item.NewList(item.User("The key is sk-this-is-secret, and this makes it long."))})
	if err != nil {
		fmt.Println(err)
	}
	_, _ = rec.WriteTo(withoutPort{srv.URL})
	// Output:
	// antiphon recording 1
	//
	// > POST http://host/v1/responses
	// > Accept: application/json
	// > Authorization: [scrubbed]
	// > Content-Type: application/json
	// > User-Agent: antiphon
	// . {"model":"m",
	// . "input":[{"type":"message",
	// . "content":[{"type":"input_text",
	// . "text":"The key is [scrubbed], and this makes it long."}],
	// . "role":"user"}]}
	// < 200 OK
	// < Content-Length: 13
	// < Content-Type: application/json
	// . {"output":[]}
}
