// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
)

// A base URL is taken with or without a slash, as a bare host, and with a query.
func ExampleURL() {
	for _, base := range []string{"https://api.openai.com", "http://localhost:8000/v1/", "https://gate.example.com/llm?version=2"} {
		u, err := endpoint.URL(base, "/responses")
		fmt.Println(u, err)
	}
	// Output:
	// https://api.openai.com/v1/responses <nil>
	// http://localhost:8000/v1/responses <nil>
	// https://gate.example.com/llm/responses?version=2 <nil>
}

// A key does not show in logs and messages, and hides where it occurs in a text.
func ExampleKey() {
	key := endpoint.NewKey("sk-0123456789")
	fmt.Println(key)
	fmt.Println(key.Hide("the server says: bad key sk-0123456789"))
	// Output:
	// [redacted]
	// the server says: bad key [redacted]
}

// What failed, whether it is safe to try again, and after how long.
func ExampleError() {
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}}
	var err error = endpoint.FromResponse(resp, []byte(`{"error":{"message":"Slow down.","type":"requests","code":"rate_limit_exceeded"}}`))
	if e, ok := errors.AsType[*endpoint.Error](err); ok {
		fmt.Println(e.Class, e.SafeToRetry(), e.RetryAfter)
	}
	// Output:
	// rate_limit true 2s
}

// A budget counts the retries of one piece of work over all layers. An error that
// repeating cannot help takes nothing from it.
func ExampleBudget() {
	b := endpoint.Retry{Max: 1, Base: time.Second, Rand: func() float64 { return 0 }}.Budget()
	for _, class := range []endpoint.Class{endpoint.BadRequest, endpoint.Overloaded, endpoint.Overloaded} {
		wait, again := b.Next(&endpoint.Error{Class: class})
		fmt.Println(class, again, wait)
	}
	// Output:
	// bad_request false 0s
	// overloaded true 1s
	// overloaded false 0s
}

// A context carries a budget to the clients below.
func ExampleWithBudget() {
	b := endpoint.Retry{Max: 3}.Budget()
	ctx := endpoint.WithBudget(context.Background(), b)
	fmt.Println(endpoint.BudgetFrom(ctx) == b)
	// Output:
	// true
}

// An effort that an endpoint does not take becomes the nearest one that it takes.
func ExampleNearestEffort() {
	taken := []string{"low", "medium", "high"}
	for _, effort := range []string{"minimal", "high", "xhigh", "none"} {
		fmt.Printf("%s: %q\n", effort, endpoint.NearestEffort(effort, taken))
	}
	// Output:
	// minimal: "low"
	// high: "high"
	// xhigh: "high"
	// none: "low"
}

// Messages show addresses without what may be secret in them.
func ExampleShowURL() {
	u, err := url.Parse("https://ann:secret@gate.example.com/v1?key=secret")
	fmt.Println(endpoint.ShowURL(u), err)
	// Output:
	// https://gate.example.com/v1 <nil>
}

// Headers whose names say that they hold a secret are kept out of logs.
func ExampleSecretName() {
	for _, name := range []string{"Authorization", "X-Api-Key", "Idempotency-Key", "Content-Type"} {
		fmt.Println(name, endpoint.SecretName(name))
	}
	// Output:
	// Authorization true
	// X-Api-Key true
	// Idempotency-Key false
	// Content-Type false
}
