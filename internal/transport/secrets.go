// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

// Hide returns text with every secret that the call sends replaced: the key, secret headers, the
// secret parts of the base URL, and the secrets of hosted tools. A server may repeat what it
// received.
func (k *Call) Hide(text string) string {
	text = k.key.Hide(text)
	for _, secret := range k.secrets {
		text = hideValue(text, secret)
	}
	for name, values := range k.config.Header {
		for _, value := range values {
			if endpoint.SecretName(name) || strings.EqualFold(name, k.profile.KeyHeader) {
				text = hideValue(text, value)
			}
		}
	}
	return HideURL(text, k.config.Base())
}

// ToolSecrets returns the secrets in the definitions of hosted tools: the authorization and the
// headers of MCP servers, and the secrets of domains.
func ToolSecrets(tools []item.Tool) (secrets []string) {
	for _, t := range tools {
		switch t.(type) {
		case nil, *item.FunctionTool, *item.CustomTool:
			continue // the usual case; their schemas may have members of any name
		}
		text, err := (&api.Request{Tools: []item.Tool{t}}).MarshalJSON()
		if err != nil {
			continue // sending the request reports the error
		}
		if list, ok := jsonx.MemberOf(string(text), "tools"); ok {
			secrets = appendSecrets(secrets, "", list)
		}
	}
	return secrets
}

// appendSecrets appends the secrets in a value of a tool's definition, which is the member name of
// its object, or is an element of that member. It walks the text, so that programs that send
// requests need not link encoding/json.
func appendSecrets(secrets []string, name, value string) []string {
	switch value[0] {
	case '"':
		if name == "authorization" {
			secrets = append(secrets, jsonx.Unquote(value))
		}
	case '{':
		jsonx.EachMember(value, func(literal, inner string) {
			switch member := jsonx.Unquote(literal); {
			case name == "headers", name == "domain_secrets" && member == "value":
				secrets = append(secrets, plain(inner))
			default:
				secrets = appendSecrets(secrets, member, inner)
			}
		})
	case '[':
		jsonx.EachElement(value, func(inner string) { secrets = appendSecrets(secrets, name, inner) })
	}
	return secrets
}

// plain returns the text of a string, and any other value as it is written.
func plain(value string) string {
	if value[0] == '"' {
		return jsonx.Unquote(value)
	}
	return value
}

// HideURL returns text with the secret parts of a base URL replaced: secret parameters, and the
// userinfo, both as written and as in the header Authorization.
func HideURL(text, base string) string {
	if !strings.ContainsAny(base, "@?") { // the usual case
		return text
	}
	u, err := url.Parse(base)
	if err != nil {
		return text
	}
	if u.User != nil {
		password, _ := u.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		text = hideValue(text, strings.TrimRight(basic, "="))
		text = hideValue(text, cmp.Or(password, u.User.Username())) // a user name without a password is a key
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if endpoint.SecretName(name) {
				text = hideValue(text, value)
			}
		}
	}
	return text
}

// userinfo is that of a URL in a text, such as net/http's error about the address of a proxy.
var userinfo = lazyregexp.New(`://[^\s/?#"]*@`)

func hideUserinfo(text string) string { return userinfo.ReplaceAllString(text, "://") }

// cleaned is an error without the secrets in its text. It has no Unwrap, since programs print
// what they unwrap.
type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string        { return c.text }
func (c *cleaned) Is(target error) bool { return errors.Is(c.err, target) }
func (c *cleaned) As(target any) bool   { return errors.As(c.err, target) }

// hideValue hides a value, and the part after a scheme such as Bearer.
func hideValue(text, value string) string {
	if _, secret, ok := strings.Cut(value, " "); ok {
		text = endpoint.NewKey(secret).Hide(text)
	}
	return endpoint.NewKey(value).Hide(text)
}

// hideHeader removes secrets from the header of an answer. Call it before the header is used:
// request ids are stored, and content types are shown.
func (k *Call) hideHeader(h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = k.Hide(v)
		}
	}
}

// refused returns the error for an answer. Secrets are removed before the body is truncated.
func (k *Call) refused(resp *http.Response, body []byte) *endpoint.Error {
	return k.Fill(endpoint.FromResponse(resp, []byte(k.Hide(string(body)))), resp)
}

// Refused returns the error for the exchange's answer, which has the given body.
func (x *Exchange) Refused(body []byte) *endpoint.Error { return x.call.refused(x.Response, body) }

// maxQuoted is how many bytes of a text are examined to quote its beginning.
const maxQuoted = 64 << 10

// Quote returns at most limit bytes of a server's text, for people. It hides secrets before
// truncating, because part of a secret would not be found.
func (x *Exchange) Quote(said []byte, limit int) string {
	text := x.Hide(string(said[:min(len(said), maxQuoted)]))
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// Clean returns an event without secrets in the response's own members, such as its model, which
// are stored and shown. The output does not change.
func (x *Exchange) Clean(ev *api.Event) *api.Event {
	switch ev.Type {
	case api.EventCreated, api.EventQueued, api.EventInProgress, api.EventCompleted, api.EventIncomplete:
	default:
		return ev
	}
	if x.Hide(ev.JSON()) == ev.JSON() {
		return ev
	}
	r, err := ev.Response()
	if err != nil || !x.CleanResponse(r) {
		return ev
	}
	text, err := r.MarshalJSON()
	if err != nil {
		return ev
	}
	raw, _ := ev.Member("response")
	own, err := api.ParseEventString(strings.Replace(ev.JSON(), string(raw), string(text), 1))
	if err != nil {
		return ev
	}
	return &own
}

// CleanResponse removes secrets from the response's own members, and reports whether there were
// any. The output does not change.
func (x *Exchange) CleanResponse(r *api.Response) bool {
	found := false
	hide := func(text string) string {
		clean := x.Hide(text)
		found = found || clean != text
		return clean
	}
	for _, text := range []*string{&r.ID, &r.Model, &r.PreviousResponseID, &r.PromptCacheKey, &r.SafetyIdentifier, &r.ServiceTier, &r.User, &r.Truncation} {
		*text = hide(*text)
	}
	for _, v := range []*item.JSON{&r.Metadata, &r.Instructions} {
		if clean := item.JSON(hide(string(*v))); clean.Valid() == nil {
			*v = clean
		}
	}
	r.Extra = slices.Clone(r.Extra)
	for i, m := range r.Extra {
		if clean := hide(string(m.Value)); clean != string(m.Value) {
			if r.Extra[i].Value = item.JSON(clean); r.Extra[i].Value.Valid() != nil {
				r.Extra[i].Value = item.Quote(clean)
			}
		}
	}
	return found
}
