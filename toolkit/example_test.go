// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/toolkit"
)

// The registry says what is missing for a tool.
func ExampleNew() {
	files, err := toolkit.Open(toolkit.Root{Path: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	for _, name := range []string{"read_file", "run_command"} {
		_, err := toolkit.New(name, toolkit.Deps{Files: files})
		fmt.Println(name, err)
	}
	// Output:
	// read_file <nil>
	// run_command toolkit: run_command needs permission to run programs, which this program does not have
}
