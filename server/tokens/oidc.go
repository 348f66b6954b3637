// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokens lets clients of package server/access use tokens of an issuer of OpenID
// Connect in place of keys.
package tokens

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
)

// OIDC verifies tokens of one issuer of OpenID Connect: JSON Web Tokens, signed with a
// public key that the issuer publishes. Its Verify is for [access.Guard].Tokens. Set the
// fields before the first use; then it is safe for concurrent use.
type OIDC struct {
	// Issuer is the URL of the issuer, as its tokens say it. It is https, or on loopback.
	Issuer string
	// Audience is whom the tokens must be for.
	Audience string
	// Project is the claim that names the project of a client. A token whose claim is not
	// the name of a project is refused.
	Project string
	// Claim is the claim with what a client may do: a list, or words in one text. "" means
	// "scope".
	Claim string
	// Scopes are the scopes that each word of the claim gives. Nil means that
	// "antiphon:models" gives the scope models, and so for all scopes.
	Scopes map[string][]access.Scope
	// Now is the clock. Nil means time.Now.
	Now func() time.Time

	mu     sync.Mutex
	remote *oidc.RemoteKeySet // nil until the issuer has answered
	client *http.Client
}

// algorithms are those by which tokens may be signed. All of them have public keys: with a
// shared secret, or without a signature, everybody could make tokens.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

const (
	// answerTime is how long the issuer may take for an answer.
	answerTime = 10 * time.Second
	// maxAnswer is how large it may be, in bytes.
	maxAnswer = 1 << 20
	// pause is the least time between two questions to the issuer: a token with an unknown
	// key leads to one, and strangers can send such tokens.
	pause = time.Second
)

// Check returns an error for fields that cannot be meant. It asks nobody.
func (o *OIDC) Check() error {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.200q is not the URL of an issuer, such as https://login.example", o.Issuer)
	case !encrypted(u):
		return fmt.Errorf("the issuer %.200q must be https: whoever changes its keys on the way can make tokens", o.Issuer)
	case o.Audience == "":
		return errors.New("the audience of the tokens is missing: without it, tokens for every other service would be accepted")
	case o.Project == "":
		return errors.New("the claim that names a client's project is missing")
	}
	for _, word := range slices.Sorted(maps.Keys(o.Scopes)) {
		for _, s := range o.Scopes[word] {
			if word == "" || strings.Contains(word, " ") || !slices.Contains(access.Scopes, s) {
				return fmt.Errorf("%.80q cannot give the scope %.40q: there are %v", word, s, access.Scopes)
			}
		}
	}
	return nil
}

// encrypted reports whether nobody on the way can change what comes from an address.
func encrypted(u *url.URL) bool {
	name := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (name == "localhost" || net.ParseIP(name).IsLoopback())
}

// Verify returns what the client with a token may do. Its errors are for the client.
func (o *OIDC) Verify(ctx context.Context, token string) (access.Key, error) {
	keys, err := o.keys(ctx)
	if err != nil {
		return access.Key{}, unavailable(err)
	}
	var down error
	v := oidc.NewVerifier(o.Issuer, keySet(func(ctx context.Context, token string) ([]byte, error) {
		payload, err := keys.VerifySignature(ctx, token)
		if err != nil && strings.HasPrefix(err.Error(), "fetching keys") { // the library has no type for it
			down = err
		}
		return payload, err
	}), &oidc.Config{ClientID: o.Audience, SupportedSigningAlgs: algorithms, Now: o.now})
	said, err := v.Verify(ctx, token)
	var expired *oidc.TokenExpiredError
	switch {
	case down != nil:
		return access.Key{}, unavailable(down)
	case errors.As(err, &expired):
		return access.Key{}, refused("it has expired")
	case err != nil:
		return access.Key{}, refused("its form, signature, issuer or audience is not what this server accepts")
	case said.Subject == "":
		return access.Key{}, refused("it has no subject")
	}
	var claims map[string]any
	if err := said.Claims(&claims); err != nil {
		return access.Key{}, refused("its claims cannot be read")
	}
	project, _ := claims[o.Project].(string)
	if !access.IsName(project) {
		return access.Key{}, refused(fmt.Sprintf("its claim '%s' is not the name of a project", o.Project))
	}
	sum := sha256.Sum256([]byte(o.Issuer + "\x00" + said.Subject))
	key := access.Key{ID: "oidc-" + hex.EncodeToString(sum[:10]), Name: said.Subject, Project: project, Scopes: o.scopes(claims), Expires: said.Expiry}
	if !access.IsName(key.Name) {
		key.Name = key.ID
	}
	return key, nil
}

// scopes returns the scopes that claims give.
func (o *OIDC) scopes(claims map[string]any) (list []access.Scope) {
	name := o.Claim
	if name == "" {
		name = "scope"
	}
	var words []string
	switch v := claims[name].(type) {
	case string:
		words = strings.Fields(v)
	case []any:
		for _, one := range v {
			if word, ok := one.(string); ok {
				words = append(words, word)
			}
		}
	}
	for _, s := range access.Scopes {
		if slices.ContainsFunc(words, func(word string) bool {
			if o.Scopes == nil {
				return word == "antiphon:"+string(s)
			}
			return slices.Contains(o.Scopes[word], s)
		}) {
			list = append(list, s)
		}
	}
	return list
}

func refused(why string) error {
	return &server.Error{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "The token is not accepted: " + why + "."}
}

// unavailable returns the error for the client, with the reason for the log.
func unavailable(why error) error {
	return fmt.Errorf("%w %w", &server.Error{Status: http.StatusServiceUnavailable, Code: "issuer_unavailable", Header: http.Header{"Retry-After": {"1"}},
		Message: "The server cannot get the keys of the issuer of tokens. Please try again soon."}, why)
}

func (o *OIDC) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

type keySet func(ctx context.Context, token string) ([]byte, error)

// VerifySignature implements [oidc.KeySet].
func (f keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	return f(ctx, token)
}

// keys returns the keys of the issuer. It asks where they are when it is first called, so
// that a server can begin before its issuer.
func (o *OIDC) keys(ctx context.Context) (*oidc.RemoteKeySet, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.remote != nil {
		return o.remote, nil
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.client == nil {
		o.client = &http.Client{
			Timeout: answerTime, Transport: &asking{of: o, last: map[string]time.Time{}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), o.client) // others may wait for the answer
	provider, err := oidc.NewProvider(ctx, o.Issuer)
	if err != nil {
		return nil, err
	}
	var said struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&said); err != nil {
		return nil, err
	}
	o.remote = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), o.client), said.Keys)
	return o.remote, nil
}

// asking is how the issuer is asked: rarely, and with a bound for its answers.
type asking struct {
	of *OIDC

	mu   sync.Mutex
	last map[string]time.Time // by URL
}

// RoundTrip implements [http.RoundTripper].
func (a *asking) RoundTrip(r *http.Request) (*http.Response, error) {
	if !encrypted(r.URL) {
		return nil, errors.New("it has its keys at an address that is not https")
	}
	now, at := a.of.now(), r.URL.String()
	a.mu.Lock()
	early := now.Sub(a.last[at]) < pause
	if !early {
		a.last[at] = now
	}
	a.mu.Unlock()
	if early {
		return nil, errors.New("it was asked less than a second ago")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = body{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

type body struct {
	io.Reader
	io.Closer
}
