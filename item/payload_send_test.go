// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// pictured is a user's message with images, of which some are alike.
func pictured(sizes ...int) item.Item {
	parts := []item.Part{&item.InputText{Text: "look"}}
	for _, n := range sizes {
		parts = append(parts, &item.InputImage{ImageURL: dataURI(n, n), Detail: "low"})
	}
	return must(item.UserParts(parts...))
}

// TestHeldIsSentWhole: whatever encodes items for others has the base64 in it,
// and no reference. // W8 J4
func TestHeldIsSentWhole(t *testing.T) {
	h, src := newHolder(t)
	whole := pictured(3000, 40_001)
	held := hold(t, h, src, whole)
	if !held.Externalized() || whole.Externalized() {
		t.Fatal("not held")
	}
	encodings := func(it item.Item) map[string]func() ([]byte, error) {
		m := must(item.As[item.Message](it))
		content, _ := it.Member("content")
		l := item.NewList(item.User("a"), it, item.User("b"), it)
		r := &api.Request{Model: "m", Input: l}
		odd := &api.Request{Input: l, Metadata: content, Extra: item.Extra{{Name: "x", Value: content}}}
		quoted := &api.Request{Instructions: it.JSON(), Input: item.NewList(item.Assistant(it.JSON()))}
		body := func(b item.Body, err error) func() ([]byte, error) {
			return func() ([]byte, error) {
				if err != nil || !b.Held() && it.Externalized() {
					return nil, fmt.Errorf("held %v: %w", b.Held(), err)
				}
				text, err := io.ReadAll(iotest.OneByteReader(b.NewReader()))
				if again, _ := b.Text(); err == nil && (string(text) != again || b.Len() != int64(len(again))) {
					return nil, fmt.Errorf("read %d bytes, at once %d, said %d", len(text), len(again), b.Len())
				}
				return text, err
			}
		}
		return map[string]func() ([]byte, error){
			"item":              it.MarshalJSON,
			"json of item":      func() ([]byte, error) { return json.Marshal([]any{it, content, l, r}) },
			"member":            content.MarshalJSON,
			"content":           func() ([]byte, error) { _, s, err := m.Content.Persist(); return []byte(s), err },
			"text":              func() ([]byte, error) { _, s, err := item.Text(it.JSON()).Persist(); return []byte(s), err },
			"item again":        must(item.New(m)).MarshalJSON,
			"item with":         must(it.With("id", `"msg_1"`)).MarshalJSON,
			"item with content": must(item.User("x").With("content", must(m.Content.JSON()))).MarshalJSON,
			"list":              l.MarshalJSON,
			"list behind":       func() ([]byte, error) { return l.AppendJSON([]byte("before")) },
			"request":           r.MarshalJSON,
			"request behind":    func() ([]byte, error) { return r.AppendJSON([]byte("before")) },
			"odd request":       odd.MarshalJSON,
			"quoted":            quoted.MarshalJSON,
			"body":              body(r.Body()),
			"odd body":          body(odd.Body()),
			"quoted body":       body(quoted.Body()),
			"without input":     body((&api.Request{Metadata: content}).Body()),
			"event body":        body((&api.CreateEvent{Request: r}).Body()),
			"event":             func() ([]byte, error) { return api.AppendClientEvent(nil, &api.CreateEvent{Request: r}) },
			"compact":           func() ([]byte, error) { return (&api.CompactRequest{Model: "m", Input: l}).AppendJSON(nil) },
			"compact body":      body((&api.CompactRequest{Model: "m", Input: l}).Body()),
			"compacted":         func() ([]byte, error) { return (&api.Compacted{Output: []item.Item{it}}).AppendJSON(nil) },
			"count":             func() ([]byte, error) { return api.CountOf(r).AppendJSON(nil) },
			"count body":        body(api.CountOf(r).Body()),
			"added":             func() ([]byte, error) { return (&api.AddItems{Items: l}).AppendJSON(nil) },
			"added body":        body((&api.AddItems{Items: l}).Body()),
			"page":              func() ([]byte, error) { return (&api.ItemPage{Data: []item.Item{it}}).AppendJSON(nil) },
			"response":          (&api.Response{Output: []item.Item{it}}).MarshalJSON,
			"texts":             body(item.TextBody("a", it.JSON(), it.JSON()+it.JSON()), nil),
			"event of an answer": func() ([]byte, error) {
				e, err := api.NewEvent(&api.ItemDoneEvent{Item: it})
				return []byte(e.JSON()), err
			},
		}
	}
	want := encodings(whole)
	for name, encode := range encodings(held) {
		got, err := encode()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if plain := must(want[name]()); string(got) != string(plain) || item.HasHeld(string(got)) {
			t.Errorf("%s: %d bytes, want the %d of a whole item", name, len(got), len(plain))
		}
	}
	h.Close()
	for name, encode := range encodings(held) {
		got, err := encode()
		var e *item.HeldError
		if !errors.As(err, &e) || item.HasHeld(string(got)) {
			t.Errorf("%s: after the store was closed: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestHeldDisplay: what people see of a held item is what they see of the whole
// one, and nothing is read for it. // W13 C5
func TestHeldDisplay(t *testing.T) {
	h, src := newHolder(t)
	content := item.Parts(
		&item.InputText{Text: "a"}, &item.InputImage{ImageURL: dataURI(700, 1), Detail: "high"}, &item.InputImage{ImageURL: encoded(800, 2)},
		&item.InputFile{Filename: "f.pdf", FileData: "data:application/pdf;base64," + encoded(900, 3)}, &item.InputFile{FileData: encoded(2000, 4)},
		&item.InputImage{ImageURL: "data:;base64," + encoded(901, 5)},
	)
	whole := item.Must(&item.FunctionCallOutput{CallID: "c", Output: content})
	held := hold(t, h, src, whole)
	if strings.Contains(held.JSON(), encoded(700, 1)) || !held.Externalized() {
		t.Fatal("not held")
	}
	src.opened.Store(0)
	shown := must(item.As[item.FunctionCallOutput](held)).Output.Display()
	n := src.opened.Load()
	if want := content.Display(); shown != want || n > 0 {
		t.Errorf("%s\nwant\n%s\n%d payloads read", shown, want, n)
	}
	if s := item.ShowHeld(held.JSON()); item.HasHeld(s) || !strings.Contains(s, "(700 bytes, sha256:") || item.ShowHeld(whole.JSON()) != whole.JSON() {
		t.Errorf("%s", s)
	}
}

// TestForged: a text that has the form of a reference is a text. // J4
func TestForged(t *testing.T) {
	h, src := newHolder(t)
	it := pictured(500)
	held := hold(t, h, src, it)
	u := must(item.As[item.Message](held)).Content.Parts[1].(*item.InputImage).ImageURL
	token := u[strings.IndexByte(u, ',')+1:]
	forged := "^" + strings.Repeat("A", 26) + token[27:] // as another process writes them
	for _, s := range []string{forged, token[:20], token[1:], "^" + token[2:], strings.ToLower(token)} {
		said := item.User("data:image/png;base64," + s)
		if said.Externalized() || item.HasHeld(s) {
			t.Errorf("%q is held", s)
		}
		l := item.NewList(said, held, said)
		want := "[" + said.JSON() + "," + it.JSON() + "," + said.JSON() + "]"
		if got := must(l.MarshalJSON()); string(got) != want {
			t.Errorf("%q is not the text it was", s)
		}
	}
	if strings.ContainsAny(token, `"\/<>&' `) || string(item.Quote(token)) != `"`+token+`"` || string(must(json.Marshal(token))) != `"`+token+`"` {
		t.Errorf("%q has something to escape", token)
	}
}

// TestHeldLists: a list of held items is, to others, the list of the whole ones,
// whatever is done with it. // W8 I12
func TestHeldLists(t *testing.T) {
	h, src := newHolder(t)
	wholes := []item.Item{item.User("a"), pictured(200), pictured(300, 301), pictured(25_000, 200), item.Assistant("^")}
	helds := make([]item.Item, len(wholes))
	for i, it := range wholes {
		helds[i] = hold(t, h, src, it)
	}
	key := new(int)
	rewrite := func(dst, src *item.List, from int) error {
		for i := from; i < src.Len(); i++ {
			dst.Append(src.At(i), item.User("then"), src.At(i))
		}
		return nil
	}
	type pair struct{ held, whole *item.List }
	rapid.Check(t, func(t *rapid.T) {
		pairs := []pair{{new(item.List), new(item.List)}}
		pick := func() pair { return pairs[rapid.IntRange(0, len(pairs)-1).Draw(t, "list")] }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				p, i := pick(), rapid.IntRange(0, len(wholes)-1).Draw(t, "item")
				p.held.Append(helds[i])
				p.whole.Append(wholes[i])
			},
			"append raw": func(t *rapid.T) {
				p, i := pick(), rapid.IntRange(0, len(wholes)-1).Draw(t, "item")
				if p.held.AppendRaw([]byte(helds[i].JSON())) != nil || p.whole.AppendRaw([]byte(wholes[i].JSON())) != nil {
					t.Fatal("not taken")
				}
			},
			"clone": func(t *rapid.T) {
				p := pick()
				pairs = append(pairs, pair{p.held.Clone(), p.whole.Clone()})
			},
			"derive": func(t *rapid.T) {
				p := pick()
				if p.held.Len() < 20 {
					pairs = append(pairs, pair{must(p.held.Derive(key, rewrite)), must(p.whole.Derive(key, rewrite))})
				}
			},
			"derive in vain": func(t *rapid.T) {
				p := pick()
				fails := func(dst, src *item.List, from int) error {
					return errors.Join(rewrite(dst, src, from), io.ErrNoProgress)
				}
				_, _ = p.held.Derive(key, fails) // no error where there is nothing new
			},
			"": func(t *rapid.T) {
				p := pick()
				got, want := must(p.held.MarshalJSON()), must(p.whole.MarshalJSON())
				if string(got) != string(want) || p.held.Size() != len(want) {
					t.Fatalf("%d bytes, said %d, want %d", len(got), p.held.Size(), len(want))
				}
				read := must(io.ReadAll(iotest.HalfReader(item.ListBody("[", p.held, "]").NewReader())))
				if string(read) != string(want) {
					t.Fatalf("read %d bytes, want %d", len(read), len(want))
				}
			},
		})
	})
}

// TestBodyReaders: a body can be read by several at once, given up at any time,
// and fails where a payload does.
func TestBodyReaders(t *testing.T) {
	h, src := newHolder(t)
	held := hold(t, h, src, pictured(100_000, 70_001))
	body := must((&api.Request{Input: item.NewList(held, held)}).Body())
	want := must(body.Text())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := body.NewReader()
			if i%2 == 1 {
				wg.Go(func() { _ = r.Close() })
			}
			got, err := io.ReadAll(r)
			switch {
			case err == nil && string(got) == want:
			case i%2 == 1 && errors.Is(err, io.ErrClosedPipe) && strings.HasPrefix(want, string(got)):
			default:
				t.Errorf("%d bytes, %v", len(got), err)
			}
			_ = r.Close()
		})
	}
	wg.Wait()
	for _, data := range src.kept {
		data[0]++ // it was checked before, and is not again
	}
	if _, err := io.ReadAll(body.NewReader()); err != nil {
		t.Error(err)
	}
	clear(src.kept)
	var e *item.HeldError
	if got, err := io.ReadAll(body.NewReader()); !errors.As(err, &e) || !strings.HasPrefix(want, string(got)) || body.Check() != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if h.Close(); !errors.As(body.Check(), &e) {
		t.Error("the body can be sent though its store was closed")
	}
}
