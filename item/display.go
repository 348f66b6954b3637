// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

func (p *InputText) display() string     { return p.Text }
func (p *OutputText) display() string    { return p.Text }
func (p *Refusal) display() string       { return p.Refusal }
func (p *ReasoningText) display() string { return p.Text }
func (p *SummaryText) display() string   { return p.Text }

func (p *UnknownPart) display() string {
	return fmt.Sprintf("<part type=%q/>", p.PartType())
}

func (p *InputImage) display() string {
	src := source(p.ImageURL)
	if p.ImageURL == "" {
		src = p.FileID
	}
	if p.Detail == "" {
		return fmt.Sprintf("<image src=%q/>", src)
	}
	return fmt.Sprintf("<image src=%q detail=%q/>", src, p.Detail)
}

func (p *InputFile) display() string {
	src := p.FileID
	switch {
	case p.FileURL != "":
		src = source(p.FileURL)
	case p.FileData != "":
		src = source(p.FileData)
	}
	if p.Filename == "" {
		return fmt.Sprintf("<file src=%q/>", src)
	}
	return fmt.Sprintf("<file name=%q src=%q/>", p.Filename, src)
}

// source shows where data comes from: a URL as it is, data by its media type,
// size and hash.
func source(url string) string {
	if mediaType, payload, ok := CutDataURI(url); ok {
		return summary(mediaType, payload, true)
	}
	if rest, ok := cutScheme(url); ok {
		mediaType, payload, ok := strings.Cut(rest, ",")
		if !ok {
			mediaType, payload = "", rest
		}
		return summary(mediaType, payload, false)
	}
	if len(url) <= 2048 && strings.ContainsAny(url, ":.") { // neither is base64
		return url
	}
	return summary("base64", url, true) // without its scheme, as some clients send it
}

// summary names a payload by size and hash: of the bytes it stands for, where
// it is base64.
func summary(mediaType, payload string, encoded bool) string {
	if t, ok := readToken(payload, 0); ok && len(payload) == tokenLen && nextToken(payload, 0) == 0 {
		return describe(mediaType, t.size, t.hash[:])
	}
	h := sha256.New()
	var data io.Reader = strings.NewReader(payload)
	if encoded {
		data = base64.NewDecoder(base64.StdEncoding, data)
	}
	n, err := io.Copy(h, data)
	if err != nil { // not base64 after all
		h.Reset()
		n = int64(len(payload))
		_, _ = io.WriteString(h, payload)
	}
	return describe(mediaType, n, h.Sum(nil))
}

func describe(mediaType string, size int64, hash []byte) string {
	return fmt.Sprintf("%s, %d bytes, sha256:%x", cmp.Or(mediaType, "text/plain"), size, hash[:8])
}

// CutDataURI splits a base64 data URI into its media type and its base64 text.
// It reports false for anything else. See RFC 2397.
func CutDataURI(uri string) (mediaType, payload string, ok bool) {
	rest, ok := cutScheme(uri)
	if !ok {
		return "", "", false
	}
	head, payload, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	mediaType, ok = strings.CutSuffix(head, ";base64")
	return mediaType, payload, ok
}

// cutScheme cuts off data:, in any case of its letters.
func cutScheme(uri string) (rest string, ok bool) {
	const scheme = "data:"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return "", false
	}
	return uri[len(scheme):], true
}
