// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
	"github.com/antiphon-go/antiphon/server/tokens"
)

// issuer is a small issuer on loopback, with the keys that it publishes.
type issuer struct {
	t *testing.T
	*httptest.Server

	mu    sync.Mutex
	now   time.Time
	down  bool
	keys  map[string]crypto.Signer
	asked int // for the keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, now: time.Now().Truncate(time.Second), keys: map[string]crypto.Signer{}}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.URL+"/keys")
	case "/keys":
		i.asked++
		var list []string
		for id, key := range i.keys {
			switch public := key.Public().(type) {
			case *rsa.PublicKey:
				list = append(list, fmt.Sprintf(`{"kty":"RSA","use":"sig","kid":%q,"n":%q,"e":%q}`, id, b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())))
			case *ecdsa.PublicKey:
				point, _ := public.Bytes()
				list = append(list, fmt.Sprintf(`{"kty":"EC","crv":"P-256","use":"sig","kid":%q,"x":%q,"y":%q}`, id, b64(point[1:33]), b64(point[33:])))
			}
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(list, ","))
	default:
		http.NotFound(w, r)
	}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) clock() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// rsaKey makes a key, which the issuer publishes if it has a name.
func (i *issuer) rsaKey(id string) *rsa.PrivateKey {
	i.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	if id != "" {
		i.set(func() { i.keys[id] = key })
	}
	return key
}

// claims are those of a good token, with changes; nil removes one.
func (i *issuer) claims(changes map[string]any) map[string]any {
	now := i.clock()
	c := map[string]any{"iss": i.URL, "sub": "anna", "aud": "antiphon", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "tenant": "shop", "scope": "openid antiphon:models antiphon:read"}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// sign makes a token.
func sign(t *testing.T, alg, kid string, claims map[string]any, by func(signed []byte) ([]byte, error)) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := b64(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT","kid":%q}`, alg, kid)) + "." + b64(body)
	sig, err := by([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(sig)
}

func rs256(key *rsa.PrivateKey) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	}
}

func es256(key *ecdsa.PrivateKey) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			return nil, err
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
	}
}

// world is a server that accepts keys, and tokens of an issuer.
type world struct {
	t      *testing.T
	at     string
	client *http.Client
	guard  *access.Guard
	uses   chan access.Use
}

func serve(t *testing.T, o *tokens.OIDC, keys *access.Keys) *world {
	t.Helper()
	w := &world{t: t, uses: make(chan access.Use, 100), client: &http.Client{Transport: new(http.Transport)}}
	w.guard = &access.Guard{
		Keys: keys, Tokens: o.Verify, Now: o.Now, Record: func(u access.Use) { w.uses <- u },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "measures") }),
		Server: func(project string) (*server.Server, error) {
			return &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("for " + project) })}, nil
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.guard.Serve(ctx, l, nil) }()
	w.at = "http://" + l.Addr().String()
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) ask(method, path, token string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.at+path, strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A token is accepted if the issuer signed it with a published key, for this server and this
// time. Nothing else is, also not beside keys. V6
func TestIssuedTokens(t *testing.T) {
	i := newIssuer(t)
	key := i.rsaKey("k1")
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.keys["k2"] = elliptical })
	other := i.rsaKey("")
	keys := access.OpenKeys(filepath.Join(t.TempDir(), "keys.json"))
	secret, _, err := keys.Create(t.Context(), access.Key{Name: "ci", Project: "shop", Scopes: access.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, &tokens.OIDC{Issuer: i.URL, Audience: "antiphon", Project: "tenant", Now: i.clock}, keys)
	published, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, "RS256", "k1", i.claims(nil), rs256(key))
	head, rest, _ := strings.Cut(good, ".")
	for name, test := range map[string]struct {
		token  string
		status int
		want   string
	}{
		"good":              {good, 200, "for shop"},
		"another project":   {sign(t, "RS256", "k1", i.claims(map[string]any{"tenant": "bank"}), rs256(key)), 200, "for bank"},
		"several audiences": {sign(t, "RS256", "k1", i.claims(map[string]any{"aud": []string{"x", "antiphon"}}), rs256(key)), 200, "for shop"},
		"ES256":             {sign(t, "ES256", "k2", i.claims(nil), es256(elliptical)), 200, "for shop"},
		"a key":             {secret, 200, "for shop"},
		"a key of nobody":   {"antiphon_" + strings.Repeat("a", 12) + "_" + strings.Repeat("b", 26), 401, "invalid_api_key"},
		"nothing":           {"", 401, "an API key or a token"},
		"no token":          {"x", 401, "not accepted"},
		"expired":           {sign(t, "RS256", "k1", i.claims(map[string]any{"exp": i.clock().Add(-time.Second).Unix()}), rs256(key)), 401, "expired"},
		"no expiry":         {sign(t, "RS256", "k1", i.claims(map[string]any{"exp": nil}), rs256(key)), 401, "expired"},
		"not yet":           {sign(t, "RS256", "k1", i.claims(map[string]any{"nbf": i.clock().Add(time.Hour).Unix()}), rs256(key)), 401, "not accepted"},
		"wrong audience":    {sign(t, "RS256", "k1", i.claims(map[string]any{"aud": "another"}), rs256(key)), 401, "audience"},
		"no audience":       {sign(t, "RS256", "k1", i.claims(map[string]any{"aud": nil}), rs256(key)), 401, "audience"},
		"wrong issuer":      {sign(t, "RS256", "k1", i.claims(map[string]any{"iss": "https://evil.example"}), rs256(key)), 401, "issuer"},
		"no subject":        {sign(t, "RS256", "k1", i.claims(map[string]any{"sub": nil}), rs256(key)), 401, "subject"},
		"no project":        {sign(t, "RS256", "k1", i.claims(map[string]any{"tenant": nil}), rs256(key)), 401, "'tenant'"},
		"a bad project":     {sign(t, "RS256", "k1", i.claims(map[string]any{"tenant": "../shop"}), rs256(key)), 401, "'tenant'"},
		"projects":          {sign(t, "RS256", "k1", i.claims(map[string]any{"tenant": []string{"shop"}}), rs256(key)), 401, "'tenant'"},
		"no scope":          {sign(t, "RS256", "k1", i.claims(map[string]any{"scope": "openid models read"}), rs256(key)), 403, "This token may not do that: it lacks the scope 'models'"},
		"another's key":     {sign(t, "RS256", "k1", i.claims(nil), rs256(other)), 401, "signature"},
		"changed":           {head + "." + strings.Replace(rest, "c", "d", 1), 401, "not accepted"},
		"none":              {sign(t, "none", "k1", i.claims(nil), func([]byte) ([]byte, error) { return nil, nil }), 401, "not accepted"},
		"no signature":      {good[:strings.LastIndexByte(good, '.')+1], 401, "not accepted"},
		// The public key as a shared secret.
		"HS256": {sign(t, "HS256", "k1", i.claims(nil), func(text []byte) ([]byte, error) {
			mac := hmac.New(sha256.New, published)
			mac.Write(text)
			return mac.Sum(nil), nil
		}), 401, "not accepted"},
		"the alg of another key": {sign(t, "ES256", "k1", i.claims(nil), es256(elliptical)), 401, "not accepted"},
	} {
		i.set(func() { i.now = i.now.Add(2 * time.Second) }) // the issuer may be asked again
		if status, text := w.ask("POST", "/v1/responses", test.token); status != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := w.ask("GET", "/metrics", good); status != 403 || !strings.Contains(text, "'admin'") {
		t.Errorf("%d %s", status, text)
	}
	for u := range w.uses {
		if u.Key == "anna" {
			if !strings.HasPrefix(u.KeyID, "oidc-") || u.Project != "shop" && u.Project != "bank" {
				t.Errorf("%+v", u)
			}
			break
		}
	}
}

// The keys of an issuer change: a token with a new one is accepted, and with one that is not
// published any more it is not, once that is known. Tokens cannot make the server ask the
// issuer all the time.
func TestRotation(t *testing.T) {
	i := newIssuer(t)
	first := i.rsaKey("k1")
	w := serve(t, &tokens.OIDC{Issuer: i.URL, Audience: "antiphon", Project: "tenant", Now: i.clock}, nil)
	ask := func(kid string, key *rsa.PrivateKey, want int) {
		t.Helper()
		if status, text := w.ask("POST", "/v1/responses", sign(t, "RS256", kid, i.claims(nil), rs256(key))); status != want {
			t.Errorf("%s: %d, not %d: %s", kid, status, want, text)
		}
	}
	i.set(func() { i.down = true })
	ask("k1", first, 503) // the server began before its issuer
	i.set(func() { i.down, i.now = false, i.now.Add(time.Second) })
	ask("k1", first, 200)
	second := i.rsaKey("k2")
	i.set(func() { delete(i.keys, "k1"); i.now = i.now.Add(time.Second) })
	ask("k1", first, 200) // nothing has told the server
	ask("k2", second, 200)
	// The library puts the answer to a question away a moment after it was used.
	settles := func(from, want int) {
		t.Helper()
		got := from
		for n := 0; n < 1000 && got == from; n++ {
			got, _ = w.ask("POST", "/v1/responses", sign(t, "RS256", "k1", i.claims(nil), rs256(first)))
		}
		if got != want {
			t.Errorf("k1: %d, not %d", got, want)
		}
	}
	settles(200, 503) // a moment after the last question
	i.set(func() { i.now = i.now.Add(time.Second) })
	settles(503, 401)
	i.set(func() { i.now = i.now.Add(time.Second); i.asked = 0 })
	stranger := i.rsaKey("")
	for n := range 20 {
		if status, _ := w.ask("POST", "/v1/responses", sign(t, "RS256", fmt.Sprint(n), i.claims(nil), rs256(stranger))); status != 401 && status != 503 {
			t.Error(status)
		}
	}
	i.set(func() {
		if i.asked != 1 {
			t.Errorf("the issuer was asked %d times", i.asked)
		}
	})
	ask("k2", second, 200)
	i.set(func() { i.down, i.now = true, i.now.Add(time.Second) })
	ask("k2", second, 200) // what is known is enough
	ask("k3", stranger, 503)
}

// The words of a claim give scopes, as the operator says. Tokens alone, without keys, are
// enough for an address that others reach.
func TestScopesOfTokens(t *testing.T) {
	i := newIssuer(t)
	key := i.rsaKey("k1")
	w := serve(t, &tokens.OIDC{Issuer: i.URL, Audience: "antiphon", Project: "tenant", Claim: "groups", Now: i.clock,
		Scopes: map[string][]access.Scope{"llm": {access.ScopeModels, access.ScopeRead}, "ops": {access.ScopeAdmin}}}, nil)
	for _, test := range []struct {
		groups         any
		models, admins int
	}{
		{[]string{"llm"}, 200, 403}, {[]string{"ops"}, 403, 200}, {[]any{"llm", "ops", 1}, 200, 200}, {"ops llm", 200, 200},
		{"llms", 403, 403}, {[]string{"antiphon:admin"}, 403, 403}, {nil, 403, 403}, {map[string]any{"llm": true}, 403, 403}, {[]string{"ops llm"}, 403, 403},
	} {
		token := sign(t, "RS256", "k1", i.claims(map[string]any{"groups": test.groups, "sub": "auth0|1"}), rs256(key))
		if status, text := w.ask("POST", "/v1/responses", token); status != test.models {
			t.Errorf("%v: %d %s", test.groups, status, text)
		}
		if status, text := w.ask("GET", "/metrics", token); status != test.admins {
			t.Errorf("%v: %d %s", test.groups, status, text)
		}
	}
	if u := <-w.uses; !strings.HasPrefix(u.Key, "oidc-") || u.Key != u.KeyID {
		t.Errorf("%+v", u)
	}
	if required, err := w.guard.Required(); err != nil || !required {
		t.Error(required, err)
	}
}

// An issuer that others could speak for is refused, and so is an unfinished configuration.
func TestCheck(t *testing.T) {
	good := func() *tokens.OIDC {
		return &tokens.OIDC{Issuer: "https://login.example/realm", Audience: "a", Project: "sub"}
	}
	for name, change := range map[string]func(*tokens.OIDC){
		"http":      func(o *tokens.OIDC) { o.Issuer = "http://login.example" },
		"no URL":    func(o *tokens.OIDC) { o.Issuer = "login.example" },
		"user":      func(o *tokens.OIDC) { o.Issuer = "https://a:b@login.example" },
		"query":     func(o *tokens.OIDC) { o.Issuer = "https://login.example?a" },
		"audience":  func(o *tokens.OIDC) { o.Audience = "" },
		"project":   func(o *tokens.OIDC) { o.Project = "" },
		"scope":     func(o *tokens.OIDC) { o.Scopes = map[string][]access.Scope{"a": {"everything"}} },
		"no word":   func(o *tokens.OIDC) { o.Scopes = map[string][]access.Scope{"": {access.ScopeRead}} },
		"two words": func(o *tokens.OIDC) { o.Scopes = map[string][]access.Scope{"a b": {access.ScopeRead}} },
	} {
		o := good()
		if change(o); o.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := good().Check(); err != nil {
		t.Error(err)
	}
}
