// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// turnsOf is a history of n turns with a call each.
func turnsOf(n int) *item.List {
	l := item.NewList(item.User("go"))
	for i := range n {
		addTurn(l, i)
	}
	return l
}

func addTurn(l *item.List, i int) {
	id := fmt.Sprintf("call_%d", i)
	out, _ := item.Output(id, item.Text("some output"))
	l.Append(item.Call(id, "read_file", `{"path":"a.txt"}`), out)
}

func encode(r *api.Request, profile *endpoint.Profile) (item.Body, error) {
	m, err := Dialect{}.Encode(dialect.Outgoing{Request: r, Given: r, Profile: profile})
	if err != nil {
		return nil, err
	}
	return m.Body, nil
}

// L9: a turn costs what is new in it.
func TestTurnCost(t *testing.T) {
	cost := func(turns int) float64 {
		c, l := &Client{BaseURL: "http://somewhere"}, turnsOf(turns) // of a profile that rewrites
		encode := func() {
			link, req := (*dialect.Config)(c).Transport(), &api.Request{Model: "m", Input: l.Clone()}
			profile, err := link.Known()
			if err != nil {
				t.Fatal(err)
			}
			fitted, err := link.Fit(req, profile)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (Dialect{}).Encode(dialect.Outgoing{Request: fitted, Given: req, Stream: true, Profile: profile}); err != nil {
				t.Fatal(err)
			}
		}
		encode()
		i := turns
		return testing.AllocsPerRun(50, func() {
			addTurn(l, i)
			i++
			encode()
		})
	}
	if few, many := cost(10), cost(5000); many > 2*few {
		t.Errorf("a turn costs %v allocations behind 10 others, %v behind 5000", few, many)
	}
}

// I12: the body of the next turn begins with the messages of this one, and is
// what a conversion in one piece makes.
func TestBodiesGrow(t *testing.T) {
	l := turnsOf(0)
	profile, before := &endpoint.Profile{Name: "bare"}, ""
	for i := range 20 {
		addTurn(l, i)
		if i%3 == 0 {
			l.Append(item.Assistant("so"), item.User("and?"))
		}
		body, err := encode(&api.Request{Input: l.Clone()}, profile)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := body[1:2].Text()
		if err != nil || len(messages) <= len(before) || messages[:len(before)] != before {
			t.Fatalf("%s does not begin with %s", messages, before)
		}
		before = messages
		whole, _, err := AppendRequest(nil, &api.Request{Input: l}, OptionsFor(profile))
		if grown, _ := body.Text(); err != nil || grown != string(whole) {
			t.Fatalf("%v: in one piece %s, grown %v", err, whole, body)
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{10, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := turnsOf(n)
			profile := &endpoint.Profile{Name: "bare"}
			for i := 0; b.Loop(); i++ {
				addTurn(l, n+i)
				if _, err := encode(&api.Request{Model: "m", Input: l.Clone()}, profile); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecoder(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1771434740,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}`)
	var d Decoder
	yield := func(api.Event) bool { return true }
	b.ReportAllocs()
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if err := d.Decode(chunk, yield); err != nil {
			b.Fatal(err)
		}
	}
}
