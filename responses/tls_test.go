// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// httptestServer is a plain server that the end of the test closes.
func httptestServer(t *testing.T, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(serve)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(func() {
		srv.Client().CloseIdleConnections()
		srv.Close()
	})
	return srv
}

// B5: certificates are verified. One that is not good is a typed error, final,
// and no byte of the request, the key included, was sent.
func TestCertificates(t *testing.T) {
	srv := agenttest.NewTLSServer(t, agenttest.Completed(item.Assistant("hi")))
	if d := drain(t, srv.Client(), hello()); d.err != nil || d.text() != "hi" {
		t.Errorf("trusted: %q, %v", d.text(), d.err)
	}
	trusted := srv.HTTP().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, tt := range map[string]struct {
		config *tls.Config
		base   string
		says   string
	}{
		"unknown authority": {&tls.Config{}, srv.URL, "certificate signed by unknown authority"},
		"another name":      {&tls.Config{RootCAs: trusted, ServerName: "api.openai.com"}, srv.URL, "api.openai.com"},
		"expired":           {&tls.Config{RootCAs: trusted, Time: func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }}, srv.URL, "expired"},
		"no TLS there":      {&tls.Config{}, strings.Replace(agenttest.NewServer(t).URL, "http://", "https://", 1), "HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: tt.config}
			defer transport.CloseIdleConnections()
			c := &responses.Client{
				BaseURL: tt.base, HTTP: &http.Client{Transport: transport}, Key: endpoint.NewKey("sk-a-secret-key"),
				Retry: endpoint.Retry{Sleep: func(context.Context, time.Duration) error { return nil }},
			}
			tries := 0
			c.OnRetry = func(error, time.Duration, int) { tries++ }
			err := drain(t, c, hello()).err
			var e *endpoint.Error
			if !errors.As(err, &e) || e.SafeToRetry() || tries != 0 || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%d retries, %s", tries, describe(err))
			}
			var unknown x509.UnknownAuthorityError
			if name == "unknown authority" && !errors.As(err, &unknown) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// B5: over TLS too, a key goes to its host and to no other, nor in the clear.
func TestKeyStaysOnRedirect(t *testing.T) {
	const secret = "sk-a-secret-key"
	other := agenttest.NewServer(t)
	otherTLS := agenttest.NewTLSServer(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{
			other.URL + "/responses", otherTLS.URL + "/responses", "//" + strings.TrimPrefix(other.URL, "http://") + "/responses",
			strings.Replace(otherTLS.URL, "127.0.0.1", "localhost", 1) + "/responses",
		} {
			srv := agenttest.NewTLSServer(t, agenttest.Redirect(status, location), agenttest.Redirect(status, location))
			c := srv.Client()
			c.Key = endpoint.NewKey(secret)
			c.Header = http.Header{"Api-Key": {secret}, "X-Api-Key": {secret}}
			e := wantClass(t, drain(t, c, hello()).err, endpoint.Protocol)
			if _, err := c.Create(t.Context(), hello()); err == nil || strings.Contains(e.Error(), secret) {
				t.Errorf("%d %s: %v, %v", status, location, e, err)
			}
		}
	}
	// From https to http on the same host and port is another place too.
	srv := agenttest.NewTLSServer(t)
	srv.Add(agenttest.Redirect(307, strings.Replace(srv.URL, "https://", "http://", 1)+"/responses"))
	c := srv.Client()
	c.Key = endpoint.NewKey(secret)
	wantClass(t, drain(t, c, hello()).err, endpoint.Protocol)
	if n := len(other.Requests()) + len(otherTLS.Requests()); n != 0 {
		t.Errorf("%d requests reached another host", n)
	}
}

// B5: the proxy of the transport is used; it does not see what TLS hides, and
// one that fails is a typed error.
func TestProxy(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("hi")))
	var asked []string
	proxy := httptestServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Host+" "+r.Header.Get("Authorization"))
		if r.Method == http.MethodConnect {
			http.Error(w, "no tunnels", http.StatusForbidden)
			return
		}
		out := r.Clone(r.Context())
		out.RequestURI = ""
		resp, err := srv.HTTP().Do(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		_, _ = io.Copy(w, resp.Body)
	})
	via, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(via)}
	defer transport.CloseIdleConnections()
	c := srv.Client()
	c.HTTP, c.Key = &http.Client{Transport: transport}, endpoint.NewKey("sk-a-secret-key")
	if d := drain(t, c, hello()); d.err != nil || d.text() != "hi" {
		t.Errorf("%q, %v", d.text(), d.err)
	}
	c.BaseURL = "https://api.example.com/v1"
	if err := drain(t, c, hello()).err; err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Error(err)
	} else {
		var e *endpoint.Error
		if !errors.As(err, &e) {
			t.Error(err)
		}
	}
	for i, line := range asked {
		if i > 0 && strings.Contains(line, "sk-") || i == 0 && !strings.HasPrefix(line, "POST ") {
			t.Errorf("the proxy was asked %q", line)
		}
	}
}

// B5: the client of the zero value asks the environment for its proxy, as
// net/http does, and verifies certificates.
func TestDefaultTransport(t *testing.T) {
	srv := agenttest.NewTLSServer(t)
	c := &responses.Client{BaseURL: srv.URL, Retry: endpoint.Retry{Max: -1}}
	var unknown x509.UnknownAuthorityError
	if err := drain(t, c, hello()).err; !errors.As(err, &unknown) {
		t.Error(err)
	}
}
