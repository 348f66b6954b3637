// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/platform"
)

// A program that keeps files at an endpoint is tested against a server in memory, which
// fails where the test says so: here the file is stored, and the answer is lost. In a
// test, agenttest.StartPlatform starts the server.
func ExamplePlatform() {
	stub := &agenttest.Platform{}
	srv := httptest.NewServer(agenttest.Wrap(stub, func(n int, _ agenttest.Request, right agenttest.Reply) agenttest.Reply {
		if n == 0 {
			return right.CutAfter(0)
		}
		return right
	}))
	defer srv.Close()

	ctx := context.Background()
	c := &platform.Client{
		BaseURL: srv.URL, HTTP: srv.Client(), Retry: endpoint.Retry{Base: 1},
		Profile: &endpoint.Profile{BasePath: "/v1", IdempotencyHeader: "Idempotency-Key"}, // a repetition is recognized
	}
	_, err := c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: "a.txt", Content: strings.NewReader("hello")}})
	fmt.Println("uploaded:", err)
	for f, err := range c.Files(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(f.ID, f.Filename, f.Bytes)
	}
	// Output:
	// uploaded: <nil>
	// file-1 a.txt 5
}
