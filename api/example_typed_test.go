// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Answering a shell call: an output for every command.
func ExampleShellCallOutput() {
	call, err := item.ParseString(`{"type":"shell_call","call_id":"call_1","action":{"commands":["ls","sleep 99"],"timeout_ms":1000}}`)
	if err != nil {
		log.Fatal(err)
	}
	v, err := item.As[item.ShellCall](call)
	if err != nil {
		log.Fatal(err)
	}
	answer := &item.ShellCallOutput{CallID: v.CallID}
	for i, command := range v.Action.Commands {
		out := item.ShellOutput{Stdout: "ran " + command, Outcome: item.ShellExit(0)}
		if i > 0 {
			out = item.ShellOutput{Outcome: item.ShellTimeout()}
		}
		answer.Output = append(answer.Output, out)
	}
	fmt.Println(item.Must(answer).JSON())
	// Output:
	// {"type":"shell_call_output","call_id":"call_1","output":[{"stdout":"ran ls","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]}
}

// Reading where a reply's text comes from.
func ExampleOutputText_Citations() {
	reply, err := item.ParseString(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Graz is in Styria.",
		"annotations":[{"type":"url_citation","url":"https://example.com/graz","title":"Graz","start_index":0,"end_index":4}]}]}`)
	if err != nil {
		log.Fatal(err)
	}
	m, err := item.As[item.Message](reply)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range m.Content.Parts {
		out, ok := p.(*item.OutputText)
		if !ok {
			continue
		}
		list, err := out.Citations()
		if err != nil {
			log.Fatal(err)
		}
		for _, a := range list {
			if url, ok := a.(*item.URLCitation); ok {
				fmt.Println(out.Text[url.StartIndex:url.EndIndex], "from", url.URL)
			}
		}
	}
	// Output:
	// Graz from https://example.com/graz
}

// Reading an event whole, where the view is not enough.
func ExampleEvent_Decode() {
	e, err := api.ParseEvent([]byte(`{"type":"response.image_generation_call.partial_image","item_id":"ig_1","output_index":0,"partial_image_index":1,"partial_image_b64":"iVBORw0KGgo=","sequence_number":7}`))
	if err != nil {
		log.Fatal(err)
	}
	v, err := e.Decode()
	if err != nil {
		log.Fatal(err)
	}
	switch v := v.(type) {
	case *api.ImagePartialEvent:
		fmt.Println("picture", v.Index, "of", v.ItemID, "has", len(v.Image), "bytes of base64")
	case *api.UnknownEvent:
		fmt.Println("what is this?", v.Raw)
	}
	// Output:
	// picture 1 of ig_1 has 12 bytes of base64
}

// Asking for JSON after a schema, from some of the tools only.
func ExampleRequest() {
	text, err := api.TextAsSchema("answer", `{"type":"object","properties":{"ok":{"type":"boolean"}}}`, false)
	if err != nil {
		log.Fatal(err)
	}
	req := &api.Request{
		Model:      "gpt-5",
		Input:      item.NewList(item.User("Is it raining?")),
		Text:       text,
		Tools:      []item.Tool{&item.WebSearchTool{SearchContextSize: "low"}, &item.CodeInterpreterTool{Container: `"cntr_1"`}},
		ToolChoice: api.ChooseAllowed(api.ModeAuto, api.ChooseHosted(item.ToolWebSearch)),
	}
	body, err := req.AppendJSON(nil)
	if err != nil {
		log.Fatal(err)
	}
	choice, err := api.ParseToolChoice(req.ToolChoice)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(choice.Type, choice.Mode, choice.Tools)
	fmt.Println(len(body) > 0)
	// Output:
	// allowed_tools auto [{"type":"web_search"}]
	// true
}
