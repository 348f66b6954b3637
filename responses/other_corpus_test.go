// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// recordedReply is what tells how a recorded answer is to be read.
type recordedReply struct {
	ID          string           `json:"id"`
	Object      string           `json:"object"`
	Type        string           `json:"type"`
	Data        []map[string]any `json:"data"`
	Output      []map[string]any `json:"output"`
	HasMore     bool             `json:"has_more"`
	InputTokens int64            `json:"input_tokens"`
	Metadata    map[string]any   `json:"metadata"`
}

// readers read an answer by the method for what it is, and check what they got.
var readers = map[string]func(ctx context.Context, c *responses.Client, want recordedReply) error{
	"response.deleted": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		return c.Delete(ctx, want.ID)
	},
	"conversation.deleted": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		return c.DeleteConversation(ctx, want.ID)
	},
	"conversation.item.deleted": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		return c.DeleteConversationItem(ctx, "conv_1", want.ID)
	},
	"conversation": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		for _, ask := range []func() (*api.Conversation, error){
			func() (*api.Conversation, error) { return c.CreateConversation(ctx, nil) },
			func() (*api.Conversation, error) { return c.RetrieveConversation(ctx, want.ID) },
			func() (*api.Conversation, error) {
				return c.UpdateConversation(ctx, want.ID, &api.UpdateConversation{})
			},
		} {
			v, err := ask()
			if err != nil {
				return err
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(cmp.Or(v.Metadata, "{}")), &got); err != nil || v.ID != want.ID || !gocmp.Equal(got, want.Metadata) {
				return fmt.Errorf("got %+v, %v", v, err)
			}
		}
		return nil
	},
	"conversation.item": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		it, err := c.RetrieveConversationItem(ctx, "conv_1", want.ID)
		if err != nil || it.ID() != want.ID || string(it.Type()) != want.Type {
			return fmt.Errorf("got %v, %w", it, err)
		}
		added, err := c.AddConversationItems(ctx, "conv_1", item.NewList(item.User("hi")))
		if err != nil || len(added) != 1 || added[0] != it {
			return fmt.Errorf("got %v, %w", added, err)
		}
		return nil
	},
	"list": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		for _, seq := range []iter.Seq2[item.Item, error]{c.InputItems(ctx, "resp_1", nil), c.ConversationItems(ctx, "conv_1", nil)} {
			n := 0
			for it, err := range seq {
				if err != nil {
					if want.HasMore && n == len(want.Data) {
						break // the same page again
					}
					return err
				}
				if it.ID() != want.Data[n]["id"] || string(it.Type()) != want.Data[n]["type"] {
					return fmt.Errorf("item %d is %v", n, it)
				}
				n++
			}
			if n != len(want.Data) {
				return fmt.Errorf("%d items of %d", n, len(want.Data))
			}
		}
		return nil
	},
	"response.compaction": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		v, err := c.Compact(ctx, &api.CompactRequest{Model: "m", Input: hello().Input})
		if err != nil || v.ID != want.ID || len(v.Output) != len(want.Output) {
			return fmt.Errorf("got %+v, %w", v, err)
		}
		return nil
	},
	"response.input_tokens": func(ctx context.Context, c *responses.Client, want recordedReply) error {
		n, err := c.CountTokens(ctx, hello())
		if err != nil || n != want.InputTokens {
			return fmt.Errorf("got %d, %w", n, err)
		}
		return nil
	},
}

// Every recorded answer of the other paths is read by the method for it.
func TestCorpusOther(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(corpusDir(t), "responses_other", "responses", "*.json"))
	counts := map[string]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want recordedReply
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind := want.Object
		if kind == "" && want.Type != "" {
			kind = "conversation.item"
		}
		read := readers[kind]
		if read == nil {
			t.Errorf("%s: nothing reads a %q", filepath.Base(file), kind)
			continue
		}
		if err := read(t.Context(), answers(t, string(raw)).Client, want); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
		counts[kind]++
	}
	t.Logf("%d answers: %v", len(files), counts)
}

// Every recorded request of the other paths is sent again by the method for it,
// and what is sent says the same.
func TestCorpusOtherRequests(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(corpusDir(t), "responses_other", "requests", "*.json"))
	spec := apispec.Load(t)
	openai, err := endpoint.ByName("openai")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := answers(t, "{}") // how it is read is not asked here
		s.Profile = &openai   // which changes nothing
		schema := resend(t, s, filepath.Base(file), raw)
		counts[schema]++
		sent := []byte(s.all()[0].body)
		if diff := gocmp.Diff(plainJSON(t, raw), plainJSON(t, sent)); diff != "" {
			t.Errorf("%s: sent (-recorded +sent):\n%s", filepath.Base(file), diff)
		}
		if slices.Contains(spec.Names(), schema) {
			faults, err := spec.Faults(schema, raw)
			if err == nil && len(faults) == 0 {
				spec.Check(t, schema, sent)
			}
		}
	}
	t.Logf("%d requests: %v", len(files), counts)
}

// resend sends a recorded body by its method and returns its schema.
func resend(t *testing.T, s *store, name string, raw []byte) string {
	ctx := t.Context()
	fail := func(err error) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var members map[string]any
	_ = json.Unmarshal(raw, &members)
	switch {
	case strings.Contains(name, "compact") || strings.Contains(name, "braintrust"):
		v, err := api.ParseCompactRequest(raw)
		fail(err)
		_, _ = s.Compact(ctx, v)
		return "CompactResponseMethodPublicBody"
	case members["model"] != nil:
		v, err := api.ParseRequest(raw)
		fail(err)
		_, _ = s.CountTokens(ctx, v)
		return "TokenCountsBody"
	case strings.Contains(strings.ToLower(name), "items") && members["items"] != nil:
		v, err := api.ParseAddItems(raw)
		fail(err)
		_, _ = s.AddConversationItems(ctx, "conv_1", v.Items)
		return "AddItems"
	case members["items"] != nil || strings.Contains(name, "__00"):
		v, err := api.ParseCreateConversation(raw)
		fail(err)
		_, _ = s.CreateConversation(ctx, v)
		return "CreateConversationBody"
	default:
		v, err := api.ParseUpdateConversation(raw)
		fail(err)
		_, _ = s.UpdateConversation(ctx, "conv_1", v)
		return "UpdateConversationBody"
	}
}

func plainJSON(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(bytes.TrimSpace(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
