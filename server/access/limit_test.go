// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
)

// refused sends a request that a limit must refuse, and returns when it frees.
func (w *guarded) refused(key, limit, want string) time.Duration {
	w.t.Helper()
	resp := w.open(key, "POST", "responses", hello)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	after, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), want) || err != nil || after <= 0 {
		w.t.Errorf("%s: %d %v %s %v", limit, resp.StatusCode, resp.Header, text, err)
	}
	if n := w.g.Counts().Limited[access.Limited{Limit: limit}]; n == 0 {
		w.t.Errorf("%s is not counted", limit)
	}
	return after
}

func TestRequestsAMinute(t *testing.T) {
	w := world(t, &access.Guard{}, echo, access.Key{Name: "a", Limits: access.Limits{Requests: 2}}, access.Key{Name: "b"})
	resp := w.open("a", "POST", "responses", hello)
	resp.Body.Close()
	if h := resp.Header; h.Get("x-ratelimit-limit-requests") != "2" || h.Get("x-ratelimit-remaining-requests") != "1" || h.Get("x-ratelimit-reset-requests") != "30s" {
		t.Error(h)
	}
	w.create("a", hello)
	if after := w.refused("a", "requests", "2 requests a minute. Please try again in 30s."); after != 30*time.Second {
		t.Error(after)
	}
	if status, _ := w.send("b", "POST", "responses", hello); status != 200 {
		t.Error("another key is refused")
	}
	w.clock.pass(30 * time.Second)
	w.create("a", hello)
	w.refused("a", "requests", "2 requests a minute")
}

// Tokens are reserved before it is known what a response uses, so requests at once cannot
// all use what is left, and what was used counts then.
func TestTokensAMinute(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	w := world(t, &access.Guard{}, func(_ context.Context, r *server.Request, w *server.Writer) error {
		begun <- struct{}{}
		<-end
		w.Usage(api.Usage{InputTokens: 60, OutputTokens: 20, TotalTokens: 80})
		return w.Text("x")
	}, access.Key{Name: "a", Limits: access.Limits{Tokens: 1000}})
	const large = `{"model":"m","input":"Hello","max_output_tokens":900}`
	done := make(chan string)
	go func() {
		_, text := w.send("a", "POST", "responses", large)
		done <- text
	}()
	<-begun
	if status, text := w.send("a", "POST", "responses", large); status != 429 || !strings.Contains(text, "1000 tokens a minute") {
		t.Error(status, text)
	}
	end <- struct{}{}
	if text := <-done; !strings.Contains(text, `"total_tokens":80`) {
		t.Error(text)
	}
	go func() {
		resp := w.open("a", "POST", "responses", large)
		resp.Body.Close()
		done <- resp.Header.Get("x-ratelimit-remaining-tokens")
	}()
	<-begun // only 80 counted
	end <- struct{}{}
	if left := <-done; left != "840" {
		t.Error(left)
	}
}

// A response that its client left counts with what was reported, or what it had to read,
// and frees its place.
func TestLimitsAfterCancel(t *testing.T) {
	begun := make(chan struct{})
	w := world(t, &access.Guard{}, func(ctx context.Context, r *server.Request, w *server.Writer) error {
		_ = w.Text("x")
		close(begun)
		<-ctx.Done()
		w.Usage(api.Usage{InputTokens: 60, OutputTokens: 20, TotalTokens: 80})
		w.Cost = 2
		return ctx.Err()
	}, access.Key{Name: "a", Limits: access.Limits{Running: 1, Cost: 2}})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.at+"/v1/responses", strings.NewReader(`{"model":"m","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.keys["a"])
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-begun
	w.refused("a", "running", "1 response at once")
	cancel()
	if u := <-w.uses; u.Key != "a" || u.Project != "p" || u.Status != "cancelled" || u.Tokens != 80 || u.Cost != 2 || u.OutputTokens != 20 {
		t.Errorf("%+v", u)
	}
	if after := w.refused("a", "cost", "insufficient_quota"); after != 24*time.Hour {
		t.Error(after)
	}
}

// The data of an image is not text: it takes little of a limit, and a response that ended early
// counts what was reported.
func TestTokensOfImages(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	w := world(t, &access.Guard{}, func(_ context.Context, r *server.Request, w *server.Writer) error {
		begun <- struct{}{}
		<-end
		w.Usage(api.Usage{InputTokens: 60, OutputTokens: 20, TotalTokens: 80})
		_ = w.Text("x")
		return w.Incomplete("max_output_tokens")
	}, access.Key{Name: "a", Limits: access.Limits{Tokens: 10_000}})
	picture := "data:image/png;base64,iVBORw0KGgo" + strings.Repeat("A", 1_000_001) // as long as the rest is a multiple of four
	body := `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"` + picture + `"}]}]}`
	done := make(chan string)
	for range 2 {
		go func() {
			resp := w.open("a", "POST", "responses", body)
			resp.Body.Close()
			done <- resp.Status + ", left " + resp.Header.Get("x-ratelimit-remaining-tokens")
		}()
		select {
		case <-begun: // both at once
		case refused := <-done:
			t.Fatal(refused)
		}
	}
	end <- struct{}{}
	<-done
	end <- struct{}{}
	if last := <-done; last != "200 OK, left 9840" {
		t.Error(last)
	}
}

func TestCostADay(t *testing.T) {
	w := world(t, &access.Guard{}, echo, access.Key{Name: "a", Limits: access.Limits{Cost: 1}})
	list, err := w.g.Keys.List()
	if err != nil {
		t.Fatal(err)
	}
	w.g.Spent(access.Use{At: w.clock.now(), KeyID: list[0].ID, Cost: 0.3})
	w.g.Spent(access.Use{At: w.clock.now().Add(-time.Hour), KeyID: list[0].ID, Cost: 100}) // yesterday
	w.create("a", hello)
	w.create("a", hello)
	w.refused("a", "cost", "0.8 of its 1 a day")
	w.clock.pass(24 * time.Hour)
	w.create("a", hello)
}

// A limit of cost that limits nothing, because the model has no price, is logged once for each key.
func TestCostWithoutPrice(t *testing.T) {
	free := func(_ context.Context, _ *server.Request, w *server.Writer) error {
		w.Usage(api.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15})
		return w.Text("x")
	}
	w := world(t, &access.Guard{}, free, access.Key{Name: "a", Limits: access.Limits{Cost: 1}}, access.Key{Name: "b", Limits: access.Limits{Tokens: 1000}})
	for range 2 {
		w.create("a", hello)
		w.create("b", hello)
		<-w.uses
		<-w.uses
	}
	if log := w.logged(); strings.Count(log, "has no price") != 1 || !strings.Contains(log, `"key":"a","model":"m"`) {
		t.Errorf("logged %s", log)
	}
	priced := world(t, &access.Guard{}, echo, access.Key{Name: "a", Limits: access.Limits{Cost: 1}})
	priced.create("a", hello)
	<-priced.uses
	if log := priced.logged(); strings.Contains(log, "has no price") {
		t.Errorf("logged %s", log)
	}
}

// What a response may cost is reserved before it is known, so requests at once cannot all use what is left.
func TestCostIsReserved(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	price := func(_ string, input, output int64) float64 { return float64(input)*0.0001 + float64(output)*0.002 }
	w := world(t, &access.Guard{Price: price}, func(_ context.Context, _ *server.Request, w *server.Writer) error {
		begun <- struct{}{}
		<-end
		w.Cost = 0.1
		return w.Text("x")
	}, access.Key{Name: "a", Limits: access.Limits{Cost: 1}})
	const large = `{"model":"m","input":"Hello","max_output_tokens":900}`
	done := make(chan int)
	ask := func(body string) {
		status, _ := w.send("a", "POST", "responses", body)
		done <- status
	}
	go ask(large)
	<-begun
	w.refused("a", "cost", "of its 1 a day")
	if status, text := w.send("a", "POST", "responses", large); status != 429 {
		t.Error(status, text)
	}
	end <- struct{}{}
	if status := <-done; status != 200 {
		t.Error(status)
	}
	go ask(hello) // only 0.1 counted
	<-begun
	end <- struct{}{}
	if status := <-done; status != 200 {
		t.Error(status)
	}
}

// The largest max_output_tokens of a request is reserved as others are: tokens do not become negative.
func TestMostTokensAreReserved(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	w := world(t, &access.Guard{}, func(_ context.Context, r *server.Request, w *server.Writer) error {
		if r.MaxOutputTokens != nil {
			begun <- struct{}{}
			<-end
		}
		return w.Text("x")
	}, access.Key{Name: "a", Limits: access.Limits{Tokens: 1000}})
	done := make(chan int)
	go func() {
		status, _ := w.send("a", "POST", "responses", `{"model":"m","input":"Hello","max_output_tokens":9223372036854775807}`)
		done <- status
	}()
	select {
	case status := <-done:
		t.Fatal(status)
	case <-begun:
	}
	w.refused("a", "tokens", "")
	end <- struct{}{}
	if status := <-done; status != 200 {
		t.Error(status)
	}
}

// A trial refuses nothing, and tells.
func TestTrial(t *testing.T) {
	w := world(t, &access.Guard{}, echo, access.Key{Name: "a", Limits: access.Limits{Requests: 1, Tokens: 1, Cost: 0.1, Trial: true}})
	for range 3 {
		w.create("a", hello)
	}
	limited := w.g.Counts().Limited
	for _, limit := range []string{"requests", "tokens", "cost"} {
		if limited[access.Limited{Limit: limit, Trial: true}] == 0 || limited[access.Limited{Limit: limit}] != 0 || !strings.Contains(w.logged(), `"limit":"`+limit+`"`) {
			t.Error(limit, limited, w.logged())
		}
	}
}

// What a limit of a trial would have refused does not count in it, as with a limit that refuses:
// after the same time, the same requests would be let in.
func TestTrialFrees(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for name, limits := range map[string]access.Limits{"requests": {Requests: 1}, "tokens": {Tokens: 100}, "running": {Running: 1}} {
		limits.Trial = true
		w := world(t, &access.Guard{}, func(_ context.Context, r *server.Request, w *server.Writer) error {
			if r.Background != nil {
				if err := w.Begin(""); err != nil {
					return err
				}
				<-end
			}
			w.Usage(api.Usage{InputTokens: 60, OutputTokens: 40, TotalTokens: 100})
			return w.Text("x")
		}, access.Key{Name: "a", Limits: limits})
		would := func() int64 { return w.g.Counts().Limited[access.Limited{Limit: name, Trial: true}] }
		if name == "running" {
			w.create("a", `{"model":"m","input":"Hello","background":true}`)
		} else {
			w.create("a", hello)
		}
		for range 5 {
			w.create("a", hello)
		}
		if n := would(); n != 5 {
			t.Errorf("%s: %d of 5 are told", name, n)
		}
		if name == "running" {
			continue
		}
		w.clock.pass(time.Minute)
		if w.create("a", hello); would() != 5 {
			t.Errorf("%s: after a minute a request is told, too", name)
		}
	}
}

// What was recorded can be read again, without a line that broke off.
func TestLedger(t *testing.T) {
	folder := t.TempDir() + "/usage"
	l := access.OpenLedger(folder)
	now := time.Date(2026, 5, 31, 23, 59, 0, 0, time.UTC)
	for i := range 4 {
		if err := l.Add(access.Use{At: now.Add(time.Duration(i) * time.Minute), Agent: "a", Tokens: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, folder+"/2026-06-01.jsonl", `{"at":"2026-06-01T`)
	for since, want := range map[time.Time]int64{{}: 6, now.Add(2 * time.Minute): 5, now.AddDate(0, 0, 3): 0} {
		sum := int64(0)
		for u, err := range l.All(since) {
			if err != nil {
				t.Fatal(err)
			}
			sum += u.Tokens
		}
		if sum != want {
			t.Errorf("since %v: %d, not %d", since, sum, want)
		}
	}
}
