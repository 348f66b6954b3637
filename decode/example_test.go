// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/tool/output"
)

func read(ctx context.Context, policy *output.Policy, data []byte) (string, error) {
	policy.Images = decode.Images{} // in place of picture.Limits{}, with the same fields
	text, err := decode.PDF(ctx, data)
	return text, err
}

// A file that is not what it should be is an error, whatever its decoder does.
func Example() {
	_, err := read(context.Background(), &output.Policy{}, []byte("%PDF-1.7\nand no more"))
	fmt.Println(err != nil)
	// Output: true
}
