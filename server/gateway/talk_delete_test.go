// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// A conversation is not deleted while a response in it is made, also at another server over the same store. Its responses
// stay when it is deleted.
func TestDeleteConversationInUse(t *testing.T) {
	base, begun, gone := waits(t)
	in := opened(t)
	slow, quick := open(t, base, false), open(t, says(t, "Well.").URL, false)
	slow.Models, quick.Models = "slow", "quick"
	var servers []*world
	for range 2 {
		w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{slow, quick}}}
		keep := &gateway.Store{In: in}
		w.serve(&server.Server{Backend: w.b, Store: keep})
		defer func() {
			w.end()
			if err := keep.Close(); err != nil {
				t.Error(err)
			}
		}()
		servers = append(servers, w)
	}
	w := servers[0]
	talk, err := w.typed().CreateConversation(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first := w.create(`{"model":"quick","input":"a","conversation":"` + talk.ID + `"}`)
	made := w.create(`{"model":"slow","input":"b","background":true,"conversation":"` + talk.ID + `"}`)
	<-begun
	for _, one := range servers {
		if status, _, text := one.ask(http.MethodDelete, "/conversations/"+talk.ID, ""); status != http.StatusConflict || !strings.Contains(text, `"conversation_locked"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	if status, _, text := w.ask(http.MethodPost, "/responses/"+made.ID+"/cancel", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	<-gone
	for { // the conversation is free a moment after the answer
		status, _, text := servers[1].ask(http.MethodDelete, "/conversations/"+talk.ID, "")
		if status == http.StatusOK {
			break
		}
		if status != http.StatusConflict {
			t.Fatalf("%d %s", status, text)
		}
		time.Sleep(time.Millisecond)
	}
	if status, _, _ := w.ask(http.MethodGet, "/conversations/"+talk.ID, ""); status != http.StatusNotFound {
		t.Error(status)
	}
	next := w.create(`{"model":"quick","input":"c","previous_response_id":"` + first.ID + `"}`)
	if next.Text() != "Well." {
		t.Errorf("%q", next.Text())
	}
}
