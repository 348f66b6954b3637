// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// FileError reports a file of profiles that cannot be used, and where.
type FileError struct {
	File         string // its name, as it was given
	Line, Column int    // from 1, in characters
	Message      string
	Hint         string // what to write instead; may be empty
}

func (e *FileError) Error() string {
	msg := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// LoadProfiles reads a file that adds profiles and models to the built-in ones,
// or changes them; the name is for error messages. It is one JSON object:
//
//	{
//	  "profiles": [{"name": "mine", "like": "openai", "hosts": ["llm.example.com"], "omit": ["service_tier"]}],
//	  "models": [{"names": ["house-7b"], "sampling": "yes", "context_window": 32768}]
//	}
//
// The members are the fields of [Profile] and [Model] in lower case with
// underscores. A profile begins as the one that "like" names, without its hosts
// and servers; without "like" as the built-in one of the same name, whose place
// it takes, or else as [Careful]. "like": "specified" is the API as specified,
// the zero Profile. What a file knows of a model takes the place of all that is
// built in about it.
//
// What is not known is an error, and so is a secret: files of profiles are
// shared. Errors are [*FileError].
func LoadProfiles(data []byte, name string) (*Table, error) {
	l := &loader{file: name, data: data}
	if err := l.secrets(); err != nil {
		return nil, err
	}
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	t := &Table{}
	for _, m := range root {
		list, err := l.array(m)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			switch m.name {
			case "profiles":
				err = l.profile(t, v)
			case "models":
				err = l.model(t, v)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// loader reads one file strictly and knows where it is.
type loader struct {
	file string
	data []byte
}

// place is a value in the file, and the member it is of.
type place struct {
	name  string
	at    int // where the member's name begins, or the value has none
	value jsontext.Value
	start int // where the value begins
}

// fail reports a problem at an offset.
func (l *loader) fail(at int, hint, format string, args ...any) error {
	before := l.data[:min(at, len(l.data))]
	line := bytes.Count(before, []byte("\n"))
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return &FileError{File: l.file, Line: line + 1, Column: column + 1, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// syntax is the problem that the JSON reader has with what begins at base.
func (l *loader) syntax(base int, err error) error {
	var bad *jsontext.SyntacticError
	if !errors.As(err, &bad) {
		return l.fail(base+len(l.data), "", "the file ends too early")
	}
	message := bad.Err.Error()
	if errors.Is(err, jsontext.ErrDuplicateName) {
		message = "the same member twice"
	}
	return l.fail(base+int(bad.ByteOffset), "", "%s", oneLine(message, maxExcerpt))
}

func (l *loader) root() ([]place, error) {
	if len(bytes.TrimSpace(l.data)) == 0 {
		return nil, l.fail(0, `write {"profiles": […]}`, "the file is empty")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(l.data))
	v, err := dec.ReadValue()
	if err != nil {
		return nil, l.syntax(0, err)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(l.data[end:], " \t\r\n"); len(rest) > 0 {
		return nil, l.fail(len(l.data)-len(rest), "", "something follows the object")
	}
	return l.object(place{value: v, start: end - len(v)}, []string{"profiles", "models"})
}

// object is the members of an object, each one of the known names.
func (l *loader) object(p place, known []string) ([]place, error) {
	var list []place
	err := l.each(p, '{', "an object", func(dec *jsontext.Decoder) error {
		name, err := dec.ReadValue()
		if err != nil {
			return l.syntax(p.start, err)
		}
		at := p.start + int(dec.InputOffset()) - len(name)
		m := place{name: unquote(name), at: at}
		if known != nil && !slices.Contains(known, m.name) {
			return l.fail(at, suggest(m.name, known), "unknown member %q", oneLine(m.name, 80))
		}
		v, err := dec.ReadValue()
		if err != nil {
			return l.syntax(p.start, err)
		}
		m.value, m.start = v.Clone(), p.start+int(dec.InputOffset())-len(v)
		list = append(list, m)
		return nil
	})
	return list, err
}

// array is the elements of an array; null has none.
func (l *loader) array(p place) ([]place, error) {
	var list []place
	if p.value.Kind() == 'n' {
		return nil, nil
	}
	err := l.each(p, '[', "a list", func(dec *jsontext.Decoder) error {
		v, err := dec.ReadValue()
		if err != nil {
			return l.syntax(p.start, err)
		}
		list = append(list, place{name: p.name, at: p.at, value: v.Clone(), start: p.start + int(dec.InputOffset()) - len(v)})
		return nil
	})
	return list, err
}

// each calls f for each thing inside an array or an object.
func (l *loader) each(p place, kind jsontext.Kind, want string, f func(*jsontext.Decoder) error) error {
	if p.value.Kind() != kind {
		return l.wrong(p, want)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(p.value))
	if _, err := dec.ReadToken(); err != nil {
		return l.syntax(p.start, err)
	}
	for dec.PeekKind() != kind+2 { // ']' is '[' + 2, and '}' is '{' + 2
		if err := f(dec); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) wrong(p place, want string) error {
	what := "the file"
	if p.name != "" {
		what = strconv.Quote(p.name)
	}
	return l.fail(p.start, "", "%s must be %s, not %s", what, want, oneLine(string(p.value), 40))
}

func (l *loader) profile(t *Table, p place) error {
	var own Profile
	list, err := l.object(p, append(names(own.members()), "like"))
	if err != nil {
		return err
	}
	name, like, likeAt := "", "", p.start
	for _, m := range list {
		switch m.name {
		case "name":
			err = l.read(m, &name)
		case "like":
			err, likeAt = l.read(m, &like), m.start
		}
		if err != nil {
			return err
		}
	}
	if name == "" {
		return l.fail(p.start, `write {"name": "…"}`, "a profile without a name")
	}
	if slices.ContainsFunc(t.profiles, func(p Profile) bool { return p.Name == name }) {
		return l.fail(p.start, "", "a second profile %q", name)
	}
	if own, err = t.base(name, like); err != nil {
		return l.fail(likeAt, "", "%s", err)
	}
	for _, m := range list {
		if m.name == "like" {
			continue
		}
		if err := l.read(m, find(own.members(), m.name)); err != nil {
			return err
		}
	}
	if err := l.check(t, list, own); err != nil {
		return err
	}
	t.profiles = append(t.profiles, own)
	return nil
}

// base is what a profile of a file begins as.
func (t *Table) base(name, like string) (Profile, error) {
	switch like {
	case "specified":
		return Profile{Name: name}, nil
	case "":
		if p, err := t.ByName(name); err == nil {
			return p.Clone(), nil
		}
		like = "careful"
	}
	p, err := t.ByName(like)
	p = p.Clone()
	p.Name, p.Hosts, p.Servers = name, nil, nil
	return p, err
}

// check looks at what the kind of a member's value cannot tell.
func (l *loader) check(t *Table, list []place, p Profile) error {
	for _, m := range list {
		if problem, hint := p.flaw(m.name, t); problem != "" {
			return l.fail(m.start, hint, "%s", problem)
		}
		bad := func(hint, format string, args ...any) error { return l.fail(m.start, hint, format, args...) }
		switch m.name {
		case "base_path", "responses_path", "chat_path":
			if s := unquote(m.value); s != "" && !strings.HasPrefix(s, "/") {
				return bad("begin it with /", "%q is not a path", s)
			}
		case "apis":
			for _, a := range p.APIs {
				if a != APIResponses && a != APIChat {
					return bad(`write "responses" or "chat"`, "no API %q", a)
				}
			}
		case "header", "socket_header":
			for _, h := range []map[string]string{p.Header, p.SocketHeader} {
				for name, v := range h {
					if strings.ContainsAny(name+v, "\r\n\x00") || name == "" {
						return bad("", "%q is not a header", name)
					}
					if SecretName(name) {
						return bad("the key goes where key_header says", "%q: no secret may stand in this file", name)
					}
				}
			}
		}
	}
	return nil
}

func (l *loader) model(t *Table, p place) error {
	var own Model
	list, err := l.object(p, names(own.members()))
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := l.read(m, find(own.members(), m.name)); err != nil {
			return err
		}
	}
	if len(own.Names) == 0 || slices.Contains(own.Names, "") {
		return l.fail(p.start, `write {"names": ["…"]}`, "a model without a name")
	}
	t.models = append(t.models, own)
	return nil
}

// read puts a value into the field that to points at. Null is the zero value.
func (l *loader) read(m place, to any) error {
	kind := m.value.Kind()
	switch to := to.(type) {
	case *string:
		if *to = ""; kind == '"' {
			*to = unquote(m.value)
		} else if kind != 'n' {
			return l.wrong(m, "a text")
		}
	case *bool:
		if *to = kind == 't'; kind != 't' && kind != 'f' && kind != 'n' {
			return l.wrong(m, "true or false")
		}
	case *int:
		n, err := strconv.Atoi(string(m.value))
		if *to = n; (err != nil || n < 0) && kind != 'n' {
			return l.wrong(m, "a whole number, 0 or more")
		}
	case *[]string:
		return l.readList(m, to)
	case *map[string]string:
		return l.readMap(m, to, false)
	case rawMap:
		return l.readMap(m, to.to, true)
	case choice:
		if kind != '"' && kind != 'n' {
			return l.wrong(m, "a text")
		}
		if s := textOr(m.value); !to.set(s) {
			return l.fail(m.start, "it may be "+strings.Join(to.all(), ", "), "%q: no such value %q", m.name, oneLine(s, 80))
		}
	}
	return nil
}

func textOr(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	return unquote(v)
}

func (l *loader) readList(m place, to *[]string) error {
	list, err := l.array(m)
	if *to = nil; err != nil || m.value.Kind() == 'n' {
		return err
	}
	*to = []string{}
	for _, one := range list {
		if one.value.Kind() != '"' {
			return l.wrong(one, "a list of texts")
		}
		*to = append(*to, unquote(one.value))
	}
	return nil
}

// readMap reads an object of texts, or of any values, kept as their JSON.
func (l *loader) readMap(m place, to *map[string]string, raw bool) error {
	if *to = nil; m.value.Kind() == 'n' {
		return nil
	}
	list, err := l.object(m, nil)
	if err != nil {
		return err
	}
	*to = map[string]string{}
	for _, one := range list {
		switch {
		case raw:
			(*to)[one.name] = string(one.value)
		case one.value.Kind() != '"':
			return l.wrong(one, "a text")
		default:
			(*to)[one.name] = unquote(one.value)
		}
	}
	return nil
}

// secrets looks for what may not stand in a file that people share. It leaves
// problems of syntax to the reading proper.
func (l *loader) secrets() error {
	const hint = "give the key to the program itself, by the environment"
	dec := jsontext.NewDecoder(bytes.NewBuffer(l.data), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		if tok.Kind() != '"' {
			continue
		}
		s := tok.String()
		kind, length := dec.StackIndex(dec.StackDepth())
		isName := kind == '{' && length%2 == 1
		at := bytes.LastIndexByte(l.data[:dec.InputOffset()-1], '"')
		switch {
		case isName && isSecret(s):
			return l.fail(at, hint, "%q: no secret may stand in this file", s)
		case !isName && looksSecret(s):
			return l.fail(at, hint, "this looks like a key, and no secret may stand in this file")
		}
	}
}

// looksSecret reports a value in a form that keys have.
func looksSecret(s string) bool {
	for _, start := range []string{"sk-", "eyJ", "Bearer ", "xai-", "gsk_", "ghp_"} {
		if strings.HasPrefix(s, start) && len(s) >= 20 {
			return true
		}
	}
	return false
}

// isSecret reports a member's name that people give to secrets.
func isSecret(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "-", "_") {
	case "key", "keys", "api_key", "apikey", "x_api_key", "openai_api_key", "token", "access_token", "auth_token", "refresh_token",
		"auth", "authorization", "proxy_authorization", "bearer", "secret", "client_secret", "password", "credential", "credentials", "cookie":
		return true
	}
	return false
}

// suggest is the hint for an unknown name: the known one that it was meant to
// be, or all of them.
func suggest(name string, known []string) string {
	best, far := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < far {
			best, far = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	known = slices.Sorted(slices.Values(known))
	return "there are " + strings.Join(known, ", ")
}

// distance is how many characters must be put in, taken out or replaced.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
