// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
)

// A client of any dialect is a model for an agent. Packages responses and
// completions have clients of their own, which need no Dialect.
func ExampleClient() {
	model := dialect.Client{
		Config:  &dialect.Config{BaseURL: "http://localhost:11434"},
		Dialect: completions.Dialect{},
	}
	fmt.Println(model.About().API, model.About().URL)
	// Output: chat http://localhost:11434/v1
}

// Packages register their dialects, so that a program can offer them by name.
func ExampleByName() {
	d, err := dialect.ByName("chat")
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Info().Title)
	_, err = dialect.ByName("telegraph")
	fmt.Println(err)
	// Output:
	// Chat Completions
	// unknown API "telegraph"; the APIs are chat
}
