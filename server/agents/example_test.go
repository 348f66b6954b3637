// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
)

// A file is a model. This one is answered by the rehearsal model, a mock. A Store of package session/sqlstore
// would keep the responses after the end of the program.
func Example() {
	folder, err := os.MkdirTemp("", "agents")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "tour.md")
	if err := os.WriteFile(file, []byte("<config model=\"rehearsal\"/>\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	b := &agents.Backend{Agents: []agents.Agent{{Name: "tour", Config: host.Config{File: file}}}}
	s := &server.Server{Backend: b} // an http.Handler
	baseURL, stop, err := s.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	defer b.Drain(context.Background()) // waits for responses

	client := &responses.Client{BaseURL: baseURL}
	request := &api.Request{Model: "tour", Input: item.NewList(item.User("Good evening."))}
	response, err := client.Create(context.Background(), request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Status)
	// Output: completed
}
