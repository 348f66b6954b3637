// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/endpoint"
)

// closing lets nothing through.
type closing struct{}

func (closing) Enter(_ context.Context, url string) error {
	return errors.New(url + " is closed for the night")
}
func (closing) Failed(context.Context, string, *endpoint.Error) {}

// A gate in the context decides whether the clients below may send their requests.
func ExampleWithGate() {
	ctx := endpoint.WithGate(context.Background(), closing{})
	fmt.Println(endpoint.GateFrom(ctx).Enter(ctx, "http://localhost:8080/v1"))
	// Output:
	// http://localhost:8080/v1 is closed for the night
}
