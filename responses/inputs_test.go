// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// lists are the methods that yield a list, page by page.
var lists = map[string]func(context.Context, *responses.Client, *responses.ListOptions) iter.Seq2[item.Item, error]{
	"inputs": func(ctx context.Context, c *responses.Client, o *responses.ListOptions) iter.Seq2[item.Item, error] {
		return c.InputItems(ctx, "resp_1", o)
	},
	"conversation": func(ctx context.Context, c *responses.Client, o *responses.ListOptions) iter.Seq2[item.Item, error] {
		return c.ConversationItems(ctx, "conv_1", o)
	},
}

func page(more bool, last string, ids ...string) string {
	var items []string
	for _, id := range ids {
		items = append(items, `{"type":"message","id":`+strconv.Quote(id)+`,"role":"user","content":[]}`)
	}
	return fmt.Sprintf(`{"object":"list","data":[%s],"first_id":"x","last_id":%q,"has_more":%v}`, strings.Join(items, ","), last, more)
}

func idsOf(seq iter.Seq2[item.Item, error]) (ids []string, err error) {
	for it, e := range seq {
		if e != nil {
			return ids, e
		}
		ids = append(ids, it.ID())
	}
	return ids, nil
}

// Pages are fetched one after the other, and only as far as they are read.
func TestPages(t *testing.T) {
	for name, list := range lists {
		s := newStore(t, func(n int, _ asked) (int, string) {
			return 200, []string{page(true, "b", "a", "b"), page(true, "", "c"), page(false, "d", "d")}[n]
		})
		seq := list(t.Context(), s.Client, &responses.ListOptions{After: "0", Limit: 2, Order: responses.Ascending, Include: []string{"x", "y"}})
		if len(s.all()) != 0 {
			t.Errorf("%s: asked before it was ranged over", name)
		}
		ids, err := idsOf(seq)
		if err != nil || !slices.Equal(ids, []string{"a", "b", "c", "d"}) {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
		for i, after := range []string{"0", "b", "c"} {
			want := url.Values{"after": {after}, "limit": {"2"}, "order": {"asc"}, "include[]": {"x", "y"}}
			if diff := cmp.Diff(want, s.all()[i].query); diff != "" {
				t.Errorf("%s: query %d (-want +got):\n%s", name, i, diff)
			}
		}
		s = newStore(t, func(int, asked) (int, string) { return 200, page(true, "b", "a", "b") })
		for range list(t.Context(), s.Client, nil) {
			break
		}
		if got := s.all(); len(got) != 1 || len(got[0].query) != 0 {
			t.Errorf("%s: asked %v", name, got)
		}
	}
}

// A server that goes round in circles is found out, and what it has is told
// once.
func TestPagesThatRepeat(t *testing.T) {
	for name, tt := range map[string]struct {
		page  func(n int) string
		want  []string
		class endpoint.Class
	}{
		"the same page":        {func(int) string { return page(true, "b", "a", "b") }, []string{"a", "b"}, endpoint.Protocol},
		"ever new cursors":     {func(n int) string { return page(true, strconv.Itoa(n), "a", "b") }, []string{"a", "b"}, endpoint.Protocol},
		"the same cursor":      {func(n int) string { return page(true, "c", strconv.Itoa(n)) }, []string{"0", "1"}, endpoint.Protocol},
		"two pages in turn":    {func(n int) string { return page(true, strconv.Itoa(n%2), strconv.Itoa(n%2)) }, []string{"0", "1"}, endpoint.Protocol},
		"no items, but more":   {func(int) string { return page(true, "x") }, nil, endpoint.Protocol},
		"no cursor, but more":  {func(int) string { return page(true, "", "") }, []string{""}, endpoint.Protocol},
		"pages that overlap":   {func(n int) string { return page(n < 2, strconv.Itoa(n), strconv.Itoa(n), strconv.Itoa(n+1)) }, []string{"0", "1", "2", "3"}, ""},
		"two of one id":        {func(n int) string { return page(false, "a", "a", "a") }, []string{"a", "a"}, ""},
		"a page that is empty": {func(int) string { return page(false, "") }, nil, ""},
	} {
		for _, list := range lists {
			s := newStore(t, func(n int, _ asked) (int, string) { return 200, tt.page(n) })
			ids, err := idsOf(list(t.Context(), s.Client, nil))
			if !slices.Equal(ids, tt.want) {
				t.Errorf("%s: %v, want %v", name, ids, tt.want)
			}
			if tt.class != "" {
				presentable(t, wantClass(t, err, tt.class))
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := len(s.all()); n > 3 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
	}
}

// A list without end is given up.
func TestPagesWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: reads thousands of pages")
	}
	s := newStore(t, func(n int, _ asked) (int, string) { return 200, page(true, strconv.Itoa(n), strconv.Itoa(n)) })
	ids, err := idsOf(s.InputItems(t.Context(), "resp_1", nil))
	wantClass(t, err, endpoint.TooLarge)
	if len(ids) != len(s.all()) {
		t.Errorf("%d items of %d pages", len(ids), len(s.all()))
	}
}

// Any list comes whole and in order, in pages of any size.
func TestPagesProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.IntRange(0, 30).Draw(rt, "items")
		var sizes []int
		s := newStore(t, func(n int, r asked) (int, string) {
			from := 0
			if after := r.query.Get("after"); after != "" {
				i, _ := strconv.Atoi(after)
				from = i + 1
			}
			to := min(from+sizes[n%len(sizes)], total)
			var ids []string
			for i := from; i < to; i++ {
				ids = append(ids, strconv.Itoa(i))
			}
			return 200, page(to < total, strconv.Itoa(to-1), ids...)
		})
		sizes = rapid.SliceOfN(rapid.IntRange(1, 7), 1, 5).Draw(rt, "sizes")
		ids, err := idsOf(s.InputItems(t.Context(), "resp_1", nil))
		if err != nil || len(ids) != total {
			rt.Fatalf("%v, %v", ids, err)
		}
		for i, id := range ids {
			if id != strconv.Itoa(i) {
				rt.Fatalf("%v", ids)
			}
		}
	})
}

// What is counted is what would be sent.
func TestCountTokens(t *testing.T) {
	s := answers(t, `{"object":"response.input_tokens","input_tokens":42}`)
	req := hello()
	req.Instructions, req.PreviousResponseID = "be kind", "resp_0"
	yes := true
	req.Stream, req.Store = &yes, &yes
	n, err := s.CountTokens(t.Context(), req)
	if err != nil || n != 42 {
		t.Fatal(n, err)
	}
	got := s.all()[0]
	if got.line != "POST /v1/responses/input_tokens" {
		t.Error(got.line)
	}
	apispec.Load(t).Check(t, "TokenCountsBody", []byte(got.body))
	want := `{"model":"m","instructions":"be kind","input":[` + item.User("hello").JSON() + `],"previous_response_id":"resp_0"}`
	if got.body != want {
		t.Errorf("sent %s\nwant %s", got.body, want)
	}
	s = answers(t, `{"object":"response.input_tokens"}`)
	_, err = s.CountTokens(t.Context(), req)
	wantClass(t, err, endpoint.Protocol)
}
