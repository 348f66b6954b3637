// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// A10, B5: secrets of the base URL are hidden as they are written, and as the
// header says them that is made of them.
func TestSecretsOfTheBaseURL(t *testing.T) {
	const parameter = "parameter-0123456789"
	for name, user := range map[string]*url.Userinfo{
		"name and password": url.UserPassword("someone", secretKey+":/%"),
		"name alone":        url.User(secretKey),
	} {
		srv := agenttest.NewServer(t)
		said := ""
		srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
			said = strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
			return agenttest.Failure(http.StatusBadRequest, "x", fmt.Sprint(r.Header, user, parameter))
		})
		c := srv.Client()
		base, err := url.Parse(c.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		base.User, base.RawQuery = user, "api_key="+parameter
		c.BaseURL, c.Key = base.String(), endpoint.Key{}
		err = drain(t, c, hello()).err
		if err == nil || said == "" || strings.Contains(err.Error(), strings.TrimRight(said, "=")) || partOf(err.Error()) || strings.Contains(err.Error(), parameter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A10, B5: no error has a key or the password of a proxy, nor has any error that it wraps,
// wherever the server repeats the key.
func TestSecretsInWrappedErrors(t *testing.T) {
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = c.Write([]byte(answer))
			_ = c.Close()
		}
	}
	address := fmt.Sprintf("http://me:%s%%zz@127.0.0.1:1", secretKey)
	proxy := func(*http.Request) (*url.URL, error) { return url.Parse(address) }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		proxy  func(*http.Request) (*url.URL, error)
	}{
		"redirects":         {answer: raw("HTTP/1.1 307 x\r\nLocation: /" + secretKey + "\r\n\r\n")},
		"a wrong redirect":  {answer: raw("HTTP/1.1 307 x\r\nLocation: http://%zz" + secretKey + "\r\n\r\n")},
		"a wrong status":    {answer: raw("HTTP/1.1 " + secretKey + "\r\n\r\n")},
		"a wrong header":    {answer: raw("HTTP/1.1 200 OK\r\n" + secretKey + "\r\n\r\n")},
		"a proxy's address": {proxy: proxy},
	} {
		srv := httptest.NewServer(c.answer)
		client := &responses.Client{BaseURL: srv.URL, Key: endpoint.NewKey(secretKey), Retry: endpoint.Retry{Max: -1}}
		if c.proxy != nil {
			client.Key, client.HTTP = endpoint.Key{}, &http.Client{Transport: &http.Transport{Proxy: c.proxy}}
		}
		err := drain(t, client, hello()).err
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%v %#v", e, e); partOf(text) {
				t.Errorf("%s: %s", name, text)
			}
		}
		srv.Close()
	}
}

const secretKey = "sk-0123456789abcdefghij"

// partOf reports a part of the key that is long enough to be of use.
func partOf(text string) bool {
	for i := range len(secretKey) - 7 {
		if strings.Contains(text, secretKey[i:i+8]) {
			return true
		}
	}
	return false
}

// A10, B5: a key that a server repeats is hidden before its words are cut, wherever
// the cut falls, in both dialects.
func TestKeyIsHiddenBeforeTheCut(t *testing.T) {
	forms := map[string]func(pad string) agenttest.Reply{
		"plain body": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusBadRequest, "text/plain", pad+secretKey+" is bad")
		},
		"page title": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusBadGateway, "text/html", "<html><title>"+pad+secretKey+"</title></html>")
		},
		"message": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusBadRequest, "application/json", fmt.Sprintf(`{"error":{"message":%s,"code":%s}}`, item.Quote(pad+secretKey), item.Quote(pad+secretKey)))
		},
		"message that was escaped twice": func(pad string) agenttest.Reply {
			escaped := strings.ReplaceAll(secretKey, "s", `\u0073`)
			return agenttest.Raw(http.StatusBadRequest, "application/json", fmt.Sprintf(`{"error":{"message":%s}}`, item.Quote(pad+escaped)))
		},
		"type of the content": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusOK, "text/"+pad+secretKey, "hello")
		},
		"body that is not an answer": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusOK, "application/json", `{"output":"`+pad+secretKey)
		},
		"event that is none": func(pad string) agenttest.Reply {
			return agenttest.Raw(http.StatusOK, "text/event-stream", "event: ping\ndata: "+pad+secretKey+"\n\n")
		},
	}
	for name, answer := range forms {
		for _, n := range []int{0, 10, 37, 40, 45, 50, 58, 70, 75, 90, 150, 170, 180, 190, 195, 199, 250, 280, 285, 290, 295, 299, 980, 990, 999, 1200, 2390} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return answer(strings.Repeat("x", n)) })
			r := srv.Client()
			r.Key = endpoint.NewKey(secretKey)
			r.Retry.Max = -1
			c := &completions.Client{BaseURL: r.BaseURL, HTTP: r.HTTP, Key: r.Key, Retry: r.Retry}
			ctx := api.WithNotes(t.Context(), func(n api.Note) {
				if partOf(n.Text) {
					t.Errorf("%s: the note shows the key: %s", name, n.Text)
				}
			})
			for dialect, stream := range map[string]func() error{
				"responses": func() (err error) {
					for _, e := range r.Stream(ctx, hello()) {
						err = e
					}
					return err
				},
				"completions": func() (err error) {
					for _, e := range c.Stream(ctx, hello()) {
						err = e
					}
					return err
				},
			} {
				err := stream()
				if err == nil {
					t.Fatalf("%s, %s: no error", name, dialect)
				}
				if partOf(err.Error()) || strings.Contains(err.Error(), "u0073") {
					t.Errorf("%s behind %d bytes, %s: %v", name, n, dialect, err)
				}
			}
		}
	}
}

// A10: what is stored of an answer besides its items, such as the request's name
// and the model's, holds no key.
func TestKeyAsANameOfTheServer(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		body := `{"type":"response.created","response":{"id":"r","model":"` + secretKey + `","status":"in_progress","output":[]}}`
		last := `{"type":"response.completed","response":{"id":"r","model":"` + secretKey + `","service_tier":"\u0073` + secretKey[1:] + `","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"a\u0062","annotations":[]}]}],"x":{"y":"` + secretKey + `"}}}`
		return agenttest.Events(body, last).WithHeader("X-Request-Id", secretKey)
	})
	c := srv.Client()
	c.Key = endpoint.NewKey(secretKey)
	ctx, meta := endpoint.WithMeta(t.Context())
	var acc api.Accumulator
	for ev, err := range c.Stream(ctx, hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(ev.JSON(), secretKey) {
			t.Errorf("the event holds the key: %s", ev.JSON())
		}
		if _, err := acc.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	resp, whole := acc.Response()
	if !whole || resp.Model != "[redacted]" || resp.ServiceTier != "[redacted]" || len(resp.Output) != 1 || !strings.Contains(resp.Output[0].JSON(), `"a\u0062"`) {
		t.Errorf("%v, %+v", whole, resp)
	}
	if id := meta.Latest().RequestID; id != "[redacted]" {
		t.Errorf("the request's name is %q", id)
	}
}
