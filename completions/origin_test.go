// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// refusal is a 400 that names a place.
func refusal(param, code string) agenttest.Reply {
	return agenttest.Raw(400, "application/json", fmt.Sprintf(`{"error":{"message":"Invalid value.","type":"invalid_request_error","param":%q,"code":%q}}`, param, code))
}

// pixel is a whole image: what is none is not sent.
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="

// T12: an error that names a message names the item that it was made of, however
// many items became one message, or were moved.
func TestRefusedItem(t *testing.T) {
	images := func(id, text string) item.Item {
		out, err := item.Output(id, item.Parts(&item.InputText{Text: text}, &item.InputImage{ImageURL: pixel}))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	list := item.NewList(
		item.User("a"), // messages[1], behind the instructions
		item.Must(&item.Reasoning{ID: "rs", Summary: []item.Part{}}),
		item.Assistant("b"), // messages[2], with the calls
		item.Call("c1", "f", "{}"),
		item.Call("c2", "f", "{}"),
		images("c1", "one"), // messages[3]
		images("c2", "two"), // messages[4]; messages[5] has the images of both
		item.User("d"),      // messages[6]
	)
	for param, want := range map[string]int{
		"messages[1].content":                    0,
		"messages[1]":                            0,
		"messages.[2].content":                   2,
		"messages[2]":                            -1,
		"messages[2].tool_calls[1].function":     4,
		"messages.2.tool_calls.0":                3,
		"messages[2].refusal":                    -1,
		"messages[3].content":                    5,
		"messages[4].content[0].text":            6,
		"messages[5].content[0].image_url":       5,
		"messages.[5].content.[1].image_url.url": 6,
		"messages[5]":                            -1,
		"messages[6].content":                    7,
		"messages[7]":                            -1,
		"messages[0].content":                    -1,
		"messages":                               -1,
	} {
		for _, stream := range []bool{false, true} {
			srv := agenttest.NewServer(t, refusal(param, "invalid_value"))
			c := client(srv)
			c.Profile = &endpoint.Profile{Name: "as it is"}
			parts := dialect.Client{Config: (*dialect.Config)(c), Dialect: completions.Dialect{Options: &completions.Options{Reasoning: completions.ReasoningContent}}}
			req := &api.Request{Model: "m", Instructions: "Be brief.", Input: list}
			var err error
			if stream {
				err = drain(t.Context(), t, parts, req).err
			} else {
				_, err = parts.Create(t.Context(), req)
			}
			var at agent.ItemRefused
			if !errors.As(err, &at) || at.RefusedItem() != want {
				t.Errorf("%s: %v, want item %d", param, err, want)
			}
			wantClass(t, err, endpoint.BadRequest)
		}
	}
}

// T12: an image that the endpoint refuses is left out, over Chat Completions as
// elsewhere: the run goes on, and so does the session. An error that names nothing
// can only mean the one image there is.
func TestImageRefused(t *testing.T) {
	call := agenttest.Events(
		delta(`"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]`),
		finish("tool_calls"), usage).WithDone()
	look, err := tool.Raw(&item.FunctionTool{Name: "look", Parameters: `{"type":"object"}`}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "here", Parts: []item.Part{&item.InputImage{ImageURL: pixel}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, param := range []string{"messages[3].content[0].image_url", "messages[99]", ""} {
		srv := agenttest.NewServer(t, call, refusal(param, "invalid_image"), reply("I cannot see it."), reply("Still not."))
		c := client(srv)
		c.Profile = &endpoint.Profile{Name: "as it is"}
		s := session.New()
		a := &agent.Agent{Model: c, Request: api.Request{Model: "m"}, Tools: []tool.Tool{look}, Policy: agent.Policy{Allow: []string{"*"}}}
		for i, text := range []string{"look", "and now?"} {
			if res, err := a.Run(t.Context(), s, item.User(text)); err != nil || res.Why != agent.StopEndTurn {
				t.Errorf("%q: run %d: %+v, %v", param, i, res, err)
			}
		}
		list := srv.Requests()
		if len(list) != 4 {
			t.Fatalf("%q: %d requests", param, len(list))
		}
		for i, r := range list {
			if has := strings.Contains(string(r.Body), "base64"); has != (i == 1) {
				t.Errorf("%q: request %d: image %v: %s", param, i, has, r.Body)
			}
		}
	}
}
