// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// A long answer is made in the background, and heard by another process: all
// that the two have to share is the response's id and the number of the last
// event.
func ExampleClient_Follow() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"id":"resp_1","object":"response","status":"queued","output":[]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"response.output_text.delta","sequence_number":3,"delta":"A long "}`,
			`{"type":"response.output_text.delta","sequence_number":4,"delta":"answer."}`,
			`{"type":"response.completed","sequence_number":5,"response":{"id":"resp_1","status":"completed"}}`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	defer server.Close()

	ctx, background := context.Background(), true
	client := &responses.Client{BaseURL: server.URL, Key: endpoint.NewKey("sk-…"), HTTP: server.Client()}
	begun, err := client.Create(ctx, &api.Request{Model: "any", Background: &background, Input: item.NewList(item.User("Think."))})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(begun.ID, begun.Status)

	for event, err := range client.Follow(ctx, begun.ID, 2) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s %q\n", event.SequenceNumber, event.Type, event.Delta)
	}
	// Output:
	// resp_1 queued
	// 3 response.output_text.delta "A long "
	// 4 response.output_text.delta "answer."
	// 5 response.completed ""
}

// Where nobody watches, waiting is enough.
func ExampleClient_Wait() {
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := "in_progress"
		if looks++; looks > 1 {
			status = "completed"
		}
		fmt.Fprintf(w, `{"id":"resp_1","object":"response","status":%q,"output":[
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`, status)
	}))
	defer server.Close()

	client := &responses.Client{BaseURL: server.URL, HTTP: server.Client(), Retry: endpoint.Retry{Base: 1}}
	response, err := client.Wait(context.Background(), "resp_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.Status, response.Text(), looks)
	// Output: completed Done. 2
}

// A conversation is kept by the endpoint: requests name it and send what is new.
func ExampleClient_CreateConversation() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"id":"conv_1","object":"conversation","metadata":{"topic":"tea"}}`)
		case r.Method == http.MethodDelete:
			fmt.Fprint(w, `{"id":"conv_1","object":"conversation.deleted","deleted":true}`)
		case strings.HasSuffix(r.URL.Path, "/items"):
			fmt.Fprint(w, `{"object":"list","has_more":false,"last_id":"msg_2","data":[
				{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"Green or black?"}]},
				{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Green."}]}]}`)
		}
	}))
	defer server.Close()

	ctx := context.Background()
	client := &responses.Client{BaseURL: server.URL, HTTP: server.Client()}
	metadata, _ := api.Metadata(map[string]string{"topic": "tea"})
	talk, err := client.CreateConversation(ctx, &api.CreateConversation{Metadata: metadata})
	if err != nil {
		fmt.Println(err)
		return
	}
	next := &api.Request{Model: "any", Conversation: api.ConversationByID(talk.ID), Input: item.NewList(item.User("Green or black?"))}
	body, _ := next.MarshalJSON()
	fmt.Println(strings.Contains(string(body), `"conversation":"conv_1"`))

	for it, err := range client.ConversationItems(ctx, talk.ID, &responses.ListOptions{Order: responses.Ascending}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(it.Role(), it.ID())
	}
	fmt.Println(client.DeleteConversation(ctx, talk.ID))
	// Output:
	// true
	// user msg_1
	// assistant msg_2
	// <nil>
}
