// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// scrubbed replaces a secret.
const scrubbed = "[scrubbed]"

// openHeaders are the headers whose values are recorded, and openPrefixes the
// prefixes of others: headers of HTTP and of the API that contain no secrets. Of all
// other headers only the names are recorded, because servers and gateways may use
// any of them for keys, and so is Idempotency-Key, which differs in each run. Names
// are canonical.
var openHeaders = []string{
	"Accept", "Accept-Language", "Age", "Allow", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Length", "Content-Type", "Date", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Location", "Retry-After", "Retry-After-Ms",
	"Server", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Vary", "Via", "Www-Authenticate",
	"Sec-Websocket-Version", "Sec-Websocket-Extensions",
	"Openai-Beta", "Openai-Model", "Openai-Processing-Ms", "Openai-Version", "X-Should-Retry",
	"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "X-Ms-Region", "Cf-Ray",
}

var openPrefixes = []string{"X-Ratelimit-", "Ratelimit-", "Anthropic-Ratelimit-", "X-Codex-Primary-", "X-Codex-Secondary-"}

func isOpen(name string) bool {
	return slices.Contains(openHeaders, name) || slices.ContainsFunc(openPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// noiseHeaders are omitted: headers that differ in each handshake, and those that
// the transport adds.
var noiseHeaders = []string{"Sec-Websocket-Key", "Sec-Websocket-Accept", "Accept-Encoding"}

// openParams are the query parameters whose values are recorded: the parameters of
// the API.
var openParams = []string{
	"api-version", "stream", "starting_after", "include", "include[]", "include_obfuscation", "after", "before", "limit", "order", "model",
}

// minSecret is the minimum length of secrets that are searched in text. A shorter
// one may be an ordinary word; it is only removed from headers.
const minSecret = 8

// scrubber removes secrets from recordings.
type scrubber struct {
	secrets []string
	forms   []string // forms that may occur in a text, the longest first
}

func newScrubber(keys []endpoint.Key) *scrubber {
	s := new(scrubber)
	for _, k := range keys {
		secret := k.Reveal()
		if secret == "" {
			continue
		}
		s.secrets = append(s.secrets, secret)
		if len(secret) < minSecret {
			continue
		}
		quoted := string(item.Quote(secret))
		s.forms = append(s.forms, secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1:len(quoted)-1],
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	slices.SortStableFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
	s.forms = slices.Compact(s.forms)
	return s
}

// text is a text without secrets.
func (s *scrubber) text(text string) string {
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, scrubbed)
	}
	return text
}

// header is a header without secrets.
func (s *scrubber) header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		switch {
		case slices.Contains(noiseHeaders, name):
			continue
		case !isOpen(name):
			clean[name] = []string{scrubbed}
			continue
		}
		for _, value := range values {
			if slices.ContainsFunc(s.secrets, func(secret string) bool { return strings.Contains(value, secret) }) {
				value = scrubbed
			}
			clean[name] = append(clean[name], s.text(value))
		}
	}
	return clean
}

// url returns a URL without userinfo and fragment, and with the values of the API's
// parameters only.
func (s *scrubber) url(u *url.URL) string {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	clean.RawQuery = s.query(u.RawQuery)
	return s.text(clean.String())
}

func (s *scrubber) query(raw string) string {
	if raw == "" {
		return ""
	}
	var parts []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err != nil || !slices.Contains(openParams, plain) {
			part = name + "=" + scrubbed
		}
		parts = append(parts, s.text(part))
	}
	return strings.Join(parts, "&")
}

// chunks returns the parts of a text without secrets, including secrets that cross
// parts. The replacement is in the part where the secret began.
func (s *scrubber) chunks(list [][]byte) [][]byte {
	whole := string(bytes.Join(list, nil))
	if s.text(whole) == whole {
		return list
	}
	clean := make([][]byte, len(list))
	part, end := 0, 0 // end is where the part ends
	if len(list) > 0 {
		end = len(list[0])
	}
	for at := 0; at < len(whole); {
		for at >= end && part < len(list)-1 {
			part++
			end += len(list[part])
		}
		if n := s.secretAt(whole[at:]); n > 0 {
			clean[part] = append(clean[part], scrubbed...)
			at += n
			continue
		}
		clean[part] = append(clean[part], whole[at])
		at++
	}
	return clean
}

// secretAt returns the length of the secret at the beginning of a text, or 0.
func (s *scrubber) secretAt(text string) int {
	for _, form := range s.forms {
		if strings.HasPrefix(text, form) {
			return len(form)
		}
	}
	return 0
}

// exchange takes the secrets out of a record.
func (s *scrubber) exchange(x *exchange) *exchange {
	clean := &exchange{
		method: x.method, url: x.url, header: s.header(x.header), body: []byte(s.text(string(x.body))),
		status: x.status, respHeader: s.header(x.respHeader), chunks: s.chunks(x.chunks), end: s.text(x.end),
	}
	clean.frames = s.frames(x.frames)
	if clean.respHeader.Get("Location") != "" {
		if u, err := url.Parse(x.respHeader.Get("Location")); err == nil {
			clean.respHeader.Set("Location", s.url(u))
		}
	}
	return clean
}

func (s *scrubber) frames(list []frame) []frame {
	clean := slices.Clone(list)
	for i := range clean {
		clean[i].data = []byte(s.text(string(clean[i].data)))
	}
	return clean
}

// inPieces reports whether a model's deltas together contain a secret, which cannot
// be replaced.
func (s *scrubber) inPieces(x *exchange) bool {
	var said strings.Builder
	hear := func(data string) {
		if ev, err := api.ParseEvent([]byte(data)); err == nil {
			said.WriteString(ev.Delta)
		}
	}
	for _, p := range eventsOf(string(bytes.Join(x.chunks, nil))) {
		hear(p.text)
	}
	for _, f := range x.frames {
		hear(string(f.data))
	}
	return s.text(said.String()) != said.String()
}
