// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// A stream is ranged over; its error, if any, comes last.
func ExampleClient_Stream() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"type":"response.output_text.delta","delta":"Hello, "}`, "\n\n")
		fmt.Fprint(w, `data: {"type":"response.output_text.delta","delta":"you."}`, "\n\n")
		fmt.Fprint(w, `data: {"type":"response.completed","response":{"id":"resp_1"}}`, "\n\n")
	}))
	defer server.Close()

	client := &responses.Client{BaseURL: server.URL, Key: endpoint.NewKey("sk-…"), HTTP: server.Client()}
	request := &api.Request{Model: "any", Input: item.NewList(item.User("Hello"))}
	for event, err := range client.Stream(context.Background(), request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Type == api.EventTextDelta {
			fmt.Print(event.Delta)
		}
	}
	// Output: Hello, you.
}

// What can be done about a failure is in its class.
func ExampleClient_Create() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}`))
	}))
	defer server.Close()

	client := &responses.Client{BaseURL: server.URL, HTTP: server.Client()}
	_, err := client.Create(context.Background(), &api.Request{Model: "any", Input: item.NewList(item.User("Hello"))})
	var failure *endpoint.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Class, failure.Status, failure.Hint)
	}
	// Output: auth 401 set OPENAI_API_KEY to the key of this server
}
