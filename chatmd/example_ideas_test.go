// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/chatmd"
)

// A file in a uniform layout. Its items stay the same.
func ExampleFile_Format() {
	file, err := chatmd.Parse("agent.md", []byte("<config model=gpt-5></config><user>Hello</user>\n\n\n\n<user>\nHi\n</user>\n"))
	if err != nil {
		log.Fatal(err)
	}
	text, err := file.Format()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// <config model="gpt-5"/>
	// <user>Hello</user>
	//
	// <user>
	// Hi
	// </user>
}

// A text that holds tags is written in a fence, and read as it is.
func ExampleFence() {
	fmt.Println(chatmd.Fence("Close it with </user>."))
	// Output:
	// RAW:x|
	// Close it with </user>.
	// |RAW:x
}

// A program that stopped while it wrote leaves a torn end. What is whole before it
// stays.
func ExampleRecover() {
	src := []byte("<user>\nHello?\n</user>\n<assistant id=\"msg_1\">\nGood ev")
	n := chatmd.Recover(src)
	fmt.Printf("%s-- %q is torn\n", src[:n], src[n:])
	// Output:
	// <user>
	// Hello?
	// </user>
	// -- "<assistant id=\"msg_1\">\nGood ev" is torn
}

// One file imports another.
func ExampleLoad() {
	importer := chatmd.ImporterFunc(func(_ context.Context, ref chatmd.Ref) (chatmd.Source, error) {
		return chatmd.Source{Name: ref.Src, Text: []byte("<system>Be brief.</system>\n")}, nil
	})
	main := chatmd.Source{Name: "agent.md", Text: []byte("<import src=\"house.md\"/>\n<user>Hello?</user>\n")}
	file, err := chatmd.Load(context.Background(), main, importer)
	if err != nil {
		log.Fatal(err)
	}
	items, err := file.Items(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, it := range items {
		fmt.Println(it.Item)
	}
	// Output:
	// message system
	// message user
}

// The paths of a copy in another folder are rewritten; nothing else changes.
func ExampleFile_Rewrite() {
	file, err := chatmd.Parse("agent.md", []byte("<user>See <doc src=\"notes.txt\" local/>.</user>\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(file.Rewrite(func(_ chatmd.Element, a chatmd.Attr) (string, bool) {
		return "../" + a.Value, a.Name == "src"
	}))
	// Output:
	// <user>See <doc src="../notes.txt" local/>.</user>
}

// The word that was probably meant, for a hint.
func ExampleSuggest() {
	fmt.Println(chatmd.Suggest("asistant", "user assistant system"))
	// Output:
	// assistant
}
