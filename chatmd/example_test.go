// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd_test

import (
	"context"
	"fmt"
	"os"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
)

// A file is read, its message answered, and the answer appended.
func Example() {
	src := []byte(`<config model="gpt-5"/>
<user>
What is in <doc src="notes.txt" local/>?
</user>
`)
	file, err := chatmd.Parse("agent.md", src)
	if err != nil {
		fmt.Println(err) // every problem of the file, a line each
		return
	}
	resolver := chatmd.ResolverFunc(func(_ context.Context, ref chatmd.Ref) ([]byte, string, error) {
		return []byte("<milk>"), "text/plain", nil
	})
	items, err := file.Items(context.Background(), resolver)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Config.Model, items[0].Item.JSON())

	reply := item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: item.StatusCompleted, Content: item.Parts(&item.OutputText{Text: "Milk.", Annotations: "[]"})})
	out, err := chatmd.Append(nil, reply)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = os.Stdout.Write(out)
	// Output:
	// gpt-5 {"type":"message","content":[{"type":"input_text","text":"What is in <milk>?"}],"role":"user"}
	// <assistant id="msg_1" status="completed">
	// Milk.
	// </assistant>
}

// Mistakes have a place and a hint.
func ExampleParse_errors() {
	_, err := chatmd.Parse("agent.md", []byte("Hello\n<usr>Hi</usr>\n<config temperature=\"warm\"/>\n"))
	fmt.Println(err)
	// Output:
	// agent.md:1:1: text outside of any element: Hello (put it inside <user> … </user>)
	// agent.md:2:1: unknown tag <usr> at the top level (did you mean <user>?)
	// agent.md:3:9: <config>: temperature is not a number: "warm": temperature="warm" (such as temperature="0.7")
}
