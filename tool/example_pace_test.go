// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// A search that may fail for a moment is repeated, and starts at most 30 times a minute.
func ExampleRetries() {
	var errBusy = errors.New("the archive is busy")
	type query struct {
		Words string `json:"words"`
	}
	asked := 0
	find := func(_ context.Context, q query) (string, error) {
		if asked++; asked == 1 {
			return "", errBusy
		}
		return "2 letters about " + q.Words, nil
	}
	temporary := func(err error) bool { return errors.Is(err, errBusy) }

	quota := &tool.Rate{Calls: 30, Per: time.Minute}
	search := tool.Must("search", "Searches the archive.", find,
		tool.ReadOnly(), tool.Timeout(20*time.Second), tool.RateLimit(quota), tool.Retries(tool.Retry{Max: 2, If: temporary}))

	set, err := tool.NewSet(search)
	if err != nil {
		log.Fatal(err)
	}
	out := set.Invoke(context.Background(), tool.Call{Name: "search", Arguments: `{"words":"clocks"}`}, output.Policy{})
	fmt.Println(out.Content.Display())
	fmt.Println(asked, "attempts")
	// Output:
	// 2 letters about clocks
	// 2 attempts
}
