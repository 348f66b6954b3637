// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// echo answers on a WebSocket, and tells what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for n := 1; ; n++ {
		_, message, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		event, _ := api.ParseClientEvent(message)
		if create, ok := event.(*api.CreateEvent); ok {
			fmt.Printf("%d items, after %q\n", create.Request.Input.Len(), create.Request.PreviousResponseID)
		}
		for _, event := range told(fmt.Sprintf("resp_%d", n), said(fmt.Sprintf("msg_%d", n), "Hello.")) {
			if conn.Write(r.Context(), websocket.MessageText, []byte(event)) != nil {
				return
			}
		}
	}
}

// A chain is always given the whole history, and sends what is new in it. It
// takes the place of the client as an agent's Model.
func ExampleChain() {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()

	chain := &responses.Chain{
		Client:    &responses.Client{BaseURL: server.URL, HTTP: server.Client()},
		Transport: responses.WebSocket,
	}
	defer chain.Close()
	var history []item.Item
	for _, text := range []string{"Hello", "And again", "Bye"} {
		history = append(history, item.User(text))
		var answer api.Accumulator
		for event, err := range chain.Stream(context.Background(), &api.Request{Model: "any", Input: item.NewList(history...)}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			items, _ := answer.Add(event)
			history = append(history, items...)
		}
	}
	// Output:
	// 1 items, after ""
	// 1 items, after "resp_1"
	// 1 items, after "resp_2"
}
