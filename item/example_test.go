// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// A tool's output with text and two images.
func ExampleOutput() {
	out, err := item.Output("call_1", item.Parts(
		&item.InputText{Text: "the charts for May and June:"},
		&item.InputImage{ImageURL: "data:image/png;base64,iVBORw0KGgo=", Detail: item.DetailHigh},
		&item.InputImage{FileID: "file_june"},
	))
	if err != nil {
		log.Fatal(err) // a part that cannot be encoded
	}
	fmt.Println(out.Type(), out.CallID())

	v, err := item.As[item.FunctionCallOutput](out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Output.Display())
	// Output:
	// function_call_output call_1
	// the charts for May and June:
	// <image src="image/png, 8 bytes, sha256:4c4b6a3be1314ab8" detail="high"/>
	// <image src="file_june"/>
}

const reply = `{"id":"resp_1","object":"response","status":"completed","output":[
	{"id":"rs_1","type":"reasoning","summary":[]},
	{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Graz\"}"},
	{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Looking it up."}]}],
	"usage":{"input_tokens":12,"output_tokens":7,"total_tokens":19}}`

// Reading a reply item by item.
func ExampleItem_Decode() {
	r, err := api.ParseResponse([]byte(reply))
	if err != nil {
		log.Fatal(err)
	}
	for _, it := range r.Output {
		v, err := it.Decode()
		if err != nil {
			log.Fatal(err) // of a shape that no reading fits; it.JSON() is still there
		}
		switch v := v.(type) {
		case *item.Message:
			fmt.Println("says:", v.Content.Display())
		case *item.FunctionCall:
			fmt.Println("calls:", v.Name, v.Arguments)
		default:
			fmt.Println("also:", it.Type())
		}
	}
	fmt.Println("tokens:", r.Usage.TotalTokens)
	// Output:
	// also: reasoning
	// calls: weather {"city":"Graz"}
	// says: Looking it up.
	// tokens: 19
}

// Sending a response's items back: they are items of the next request as they
// are, and every call gets its output.
func ExampleList() {
	history := item.NewList(item.User("How is the weather in Graz?"))

	r, err := api.ParseResponse([]byte(reply))
	if err != nil {
		log.Fatal(err)
	}
	history.Append(r.Output...)
	for _, it := range r.Output {
		out, ok, err := item.OutputFor(it, item.Text("sunny"))
		if err != nil {
			log.Fatal(err)
		}
		if ok {
			history.Append(out)
		}
	}
	for i, it := range history.All() {
		fmt.Println(i, it)
	}
	// Output:
	// 0 message user
	// 1 reasoning
	// 2 function_call weather call_1
	// 3 message assistant
	// 4 function_call_output call_1
}

// Editing a stored message: decode, change, encode. What this version does not
// know of the message stays.
func ExampleNew() {
	stored, err := item.ParseString(`{"type":"message","role":"user","content":"my key is 1234","client":{"seq":7}}`)
	if err != nil {
		log.Fatal(err)
	}
	m, err := item.As[item.Message](stored)
	if err != nil {
		log.Fatal(err)
	}
	m.Content = item.Text("my key is [removed]")
	edited, err := item.New(m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(edited.JSON())
	// Output:
	// {"type":"message","content":"my key is [removed]","role":"user","client":{"seq":7}}
}

// An item of a type that this version does not know is kept and can be read
// member by member.
func ExampleUnknown() {
	it, err := item.ParseString(`{"type":"hologram_call","id":"hc_1","angle":1.50}`)
	if err != nil {
		log.Fatal(err)
	}
	v, err := it.Decode()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", v)
	angle, ok := it.Member("angle")
	fmt.Println(angle, ok)
	fmt.Println(it.JSON())
	// Output:
	// *item.Unknown
	// 1.50 true
	// {"type":"hologram_call","id":"hc_1","angle":1.50}
}
