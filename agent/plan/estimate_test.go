// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// C4: texts count by their bytes, images by detail and size and never by their
// base64, encrypted reasoning by what it holds.
func TestEstimate(t *testing.T) {
	image := func(bytes int, d item.Detail) item.Item {
		url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, bytes))
		return item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputImage{ImageURL: url, Detail: d})})
	}
	file := item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputFile{Filename: "a", FileData: "data:x;base64," + strings.Repeat("AAAA", 1<<18)})})
	reasoning := item.Must(&item.Reasoning{ID: "rs", EncryptedContent: strings.Repeat("A", 4000)})
	for _, c := range []struct {
		name     string
		model    string
		it       item.Item
		low, top int
	}{
		{"short", "gpt-4o", item.User("hello"), 5, 40},
		{"text", "gpt-4o", item.User(strings.Repeat("word ", 1000)), 1250, 1300},
		{"other letters", "gpt-4o", item.User(strings.Repeat("文", 1000)), 1000, 1050},
		{"icon", "gpt-4o", image(500, ""), 255, 300},
		{"photo", "gpt-4o", image(5<<20, item.DetailHigh), 765, 1500},
		{"low", "gpt-4o", image(5<<20, item.DetailLow), 85, 100},
		{"low, another model", "gpt-4o-mini", image(5<<20, item.DetailLow), 2800, 2900},
		{"file", "gpt-4o", file, 500, 5000},
		{"reasoning", "gpt-5", reasoning, 500, 700},
	} {
		if n := plan.Estimate(c.model, c.it); n < c.low || n > c.top {
			t.Errorf("%s: %d, want %d to %d", c.name, n, c.low, c.top)
		}
	}
}

// held has payloads by their hash.
type held map[[32]byte][]byte

func (h held) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	return nil, errors.New("an estimate reads no payload")
}

// C4 R6: the estimate is the same whether payloads are at hand or held elsewhere,
// so that a log that was read back decides what it did before.
func TestEstimateOfHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []item.Part
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			data := bytes.Repeat([]byte{7}, rapid.IntRange(200, 200_000).Draw(t, "size"))
			switch url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(data); rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				parts = append(parts, &item.InputImage{ImageURL: url, Detail: item.Detail(rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "detail"))})
			case 1:
				parts = append(parts, &item.InputFile{Filename: "a", FileData: url})
			case 2:
				parts = append(parts, &item.InputText{Text: "a text"})
			}
		}
		it := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Parts(parts...)})
		rest, payloads, payload := it.Split(item.LeastPayload)
		source := held{}
		for i := range payloads {
			b, err := payload(i)
			if err != nil {
				t.Fatal(err)
			}
			source[sha256.Sum256(b)] = b
		}
		h := item.NewHolder(source)
		defer h.Close()
		back, err := h.Join(rest, payloads)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := plan.Estimate("gpt-4o", it), plan.Estimate("gpt-4o", back); a != b {
			t.Fatalf("%d as it is, %d held", a, b)
		}
	})
}

// counting counts how many items it was asked about.
type counting int

func (c *counting) Estimate(model string, it item.Item) int {
	*c++
	return plan.Estimate(model, it)
}

// C4 L9: what a turn estimates is what is new in it, and what the endpoint
// reports takes the place of the estimate.
func TestTokens(t *testing.T) {
	n := new(counting)
	s := plan.State{Room: plan.ContextBudget{On: true, Start: 1 << 40, Estimator: n}}
	seq := int64(0)
	add := func(b session.Body) {
		seq++
		s.Apply(session.Entry{Seq: seq, Body: b})
	}
	add(session.RunStarted{})
	items := 0
	for turn := range 1000 {
		add(session.InputItem{Item: item.User(strings.Repeat("q ", 50))})
		s.Next()
		add(session.TurnStarted{Turn: turn + 1})
		add(session.OutputItem{Turn: turn + 1, Item: item.Assistant("a")})
		items += 2
		add(session.TurnEnded{Turn: turn + 1, Status: "completed", Usage: &api.Usage{InputTokens: int64(50 * items)}})
		s.Next()
	}
	if int(*n) > items {
		t.Errorf("%d estimates of %d items", *n, items)
	}
	if got, want := s.Tokens(), int64(50*items); got < want || got > want+50 {
		t.Errorf("%d tokens, want about %d", got, want)
	}
	through, _ := s.View().Boundary(items / 2)
	add(session.Compacted{Through: through, Items: []item.Item{item.User("in short")}})
	if got, want := s.Tokens(), int64(50*items/2); got < want*8/10 || got > want*12/10 {
		t.Errorf("half of it has %d tokens, want about %d", got, want)
	}
}
