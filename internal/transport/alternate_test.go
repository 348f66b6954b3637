// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// turnOf is a message as a chat template sees it: what an assistant says in a
// row is one.
type turnOf struct {
	role  item.Role
	calls bool
}

func turnsOf(r *api.Request) (list []turnOf) {
	if r.Instructions != "" {
		list = append(list, turnOf{role: item.RoleSystem})
	}
	for _, it := range r.Input.All() {
		t := turnOf{role: it.Role()}
		switch {
		case it.IsCall():
			t = turnOf{item.RoleAssistant, true}
		case it.IsOutput():
			t.role = "tool"
		case it.Type() != item.TypeMessage:
			continue
		}
		if n := len(list); n > 0 && t.role == item.RoleAssistant && list[n-1].role == t.role {
			list[n-1].calls = list[n-1].calls || t.calls
			continue
		}
		list = append(list, t)
	}
	return list
}

// refuses judges as the templates of Mistral Nemo, Mistral Small 3.2 and
// Ministral 3 do: one system message in front, then user and assistant in turn,
// where outputs and what calls do not count. That of Gemma 2 counts them too, so
// it is held against histories without.
func refuses(list []turnOf) error {
	if len(list) > 0 && list[0].role == item.RoleSystem {
		list = list[1:]
	}
	n := 0
	for i, t := range list {
		switch {
		case t.role == "tool" || t.calls:
			continue
		case t.role != item.RoleUser && t.role != item.RoleAssistant:
			return fmt.Errorf("message %d is of %s", i, t.role)
		case (t.role == item.RoleUser) != (n%2 == 0):
			return fmt.Errorf("message %d: roles must alternate", i)
		}
		n++
	}
	if len(list) > 0 && list[len(list)-1].role == item.RoleAssistant {
		return errors.New("the last message is of the assistant")
	}
	return nil
}

// B8 I12: whatever was said, the profiles of servers with chat templates fit it to
// the strictest of them, with every word of it, in order; and to the same whether
// it was sent before or not.
func TestAnyHistoryAlternates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := endpoint.ByName(rapid.SampledFrom([]string{"plain", "llama.cpp", "vllm", "ollama"}).Draw(t, "profile"))
		if err != nil {
			t.Fatal(err)
		}
		link := &transport.Config{Discovered: new(transport.Discovered)}
		list, fresh := new(item.List), new(item.List)
		var words []string
		for i := range rapid.IntRange(1, 20).Draw(t, "items") {
			word := fmt.Sprintf("<%d>", i)
			var items []item.Item
			switch rapid.IntRange(0, 6).Draw(t, "kind") {
			case 0:
				items = []item.Item{item.System(word)}
			case 1:
				items = []item.Item{item.Assistant(word)}
			case 2:
				id := fmt.Sprint("c", i)
				items = []item.Item{item.Call(id, "f", `{}`), item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Text(word)})}
			case 3:
				image, err := item.UserParts(&item.InputText{Text: word}, &item.InputImage{ImageURL: "data:image/png;base64,AAAA"})
				if err != nil {
					t.Fatal(err)
				}
				items = []item.Item{image}
			default:
				items = []item.Item{item.User(word)}
			}
			words = append(words, word)
			list.Append(items...)
			fresh.Append(items...)
			if rapid.Bool().Draw(t, "sent") {
				if _, err := link.Fit(&api.Request{Model: "m", Input: list.Clone()}, &p); err != nil {
					t.Fatal(err)
				}
			}
		}
		sent, err := link.Fit(&api.Request{Model: "m", Input: list.Clone()}, &p)
		if err != nil {
			t.Fatal(err)
		}
		if err := refuses(turnsOf(sent)); err != nil {
			t.Fatalf("%v: %s", err, sent.Input.JSON())
		}
		again, err := link.Fit(&api.Request{Model: "m", Input: fresh}, &p)
		if err != nil || again.Input.JSON() != sent.Input.JSON() {
			t.Fatalf("%v: sent before\n%s\nor not\n%s", err, sent.Input.JSON(), again.Input.JSON())
		}
		text := sent.Instructions + sent.Input.JSON()
		if p.Instructions != endpoint.Leading { // they come first there, which is another order
			at := 0
			for _, w := range words {
				i := strings.Index(text[at:], w)
				if i < 0 {
					t.Fatalf("%s is missing, or out of order: %s", w, text)
				}
				at += i
			}
		}
		for _, w := range words {
			if strings.Count(text, w) != 1 {
				t.Fatalf("%s is sent %d times: %s", w, strings.Count(text, w), text)
			}
		}
	})
}
