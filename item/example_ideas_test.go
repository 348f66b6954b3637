// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/item"
)

// A message of text and an image.
func ExampleUserParts() {
	it, err := item.UserParts(&item.InputText{Text: "What is this?"}, &item.InputImage{ImageURL: "https://example.com/a.png", Detail: "low"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(it.JSON())
	// Output:
	// {"type":"message","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"}],"role":"user"}
}

// An item is kept as it was received, unknown members and spellings included.
func ExampleParse() {
	it, err := item.Parse([]byte(`{"role":"user", "type":"message","content":"Hi","of_tomorrow":1e3}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(it.Type())
	fmt.Println(it.JSON())
	// Output:
	// message
	// {"role":"user", "type":"message","content":"Hi","of_tomorrow":1e3}
}

// As reads the one type that the caller wants; another type is an error.
func ExampleAs() {
	m, err := item.As[item.Message](item.Assistant("Oslo."))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Role, m.Content.Display())
	_, err = item.As[item.FunctionCall](item.Assistant("Oslo."))
	fmt.Println(err != nil)
	// Output:
	// assistant Oslo.
	// true
}

// The output that answers a call has the type and the id that the call asks for.
func ExampleOutputFor() {
	for _, call := range []item.Item{
		item.Call("call_1", "clock", `{}`),
		item.Must(&item.CustomToolCall{CallID: "call_2", Name: "shout", Input: "quiet"}),
	} {
		out, ok, err := item.OutputFor(call, item.Text("done"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ok, out.JSON())
	}
	// Output:
	// true {"type":"function_call_output","call_id":"call_1","output":"done"}
	// true {"type":"custom_tool_call_output","call_id":"call_2","output":"done"}
}

// Which items are calls that somebody must answer.
func ExampleItem_IsCall() {
	for _, it := range []item.Item{item.User("Hi"), item.Call("call_1", "clock", `{}`)} {
		fmt.Println(it.Type(), it.IsCall())
	}
	// Output:
	// message false
	// function_call true
}

// Content is text or parts. People and logs get it as text, without the base64.
func ExampleContent_Display() {
	fmt.Println(item.Text("as it is").Display())
	fmt.Println(item.Parts(&item.InputText{Text: "see:"}, &item.InputImage{ImageURL: "data:image/png;base64,iVBORw0KGgo="}).Display())
	// Output:
	// as it is
	// see:
	// <image src="image/png, 8 bytes, sha256:4c4b6a3be1314ab8"/>
}

// A data URI in its two halves.
func ExampleCutDataURI() {
	mediaType, payload, ok := item.CutDataURI("data:text/plain;base64,SGk=")
	fmt.Println(mediaType, payload, ok)
	// Output:
	// text/plain SGk= true
}

// A list of items as a request has it.
func ExampleParseList() {
	items, err := item.ParseList(`[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c","name":"clock","arguments":"{}"}]`)
	if err != nil {
		log.Fatal(err)
	}
	for _, it := range items {
		fmt.Printf("%s %q\n", it.Type(), it.Name())
	}
	// Output:
	// message ""
	// function_call "clock"
}
