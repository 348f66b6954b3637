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

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
)

// Content is either one string or a list of parts, as messages and tool outputs have
// it. If Parts is nil, the content is Text, even if Text is empty. Otherwise it is
// Parts, which may be empty, and Text is ignored.
//
// Schemas: EasyInputMessage.content, InputMessageContentList,
// FunctionCallOutputItemParam.output.
type Content struct {
	Text  string
	Parts []Part
}

// Text returns content that is one string.
func Text(s string) Content { return Content{Text: s} }

// Parts returns content that is a list. Without arguments the list is empty.
func Parts(parts ...Part) Content {
	if parts == nil {
		parts = []Part{}
	}
	return Content{Parts: parts}
}

// IsText reports whether the content is one string rather than a list.
func (c Content) IsText() bool { return c.Parts == nil }

// JSON returns the content as it is sent: a JSON string or array.
func (c Content) JSON() (JSON, error) {
	b, err := appendContent(nil, c)
	return JSON(b), err
}

// MarshalJSON returns the content as it is sent.
func (c Content) MarshalJSON() ([]byte, error) { return appendContent(nil, c) }

// UnmarshalJSON reads a JSON string or array. A null gives the zero Content.
func (c *Content) UnmarshalJSON(data []byte) error {
	if c == nil {
		return errNil
	}
	text, err := checked(string(data))
	if err != nil {
		return err
	}
	read := Content{}
	if text != "null" {
		if read, err = parseContent(text); err != nil {
			return err
		}
	}
	*c = read
	return nil
}

// appendContent appends the content as a JSON string or array.
func appendContent(dst []byte, c Content) ([]byte, error) {
	if c.IsText() {
		return jsonx.AppendQuoted(dst, c.Text)
	}
	return appendParts(dst, c.Parts)
}

// parseContent reads content from validated text.
func parseContent(s string) (Content, error) {
	switch s[0] {
	case '"':
		return Text(jsonx.Unquote(s)), nil
	case '[':
		parts, err := parseParts(s)
		return Content{Parts: parts}, err
	}
	return Content{}, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want a string or a list of parts"}
}

// contentMember is a member of type Content, which is always written. Reading
// another kind of value is an error.
func contentMember(c *codec, name string, v *Content) {
	if !c.Decoding {
		if v.IsText() && v.Text == "" && c.Kept(name) {
			return
		}
		c.Name(name)
		out, err := appendContent(c.Out, *v)
		c.Took(name, out, err)
		return
	}
	m := c.Find(name)
	if m == nil {
		c.Missing(name)
		return
	}
	got, err := parseContent(m.Value)
	c.Fail(name, err)
	*v, m.Taken = got, true
}

// Branch says whether persisted content is a string or a list.
type Branch string

// The values of Branch.
const (
	BranchText    Branch = "text"
	BranchContent Branch = "content"
)

// Persist returns the content as text that [Restore] can read back: the string
// itself or the list as a JSON array, and which of the two it is. It fails if a part
// cannot be encoded.
func (c Content) Persist() (Branch, string, error) {
	if c.IsText() {
		b, err := wholeFrom(nil, jsonx.Bytes(c.Text), nil)
		return BranchText, jsonx.String(b), err
	}
	b, err := appendParts(nil, c.Parts)
	b, err = wholeFrom(nil, b, err)
	return BranchContent, jsonx.String(b), err
}

// Restore reads what [Content.Persist] wrote. With [BranchText], text that looks
// like a list is still a string.
func Restore(b Branch, s string) (Content, error) {
	switch b {
	case BranchText:
		return Text(s), nil
	case BranchContent:
		value, err := checked(s)
		if err != nil {
			return Content{}, err
		}
		if value[0] != '[' {
			return Content{}, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list of parts"}
		}
		parts, err := parseParts(value)
		return Content{Parts: parts}, err
	}
	return Content{}, fmt.Errorf("unknown branch %q: want %q or %q", b, BranchText, BranchContent)
}

// Display returns the content for people: the string, or the parts separated by
// newlines. Images and files appear as short markers without their data.
func (c Content) Display() string {
	if c.IsText() {
		return c.Text
	}
	lines := make([]string, len(c.Parts))
	for i, p := range c.Parts {
		if !nils.Is(p) {
			lines[i] = p.display()
		}
	}
	return strings.Join(lines, "\n")
}

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

// source describes where data comes from: a URL unchanged, or inline data by its
// media type, size and hash.
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
	if len(url) <= 2048 && strings.ContainsAny(url, ":.") { // base64 contains neither
		return url
	}
	return summary("base64", url, true) // base64 without the data: scheme, as some clients send it
}

// summary describes a payload by size and hash. For base64 they are those of the
// decoded bytes.
func summary(mediaType, payload string, encoded bool) string {
	// A payload that is held elsewhere is described without loading it.
	if t, ok := readToken(payload, 0); ok && len(payload) == tokenLen && nextToken(payload, 0) == 0 {
		return describe(mediaType, t.size, t.hash[:])
	}
	h := sha256.New()
	var data io.Reader = strings.NewReader(payload)
	if encoded {
		data = base64.NewDecoder(base64.StdEncoding, data)
	}
	n, err := io.Copy(h, data)
	if err != nil { // it is not base64 after all, so describe the text itself
		h.Reset()
		n = int64(len(payload))
		_, _ = io.WriteString(h, payload)
	}
	return describe(mediaType, n, h.Sum(nil))
}

// describe formats a summary. The beginning of the hash is enough to compare
// payloads by eye.
func describe(mediaType string, size int64, hash []byte) string {
	return fmt.Sprintf("%s, %d bytes, sha256:%x", cmp.Or(mediaType, "text/plain"), size, hash[:8])
}

// CutDataURI splits a base64 data URI into its media type and its base64 text. ok is
// false for anything else. See RFC 2397.
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

// cutScheme cuts off the scheme data:, which is not case-sensitive.
func cutScheme(uri string) (rest string, ok bool) {
	const scheme = "data:"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return "", false
	}
	return uri[len(scheme):], true
}
