// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// Of several servers over one store, one at a time answers in a conversation, as of the requests to one server.
func TestConversationOfTwoServers(t *testing.T) {
	up, asked, answer := agenttest.NewServer(t), make(chan struct{}, 1), make(chan struct{})
	up.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		if n == 0 {
			asked <- struct{}{}
			<-answer
		}
		return agenttest.Completed(item.Assistant("Well."))
	})
	in := opened(t)
	a, b := recalling(t, up, in), recalling(t, up, in)
	_, _, talk := a.ask(http.MethodPost, "/conversations", `{}`)
	_, id, _ := strings.Cut(talk, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	body := `{"model":"m","input":"hi","conversation":"` + id + `"}`
	first := make(chan int)
	go func() {
		status, _, _ := a.ask(http.MethodPost, "/responses", body)
		first <- status
	}()
	<-asked
	for _, w := range []*world{a, b} {
		if status, _, text := w.ask(http.MethodPost, "/responses", body); status != http.StatusBadRequest || !strings.Contains(text, "conversation_locked") {
			t.Errorf("%d %s", status, text)
		}
	}
	close(answer)
	if status := <-first; status != http.StatusOK {
		t.Error(status)
	}
	b.create(body)
	if _, _, list := a.ask(http.MethodGet, "/conversations/"+id+"/items", ""); strings.Count(list, `"role":"user"`)+strings.Count(list, `"role": "user"`) != 2 {
		t.Error(list)
	}
}
