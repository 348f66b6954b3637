// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"text/template"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
)

// functions returns the template functions.
func (f *facts) functions() template.FuncMap {
	return template.FuncMap{
		"output": func(which ...any) (string, error) {
			c, err := f.call(which)
			return c.output.Display(), err
		},
		"error":        f.errorOf,
		"failed":       f.failed,
		"image":        f.image,
		"user_image":   f.userImage,
		"user":         f.user,
		"question":     func() (string, error) { s, err := f.user(); return question(s), err },
		"instructions": func() string { return strings.Join(f.system, "\n\n") },
		"tools":        f.tools,
		"model":        func() string { return f.request.Model },
		"first_line":   func(s string) (string, error) { return lineOf(1, s) },
		"line":         lineOf,
		"line_with":    lineWith,
		"lines":        func(s string) int { return len(splitLines(s)) },
		"shorten":      shorten,
		"json":         asJSON,
	}
}

// call finds a call by the name of its tool and its number. Both are optional.
func (f *facts) call(which []any) (fact, error) {
	name, n := "", 1
	rest := which
	if len(rest) > 0 {
		if s, ok := rest[0].(string); ok {
			name, rest = s, rest[1:]
		}
	}
	if len(rest) > 0 {
		k, ok := rest[0].(int)
		if !ok || len(rest) > 1 {
			return fact{}, missing(`name a call by its tool and a number, such as "read_file" 1`)
		}
		n = k
	}
	var found []fact
	for _, c := range f.calls {
		if name == "" || c.name == name {
			found = append(found, c)
		}
	}
	i := n - 1
	if n < 0 {
		i = len(found) + n
	}
	if n == 0 || i < 0 || i >= len(found) {
		of := ""
		if name != "" {
			of = " of " + name
		}
		return fact{}, missing("no call %d%s with an output was received; the request has %d", n, of, len(found))
	}
	return found[i], nil
}

// errorOf returns the error of a call's output, which must be a failure.
func (f *facts) errorOf(which ...any) (string, error) {
	c, err := f.call(which)
	if err != nil {
		return "", err
	}
	text, failed := failure(c.output.Display())
	if !failed {
		return "", missing("the call of %s did not fail; its output is %q", c.name, shorten(80, c.output.Display()))
	}
	return text, nil
}

func (f *facts) failed(which ...any) (bool, error) {
	c, err := f.call(which)
	_, failed := failure(c.output.Display())
	return failed, err
}

// failure reads the error from an output in the form of failures: the status error,
// the tool's name, the error and the output, each under its heading. Lines of the
// error that look like a heading are indented in that form, so the first heading
// found is the real one.
func failure(output string) (text string, ok bool) {
	rest, ok := strings.CutPrefix(output, "status:\nerror\n\ntoolName:\n")
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "\n\nerror:\n")
	if !ok {
		return "", false
	}
	text, _, ok = strings.Cut(rest, "\n\noutput:\n")
	return text, ok
}

// Image describes an inline image of the request. It is the result of the template
// functions image and user_image.
type Image struct {
	// MediaType is the type that the data URI declares.
	MediaType string
	// Size is the number of bytes.
	Size int
	// SHA256 is the hash of the bytes in hexadecimal.
	SHA256 string
}

func (f *facts) image(which ...any) (Image, error) {
	c, err := f.call(which)
	if err != nil {
		return Image{}, err
	}
	for _, p := range c.output.Parts {
		if img, ok := p.(*item.InputImage); ok {
			return imageOf(img)
		}
	}
	return Image{}, missing("the output of %s holds no image; it is %q", c.name, shorten(80, c.output.Display()))
}

func (f *facts) userImage(n int) (Image, error) {
	i := n - 1
	if n < 0 {
		i = len(f.userImages) + n
	}
	if n == 0 || i < 0 || i >= len(f.userImages) {
		return Image{}, missing("no image %d was received in a user message; the request has %d", n, len(f.userImages))
	}
	return imageOf(f.userImages[i])
}

func imageOf(img *item.InputImage) (Image, error) {
	mediaType, data, err := decodeImage(img.ImageURL)
	if err != nil {
		return Image{}, missing("the image was not sent inline: %v", err)
	}
	sum := sha256.Sum256(data)
	return Image{MediaType: mediaType, Size: len(data), SHA256: hex.EncodeToString(sum[:])}, nil
}

// decodeImage returns the bytes of a data URI.
func decodeImage(uri string) (mediaType string, data []byte, err error) {
	mediaType, payload, ok := item.CutDataURI(uri)
	if !ok {
		return "", nil, missing("%q is not a base64 data URI", shorten(60, uri))
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	data, err = base64.StdEncoding.Strict().DecodeString(payload)
	return mediaType, data, err
}

func (f *facts) user() (string, error) {
	if f.lastUser == "" {
		return "", missing("no text was received from the user")
	}
	return f.lastUser, nil
}

func (f *facts) tools() []string {
	var names []string
	for _, t := range f.request.Tools {
		names = append(names, nameOf(t))
	}
	return names
}

// nameOf returns a tool's name; for hosted tools it is their type.
func nameOf(t item.Tool) string {
	switch t := t.(type) {
	case *item.FunctionTool:
		return t.Name
	case *item.CustomTool:
		return t.Name
	}
	return t.ToolType()
}

// splitLines returns the lines of a text. A newline at the end does not begin
// another line.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "\r")
	}
	return list
}

func lineOf(n int, s string) (string, error) {
	list := splitLines(s)
	if n < 1 || n > len(list) {
		return "", missing("the text has %d lines, not line %d", len(list), n)
	}
	return list[n-1], nil
}

func lineWith(part, s string) (string, error) {
	for _, line := range splitLines(s) {
		if strings.Contains(line, part) {
			return line, nil
		}
	}
	return "", missing("no line of the text holds %q", part)
}

func asJSON(v any) (string, error) {
	if s, ok := v.(string); ok {
		return string(item.Quote(s)), nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}
