// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Hide returns text with every secret that the call sends replaced: the key,
// headers that hold one, and what of the base URL is one. A server may repeat
// what it was sent.
func (k *Call) Hide(text string) string {
	text = k.key.Hide(text)
	for name, values := range k.link.Header {
		for _, value := range values {
			if endpoint.SecretName(name) || strings.EqualFold(name, k.profile.KeyHeader) {
				text = hideValue(text, value)
			}
		}
	}
	return HideURL(text, k.link.Base())
}

// HideURL returns text with what of a base URL is a secret replaced: parameters
// that hold one, and what stands before the host, as it is written and as the
// header Authorization says it.
func HideURL(text, base string) string {
	if !strings.ContainsAny(base, "@?") { // as nearly all
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
		text = hideValue(text, cmp.Or(password, u.User.Username())) // a name alone is a key
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

// hideValue hides a value, and what stands after the name of a scheme in it.
func hideValue(text, value string) string {
	if _, secret, ok := strings.Cut(value, " "); ok {
		text = endpoint.NewKey(secret).Hide(text)
	}
	return endpoint.NewKey(value).Hide(text)
}

// hideHeader takes secrets out of the header of an answer. It is done before
// anybody reads it: request ids are stored, and types of content are shown.
func (k *Call) hideHeader(h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = k.Hide(v)
		}
	}
}

// refused is the error that an answer is. Secrets go before any of it is cut.
func (k *Call) refused(resp *http.Response, body []byte) *endpoint.Error {
	return k.Fill(endpoint.FromResponse(resp, []byte(k.Hide(string(body)))), resp)
}

// Refused is the error that the answer is, of which this is the body.
func (x *Exchange) Refused(body []byte) *endpoint.Error { return x.call.refused(x.Response, body) }

// maxQuoted is how much of a text is looked at to quote its beginning.
const maxQuoted = 64 << 10

// Quote returns the beginning of what a server said, at most limit bytes, for
// people. Secrets are hidden first, for what a cut leaves of one would not be found.
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

// Clean returns an event without secrets in what it says of the response as a
// whole, such as its model, which is stored and shown. The output stays as it came.
func (x *Exchange) Clean(ev *item.Event) *item.Event {
	switch ev.Type {
	case item.EventCreated, item.EventQueued, item.EventInProgress, item.EventCompleted, item.EventIncomplete:
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
	own, err := item.ParseEventString(strings.Replace(ev.JSON(), string(raw), string(text), 1))
	if err != nil {
		return ev
	}
	return &own
}

// CleanResponse takes secrets out of what a response says of itself, and reports
// whether there were any. The output stays as it came.
func (x *Exchange) CleanResponse(r *item.Response) bool {
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
