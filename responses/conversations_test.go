// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

const wholeConversation = `{"id":"conv_1","object":"conversation","created_at":1,"metadata":{"topic":"tea"}}`

// The bodies of conversations fit the schema.
func TestConversationBodies(t *testing.T) {
	spec := apispec.Load(t)
	s := answers(t, wholeConversation)
	pairs, err := api.Metadata(map[string]string{"topic": "tea"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*api.CreateConversation{nil, {}, {Metadata: pairs, Items: item.NewList(item.User("hi"))}} {
		got, err := s.CreateConversation(t.Context(), v)
		if err != nil || got.ID != "conv_1" || got.Metadata != pairs {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	for _, r := range s.all() {
		spec.Check(t, "CreateConversationBody", []byte(r.body))
		if r.line != "POST /v1/conversations" {
			t.Error(r.line)
		}
	}
	if _, err := s.UpdateConversation(t.Context(), "conv_1", &api.UpdateConversation{Metadata: pairs}); err != nil {
		t.Fatal(err)
	}
	spec.Check(t, "UpdateConversationBody", []byte(s.all()[3].body))
}

// Items that are added are sent as they are and come back with their ids.
func TestAddConversationItems(t *testing.T) {
	stored := `{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"hi"}]}`
	for name, body := range map[string]string{
		"page": `{"object":"list","data":[` + stored + `],"first_id":"msg_1","last_id":"msg_1","has_more":false}`,
		"item": stored, // as one server was recorded
	} {
		s := answers(t, body)
		got, err := s.AddConversationItems(t.Context(), "conv_1", item.NewList(item.User("hi"), item.User("you")), api.IncludeInputImageURLs)
		if err != nil || len(got) != 1 || got[0].ID() != "msg_1" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		r := s.all()[0]
		want := `{"items":[` + item.User("hi").JSON() + `,` + item.User("you").JSON() + `]}`
		if r.body != want || !cmp.Equal(r.query["include[]"], []string{api.IncludeInputImageURLs}) {
			t.Errorf("%s: sent %s, %v", name, r.body, r.query)
		}
	}
}

func TestRetrieveConversationItem(t *testing.T) {
	body := `{"type":"message","id":"msg_1","role":"user","content":[]}`
	s := answers(t, body)
	it, err := s.RetrieveConversationItem(t.Context(), "conv_1", "msg_1", "a", "b")
	if err != nil || it.JSON() != body || !cmp.Equal(s.all()[0].query["include[]"], []string{"a", "b"}) {
		t.Errorf("%v, %v, %v", it, err, s.all())
	}
}
