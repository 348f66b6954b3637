// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
)

// named is a backend with one model, which says its name and how many items it received.
type named struct {
	server.Backend
	model string
}

func (n named) Models(_ context.Context, id string) ([]server.Model, error) {
	if id != "" && id != n.model {
		return nil, nil
	}
	return []server.Model{{ID: n.model, OwnedBy: "test"}}, nil
}

// picky is a store that keeps messages alone, as that of agents does.
type picky struct{ server.Memory }

func (p *picky) Put(ctx context.Context, rec server.StoredObject) error {
	if rec.Conversation != nil {
		for _, it := range rec.Input {
			if it.Type() != item.TypeMessage {
				return server.Invalid("unsupported_value", "items", "only messages can be in it")
			}
		}
	}
	return p.Memory.Put(ctx, rec)
}

// besides serves a model "a", and beside it a model "b".
func besides(t *testing.T) (base string, c *responses.Client) {
	t.Helper()
	says := func(model string) server.Backend {
		return named{model: model, Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
			if r.Instructions == "refuse" {
				return server.Invalid("unsupported_parameter", "instructions", "refused by %s", model)
			}
			if r.Instructions == "break" {
				return errors.New("broken")
			}
			return w.Text(model + strings.Repeat("+", len(r.Items)))
		})}
	}
	s := &server.Server{Backend: says("a"), Store: new(picky), Beside: &server.Server{Backend: says("b"), Store: new(server.Memory)}}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base, clientOf(t, base)
}

// respond sends a request that must be answered.
func respond(t *testing.T, base, body string) *api.Response {
	t.Helper()
	resp, data := postRaw(t, base+"/responses", body)
	r, err := api.ParseResponse(data)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", body, resp.Status, data)
	}
	return r
}

func saidBy(r *api.Response) string {
	if len(r.Output) == 0 {
		return ""
	}
	m, err := item.As[item.Message](r.Output[0])
	if err != nil {
		return err.Error()
	}
	return m.Content.Display()
}

// A model is answered by the server that has it, and what was made can be found, continued
// and deleted, each by its own.
func TestBeside(t *testing.T) {
	base, c := besides(t)
	for _, model := range []string{"a", "b"} {
		first := respond(t, base, `{"model":"`+model+`","input":"x"}`)
		next := respond(t, base, `{"model":"`+model+`","input":"y","previous_response_id":"`+first.ID+`"}`)
		if saidBy(first) != model+"+" || saidBy(next) != model+"+++" {
			t.Errorf("%s: %q, %q", model, saidBy(first), saidBy(next))
		}
		other := map[string]string{"a": "b", "b": "a"}[model]
		if status, e := raw(t, c, http.MethodPost, base+"/responses", `{"model":"`+other+`","input":"y","previous_response_id":"`+first.ID+`"}`); status != 400 || e.Param != "model" || !strings.Contains(e.Message, "'"+other+"'") {
			t.Errorf("%s goes on for %s: %d %+v", other, model, status, e)
		}
		// A reference finds the item in either server.
		if r := respond(t, base, `{"model":"`+other+`","input":[{"type":"item_reference","id":"`+first.Output[0].ID()+`"}]}`); saidBy(r) != other+"+" {
			t.Errorf("%s: %q", other, saidBy(r))
		}
		for range 2 {
			got, err := c.Retrieve(t.Context(), first.ID, nil)
			if err != nil || saidBy(got) != model+"+" {
				t.Errorf("%s: %+v, %v", model, got, err)
			}
		}
		if err := c.Delete(t.Context(), first.ID); err != nil {
			t.Error(err)
		}
		if status, e := raw(t, c, http.MethodGet, base+"/responses/"+first.ID, ""); status != http.StatusNotFound || e == nil {
			t.Errorf("%d %+v", status, e)
		}
	}
	if status, e := raw(t, c, http.MethodPost, base+"/responses", `{"model":"a","input":"y","previous_response_id":"resp_none"}`); status != 400 || e.Code != "previous_response_not_found" {
		t.Errorf("%d %+v", status, e)
	}
	resp, data := postRaw(t, base+"/chat/completions", `{"model":"b","messages":[{"role":"user","content":"x"}]}`)
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(data), "b+") {
		t.Errorf("%s %s", resp.Status, data)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := c.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer listed.Body.Close()
	if list, err := io.ReadAll(listed.Body); err != nil || strings.Count(string(list), `"id":"a"`) != 1 || strings.Count(string(list), `"id":"b"`) != 1 {
		t.Errorf("%s %v", list, err)
	}
}

// A conversation belongs to the first model that answers in it. Before that it is nobody's,
// also after requests that were refused.
func TestConversationBeside(t *testing.T) {
	base, c := besides(t)
	for _, model := range []string{"a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[model]
		conv, err := c.CreateConversation(t.Context(), &api.CreateConversation{Items: item.NewList(item.User("hello"))})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(model, more string) string {
			return `{"model":"` + model + `","input":"x","conversation":"` + conv.ID + `"` + more + `}`
		}
		for _, refused := range []string{other, model, other} {
			if status, e := raw(t, c, http.MethodPost, base+"/responses", ask(refused, `,"instructions":"refuse"`)); status != 400 || !strings.Contains(e.Message, "refused by "+refused) {
				t.Errorf("%s: %d %+v", refused, status, e)
			}
		}
		if _, err := c.AddConversationItems(t.Context(), conv.ID, item.NewList(item.User("again"))); err != nil {
			t.Error(err)
		}
		if r := respond(t, base, ask(model, "")); saidBy(r) != model+"+++" {
			t.Errorf("%s: %q", model, saidBy(r))
		}
		if status, e := raw(t, c, http.MethodPost, base+"/responses", ask(other, "")); status != 400 || e.Param != "model" {
			t.Errorf("%s answers in the conversation of %s: %d %+v", other, model, status, e)
		}
		if r := respond(t, base, ask(model, "")); saidBy(r) != model+"+++++" {
			t.Errorf("%s: %q", model, saidBy(r))
		}
		if got := itemsOf(t, c, conv.ID); len(got) != 6 {
			t.Error(got)
		}
		if got, err := c.RetrieveConversation(t.Context(), conv.ID); err != nil || got.ID != conv.ID {
			t.Error(got, err)
		}
		if err := c.DeleteConversation(t.Context(), conv.ID); err != nil {
			t.Error(err)
		}
		if status, _ := raw(t, c, http.MethodGet, base+"/conversations/"+conv.ID, ""); status != http.StatusNotFound {
			t.Error("the conversation is still there", status)
		}
	}
	// What the server of a model cannot keep is an error, and stays where it is.
	conv, err := c.CreateConversation(t.Context(), &api.CreateConversation{Items: item.NewList(item.Call("c1", "f", "{}"), item.Must(&item.FunctionCallOutput{CallID: "c1", Output: item.Text("o")}))})
	if err != nil {
		t.Fatal(err)
	}
	if status, e := raw(t, c, http.MethodPost, base+"/responses", `{"model":"a","input":"x","conversation":"`+conv.ID+`"}`); status != 400 || !strings.Contains(e.Message, "only messages") {
		t.Errorf("%d %+v", status, e)
	}
	if r := respond(t, base, `{"model":"b","input":"x","conversation":"`+conv.ID+`"}`); saidBy(r) != "b+++" {
		t.Errorf("%q", saidBy(r))
	}
}

// Over one WebSocket both are asked, and what is not stored can be continued.
func TestSocketBeside(t *testing.T) {
	base, c := besides(t)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+"/responses", &websocket.DialOptions{HTTPClient: c.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	ask := func(members string) (r *api.Response, refused string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create","store":false,"input":"x",`+members+`}`)); err != nil {
			t.Fatal(err)
		}
		for {
			_, frame, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ev, err := api.ParseEvent(frame)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case ev.Type == api.EventError:
				return nil, string(frame)
			case ev.Terminal():
				if r, err = ev.Response(); err != nil {
					t.Fatal(err)
				}
				return r, ""
			}
		}
	}
	for _, model := range []string{"a", "b"} {
		first, _ := ask(`"model":"` + model + `"`)
		if saidBy(first) != model+"+" {
			t.Fatal(first)
		}
		next, refused := ask(`"model":"` + model + `","previous_response_id":"` + first.ID + `"`)
		if refused != "" || saidBy(next) != model+"+++" {
			t.Errorf("%s: %v %s", model, next, refused)
		}
		other := map[string]string{"a": "b", "b": "a"}[model]
		if _, refused := ask(`"model":"` + other + `","previous_response_id":"` + next.ID + `"`); !strings.Contains(refused, "'"+other+"'") {
			t.Errorf("%s goes on for %s: %s", other, model, refused)
		}
	}
}
