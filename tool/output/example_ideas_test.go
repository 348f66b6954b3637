// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/tool/output"
)

// Text that commands write becomes text for a model: no terminal escapes, valid UTF-8.
func ExampleSanitize() {
	clean, repairs := output.Sanitize("\x1b[31mred\x1b[0m and \xff")
	fmt.Printf("%q %d\n", clean, repairs)
	// Output:
	// "red and �" 3
}

// A limit as it stands in a file or a flag.
func ExampleParseLimit() {
	for _, text := range []string{"8000", "65536 bytes tail", "8000 lines"} {
		l, err := output.ParseLimit(text)
		fmt.Println(l.Tokens, l.Bytes, l.Mode, err)
	}
	// Output:
	// 8000 0  <nil>
	// 0 65536 tail <nil>
	// 0 0  output limit: unknown mode "lines": want head, tail, head+tail or sample
}

// A failure as the model reads it. Nothing in the texts can forge one of the blocks.
func ExampleEnvelope() {
	fmt.Println(output.Envelope(true, "read_file", "no such file: a.txt", "a.tx is near"))
	// Output:
	// status:
	// error
	//
	// toolName:
	// read_file
	//
	// error:
	// no such file: a.txt
	//
	// output:
	// a.tx is near
}

// The bytes say what a file is, whatever its name is.
func ExampleFile() {
	_, err := output.File("report.pdf", []byte("just text"))
	fmt.Println(err)
	f, err := output.File("dir/notes.txt", []byte("Milk."))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Filename, f.FileData)
	// Output:
	// the file report.pdf is not what its name says: its data is text/plain
	// notes.txt data:text/plain;base64,TWlsay4=
}
