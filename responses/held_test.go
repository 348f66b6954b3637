// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// blobs is a source of payloads in memory.
type blobs struct {
	mu   sync.Mutex
	kept map[[32]byte][]byte
}

func (b *blobs) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.kept[hash]; ok {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	return nil, os.ErrNotExist
}

// holding returns the items as a store reads them back.
func holding(t testing.TB, items ...item.Item) ([]item.Item, *blobs) {
	src := &blobs{kept: map[[32]byte][]byte{}}
	h := item.NewHolder(src)
	t.Cleanup(h.Close)
	held := make([]item.Item, len(items))
	for i, it := range items {
		rest, payloads, payload := it.Split(0)
		for k, c := range payloads {
			b, err := payload(k)
			if err != nil {
				t.Fatal(err)
			}
			src.kept[c.Hash] = b
		}
		var err error
		if held[i], err = h.Join(rest, payloads); err != nil {
			t.Fatal(err)
		}
		if held[i].Externalized() != strings.Contains(it.JSON(), "YW50aXBob2") {
			t.Fatalf("%s: held %v", it, held[i].Externalized())
		}
	}
	return held, src
}

// pictures is a history with payloads in all places that a profile knows of.
func pictures() []item.Item {
	data := func(n int) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("antiphon"), n)[:7*n])
	}
	image := &item.InputImage{ImageURL: "data:image/png;base64," + data(9_000), Detail: "auto"}
	small := &item.InputImage{ImageURL: "data:image/png;base64," + data(100)}
	file := &item.InputFile{Filename: "a.pdf", FileData: "data:application/pdf;base64," + data(1_001)}
	user, err := item.UserParts(&item.InputText{Text: "see"}, image, file)
	if err != nil {
		panic(err)
	}
	return []item.Item{
		item.System("be brief"), user, called("fc_1", "show", "{}"),
		item.Must(&item.FunctionCallOutput{CallID: "fc_1", Output: item.Parts(&item.InputText{Text: "here"}, small, image, file)}),
		mustParse(`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + data(5_000) + `"}`),
		mustParse(`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,` + data(700) + `"}}`),
		mustParse(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[]}],"x":"` + data(50) + `"}`),
		item.User("and?"),
	}
}

// bodies are the requests that a server got, none of which may hold a reference.
func bodies(t *testing.T, srv *agenttest.Server) []string {
	t.Helper()
	var got []string
	for _, r := range srv.Requests() {
		if len(r.Body) == 0 {
			continue
		}
		got = append(got, string(r.Body))
		if item.HasHeld(got[len(got)-1]) {
			t.Errorf("a reference was sent to %s", r.Path)
		}
	}
	return got
}

// TestHeldSent: every profile gets the same bytes of items that hold their
// payloads elsewhere as of whole ones, over HTTP and a socket. // W8 I12 J4
func TestHeldSent(t *testing.T) {
	items := pictures()
	held, _ := holding(t, items...)
	for _, name := range (*endpoint.Table)(nil).Names() {
		for over, transport := range transports {
			for _, model := range []string{"m", "gpt-3.5-turbo"} {
				p, err := endpoint.ByName(name)
				if err != nil {
					t.Fatal(err)
				}
				p.PreviousResponse, p.WebSocket = endpoint.Yes, endpoint.Yes
				var sent [2]string
				for i, history := range [][]item.Item{items, held} {
					srv := agenttest.NewServer(t)
					srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(said("msg_1", "yes")) })
					th := newChain(t, srv, transport)
					th.Client.Profile = &p
					req := &api.Request{Model: model, Input: item.NewList(history...)}
					d := drainModel(t.Context(), t, th, req)
					var refused *endpoint.RefusedError
					if d.err != nil && !errors.As(d.err, &refused) {
						t.Errorf("%s over %s, %s: %v", name, over, model, d.err)
					}
					req.Input.Append(d.items...)
					req.Input.Append(history[1])
					_ = drainModel(t.Context(), t, th, req) // a second turn, with what is new alone
					if sent[i] = strings.Join(bodies(t, srv), "\n"); sent[i] == "" && d.err == nil {
						t.Errorf("%s over %s: nothing was sent", name, over)
					}
					_ = th.Close()
				}
				if sent[0] != sent[1] {
					t.Errorf("%s over %s, %s: of whole items %d bytes were sent, of held ones %d", name, over, model, len(sent[0]), len(sent[1]))
				}
			}
		}
	}
}

// TestHeldOtherRequests: the requests beside those for responses are sent whole
// too. // W8
func TestHeldOtherRequests(t *testing.T) {
	items := pictures()
	held, _ := holding(t, items...)
	send := map[string]func(context.Context, *responses.Client, *item.List){
		"compact": func(ctx context.Context, c *responses.Client, l *item.List) {
			_, _ = c.Compact(ctx, &api.CompactRequest{Model: "m", Input: l})
		},
		"count": func(ctx context.Context, c *responses.Client, l *item.List) {
			_, _ = c.CountTokens(ctx, &api.Request{Model: "m", Input: l})
		},
		"add": func(ctx context.Context, c *responses.Client, l *item.List) {
			_, _ = c.AddConversationItems(ctx, "conv_1", l)
		},
		"create": func(ctx context.Context, c *responses.Client, l *item.List) {
			_, _ = c.Create(ctx, &api.Request{Model: "m", Input: l})
		},
	}
	for name, send := range send {
		var sent [2]string
		for i, history := range [][]item.Item{items, held} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(400, "no", "no") })
			c := srv.Client()
			c.Profile = openAI(t)
			send(t.Context(), c, item.NewList(history...))
			if sent[i] = strings.Join(bodies(t, srv), "\n"); sent[i] == "" {
				t.Errorf("%s: nothing was sent", name)
			}
		}
		if sent[0] != sent[1] {
			t.Errorf("%s: of whole items %d bytes were sent, of held ones %d", name, len(sent[0]), len(sent[1]))
		}
	}
}

// TestHeldAgain: a retry reads the payloads once more. // J4
func TestHeldAgain(t *testing.T) {
	held, _ := holding(t, pictures()...)
	srv := agenttest.NewServer(t, agenttest.Reset(), agenttest.Failure(500, "", ""), agenttest.Completed(said("msg_1", "yes")))
	c := srv.Client()
	if d := drain(t, c, &api.Request{Model: "m", Input: item.NewList(held...)}); d.err != nil || d.text() == "" && len(d.items) == 0 {
		t.Fatal(d.err)
	}
	got := bodies(t, srv)
	if len(got) != 3 || got[0] != got[1] || got[1] != got[2] {
		t.Errorf("%d requests, not all the same", len(got))
	}
}

// TestHeldMissing: a payload that is not there any more is an error that names
// it, no server takes what was sent for a request, and nothing is tried again.
// // W8
func TestHeldMissing(t *testing.T) {
	for over, transport := range transports {
		for name, spoil := range map[string]func(*blobs){
			"gone": func(b *blobs) { clear(b.kept) },
			"shorter": func(b *blobs) {
				for h, data := range b.kept {
					b.kept[h] = data[:len(data)-1]
				}
			},
			"other": func(b *blobs) {
				for h, data := range b.kept {
					data = bytes.Clone(data)
					data[len(data)-1]++
					b.kept[h] = data
				}
			},
		} {
			held, src := holding(t, pictures()...)
			spoil(src)
			srv := agenttest.NewServer(t)
			answered := 0
			srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
				if item.JSON(r.Body).Valid() == nil {
					answered++
				}
				return agenttest.Completed(said("msg_1", "yes"))
			})
			th := newChain(t, srv, transport)
			th.Client.OnRetry = func(err error, _ time.Duration, _ int) { t.Errorf("%s over %s: tried again after %v", name, over, err) }
			d := drainModel(t.Context(), t, th, &api.Request{Model: "m", Input: item.NewList(held...)})
			var e *item.HeldError
			if !errors.As(d.err, &e) || !strings.Contains(d.err.Error(), "sha256:") || answered > 0 || len(d.items) > 0 {
				t.Errorf("%s over %s: %v, %d whole requests", name, over, d.err, answered)
			}
			if n := len(srv.Requests()); n > 1 {
				t.Errorf("%s over %s: %d requests", name, over, n)
			}
			_ = th.Close()
		}
	}
}

// TestHeldMissingTLS: as TestHeldMissing, over TLS. // W8
func TestHeldMissingTLS(t *testing.T) {
	held, src := holding(t, pictures()...)
	clear(src.kept)
	srv := agenttest.NewTLSServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(said("msg_1", "yes")) })
	d := drain(t, srv.Client(), &api.Request{Model: "m", Input: item.NewList(held...)})
	var e *item.HeldError
	if !errors.As(d.err, &e) || len(d.items) > 0 {
		t.Error(d.err)
	}
}
