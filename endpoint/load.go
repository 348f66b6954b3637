// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/typo"
)

// FileError reports why and where a file of profiles is not valid.
type FileError struct {
	File         string // the name that the caller gave
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

// LoadProfiles reads a file that adds profiles and models to the built-in ones, or changes them.
// The name is for error messages. The file is one JSON object:
//
//	{
//	  "profiles": [{"name": "mine", "like": "openai", "hosts": ["llm.example.com"], "omit": ["service_tier"]}],
//	  "models": [{"names": ["house-7b"], "sampling": "yes", "context_window": 32768}]
//	}
//
// The members are the fields of [Profile] and [Model] in lower case with underscores. A profile
// starts as a copy of the profile that "like" names, without its hosts and servers. Without "like"
// it starts as the built-in profile of the same name, which it replaces, or else as [Careful].
// "like": "specified" means the API as specified, the zero Profile. A model in the file replaces
// everything that is built in about the model.
//
// An unknown member is an error, and so is a secret, because files of profiles are shared. Errors
// are of type [*FileError].
func LoadProfiles(data []byte, name string) (*Table, error) {
	l := &loader{file: name, data: data}
	if err := l.secrets(); err != nil {
		return nil, err
	}
	if err := l.syntax(); err != nil {
		return nil, err
	}
	var file struct {
		Profiles []jsontext.Value `json:"profiles"`
		Models   []jsontext.Value `json:"models"`
	}
	if err := l.decode("", data, &file); err != nil {
		return nil, err
	}
	t := &Table{}
	for i, v := range file.Profiles {
		if err := l.profile(t, jsontext.Pointer("/profiles").AppendToken(strconv.Itoa(i)), v); err != nil {
			return nil, err
		}
	}
	for i, v := range file.Models {
		if err := l.model(t, jsontext.Pointer("/models").AppendToken(strconv.Itoa(i)), v); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// profileFile is a profile as written in a file. The values of set are JSON.
type profileFile struct {
	Like string `json:"like,omitzero"`
	Profile
	Set map[string]jsontext.Value `json:"set,omitzero"`
}

// AppendJSON appends the profile to dst in the form that [LoadProfiles] reads.
func (p Profile) AppendJSON(dst []byte) []byte {
	file := profileFile{Like: "specified", Profile: p}
	for name, text := range p.Set {
		if file.Set == nil {
			file.Set = map[string]jsontext.Value{}
		}
		v := jsontext.Value(text)
		if !v.IsValid() {
			v, _ = jsontext.AppendQuote(nil, text)
		}
		file.Set[name] = v
	}
	return appendJSON(dst, file)
}

// AppendJSON appends the model to dst in the form that [LoadProfiles] reads.
func (m Model) AppendJSON(dst []byte) []byte { return appendJSON(dst, m) }

func appendJSON(dst []byte, v any) []byte {
	b, _ := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // cannot fail for such a value
	return append(dst, b...)
}

// loader reads one file strictly and reports errors with their position.
type loader struct {
	file string
	data []byte
}

// fail returns an error at an offset.
func (l *loader) fail(at int, hint, format string, args ...any) error {
	before := l.data[:min(at, len(l.data))]
	line := bytes.Count(before, []byte("\n"))
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return &FileError{File: l.file, Line: line + 1, Column: column + 1, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// syntax returns an error if the file is not exactly one JSON value.
func (l *loader) syntax() error {
	if len(bytes.TrimSpace(l.data)) == 0 {
		return l.fail(0, `write {"profiles": […]}`, "the file is empty")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(l.data))
	_, err := dec.ReadValue()
	var bad *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		errors.As(err, &bad)
		return l.fail(int(bad.ByteOffset), "", "duplicate member")
	case errors.As(err, &bad):
		return l.fail(int(bad.ByteOffset), "", "%s", oneLine(bad.Err.Error(), maxExcerpt))
	case err != nil:
		return l.fail(len(l.data), "", "unexpected end of file")
	}
	if rest := bytes.TrimLeft(l.data[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return l.fail(len(l.data)-len(rest), "", "unexpected data after the object")
	}
	return nil
}

// decode reads v, the value at a pointer in the file, into the struct that to points to. Null gives
// the zero value.
func (l *loader) decode(at jsontext.Pointer, v jsontext.Value, to any) error {
	err := json.Unmarshal(v, to, json.RejectUnknownMembers(true))
	var bad *json.SemanticError
	if !errors.As(err, &bad) {
		return err
	}
	at += bad.JSONPointer
	if !errors.Is(bad.Err, json.ErrUnknownName) {
		return l.wrong(at, bad.GoType.Kind())
	}
	name, _ := l.find(at)
	return l.fail(name, suggest(at.LastToken(), memberNames(bad.GoType)), "unknown member %q", oneLine(at.LastToken(), 80))
}

// memberNames returns the names of a struct's fields in a file.
func memberNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if embedded(f) {
			names = append(names, memberNames(f.Type)...)
		} else if name := memberName(f); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// embedded reports whether the field's own fields are members of the object around it.
func embedded(f reflect.StructField) bool { return f.Tag.Get("json") == ",embed" }

// find returns the offset of the value at a pointer and, if the value is a member, the offset of
// its name.
func (l *loader) find(at jsontext.Pointer) (name, value int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(l.data))
	for {
		before := int(dec.InputOffset())
		if _, err := dec.ReadToken(); err != nil {
			return 0, 0
		}
		if dec.StackPointer() != at {
			continue
		}
		rest := bytes.TrimLeft(l.data[before:], " \t\r\n,:")
		value = len(l.data) - len(rest)
		if kind, n := dec.StackIndex(dec.StackDepth()); kind != '{' || n%2 == 0 {
			return name, value
		}
		name = value // this token was the name; the value comes next
	}
}

func (l *loader) value(at jsontext.Pointer) int {
	_, value := l.find(at)
	return value
}

// wrong reports a value of the wrong kind for its field.
func (l *loader) wrong(at jsontext.Pointer, field reflect.Kind) error {
	start, what := l.value(at), "the file"
	want := map[reflect.Kind]string{
		reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "a list", reflect.String: "a text",
		reflect.Bool: "true or false", reflect.Int: "a whole number, 0 or more",
	}[field]
	if at != "" {
		name := at.LastToken()
		if l.data[l.value(at.Parent())] == '[' {
			name = at.Parent().LastToken()
			if field == reflect.String {
				want = "a list of texts"
			}
		}
		what = strconv.Quote(name)
	}
	v, _ := jsontext.NewDecoder(bytes.NewBuffer(l.data[start:])).ReadValue()
	return l.fail(start, "", "%s must be %s, not %s", what, want, oneLine(string(v), 40))
}

// take copies the fields that v has a member for from one struct to another of the same type, and
// returns the names of the members. It returns an error for a value that its field does not allow.
func (l *loader) take(at jsontext.Pointer, v jsontext.Value, from, to reflect.Value) (names []string, err error) {
	var there map[string]jsontext.Value
	if err := json.Unmarshal(v, &there); err != nil {
		return nil, err
	}
	for i := range from.NumField() {
		tags := from.Type().Field(i)
		name, value := memberName(tags), from.Field(i)
		if embedded(tags) {
			more, err := l.take(at, v, value, to.Field(i))
			if err != nil {
				return nil, err
			}
			names = append(names, more...)
			continue
		}
		if _, ok := there[name]; !ok {
			continue
		}
		at := at.AppendToken(name)
		few := strings.Fields(tags.Tag.Get("oneof"))
		switch {
		case value.Kind() == reflect.Int && value.Int() < 0:
			return nil, l.wrong(at, reflect.Int)
		case len(few) > 0 && value.String() != "" && !slices.Contains(few, value.String()):
			hint := `it may be "` + strings.Join(few, `", "`) + `"`
			return nil, l.fail(l.value(at), hint, "%q: unknown value %q", name, oneLine(value.String(), 80))
		}
		if one := nullIn(there[name]); one != "" && name != "set" {
			return nil, l.wrong(at.AppendToken(one), reflect.String)
		}
		to.Field(i).Set(value)
		names = append(names, name)
	}
	return names, nil
}

// nullIn returns the index or the name of a null in a list or an object, or "".
func nullIn(v jsontext.Value) string {
	var list []jsontext.Value
	var object map[string]jsontext.Value
	_, _ = json.Unmarshal(v, &list), json.Unmarshal(v, &object) // v is at most one of the two
	for i, one := range list {
		if one.Kind() == 'n' {
			return strconv.Itoa(i)
		}
	}
	for name, one := range object {
		if one.Kind() == 'n' {
			return name
		}
	}
	return ""
}

func (l *loader) profile(t *Table, at jsontext.Pointer, v jsontext.Value) error {
	var own profileFile
	if err := l.decode(at, v, &own); err != nil {
		return err
	}
	if own.Name == "" {
		return l.fail(l.value(at), `write {"name": "…"}`, "the profile has no name")
	}
	if t.own(own.Name) {
		return l.fail(l.value(at), "", "profile %q is defined twice", own.Name)
	}
	for name, value := range own.Set {
		if own.Profile.Set == nil {
			own.Profile.Set = map[string]string{}
		}
		own.Profile.Set[name] = string(value)
	}
	p, err := t.base(own.Name, own.Like)
	if err != nil {
		return l.fail(l.value(at+"/like"), "", "%s", err)
	}
	names, err := l.take(at, v, reflect.ValueOf(own.Profile), reflect.ValueOf(&p).Elem())
	if err != nil {
		return err
	}
	if err := l.check(t, at, names, p); err != nil {
		return err
	}
	t.profiles = append(t.profiles, p)
	return nil
}

// base returns the profile that a profile in a file starts from.
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

// check tests what the kind of a member's value does not show.
func (l *loader) check(t *Table, at jsontext.Pointer, names []string, p Profile) error {
	for _, name := range names {
		bad := func(hint, format string, args ...any) error {
			return l.fail(l.value(at.AppendToken(name)), hint, format, args...)
		}
		if problem, hint := p.flaw(name, t); problem != "" {
			return bad(hint, "%s", problem)
		}
		switch name {
		case "base_path", "responses_path", "chat_path":
			s := map[string]string{"base_path": p.BasePath, "responses_path": p.ResponsesPath, "chat_path": p.Chat.Path}[name]
			if s != "" && !strings.HasPrefix(s, "/") {
				return bad("begin it with /", "%q is not a path", s)
			}
		case "apis":
			for _, a := range p.APIs {
				if known := apis(); !slices.Contains(known, a) {
					return bad(`write "`+strings.Join(known, `" or "`)+`"`, "unknown API %q", a)
				}
			}
		case "header", "socket_header":
			for _, h := range []map[string]string{p.Header, p.SocketHeader} {
				for name, v := range h {
					if strings.ContainsAny(name+v, "\r\n\x00") || name == "" {
						return bad("", "%q is not a header", name)
					}
					if SecretName(name) {
						return bad("the key is sent in the header that key_header names", "%q: this file must not hold secrets", name)
					}
				}
			}
		}
	}
	return nil
}

func (l *loader) model(t *Table, at jsontext.Pointer, v jsontext.Value) error {
	var own, m Model
	if err := l.decode(at, v, &own); err != nil {
		return err
	}
	if _, err := l.take(at, v, reflect.ValueOf(own), reflect.ValueOf(&m).Elem()); err != nil {
		return err
	}
	if len(m.Names) == 0 || slices.Contains(m.Names, "") {
		return l.fail(l.value(at), `write {"names": ["…"]}`, "the model has no name")
	}
	t.models = append(t.models, m)
	return nil
}

// secrets returns an error if the file holds a secret, since people share such files. It ignores
// errors of syntax; the actual reading reports them.
func (l *loader) secrets() error {
	const hint = "set the key in the program's environment instead"
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
			return l.fail(at, hint, "%q: this file must not hold secrets", s)
		case !isName && looksSecret(s):
			return l.fail(at, hint, "this looks like a key, and this file must not hold secrets")
		}
	}
}

// looksSecret reports whether a value has the form of a key.
func looksSecret(s string) bool {
	for _, start := range []string{"sk-", "eyJ", "Bearer ", "xai-", "gsk_", "ghp_"} {
		if strings.HasPrefix(s, start) && len(s) >= 20 {
			return true
		}
	}
	return false
}

// isSecret reports whether people use this member's name for secrets.
func isSecret(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "-", "_") {
	case "key", "keys", "api_key", "apikey", "x_api_key", "openai_api_key", "token", "access_token", "auth_token", "refresh_token",
		"auth", "authorization", "proxy_authorization", "bearer", "secret", "client_secret", "password", "credential", "credentials", "cookie":
		return true
	}
	return false
}

// suggest returns the hint for an unknown name: the known name that was probably meant, or all
// known names.
func suggest(name string, known []string) string {
	best, far := "", 3
	for _, k := range known {
		if len(name) > 40 {
			break // a typing error in such a long name is unlikely, and the work grows with its length
		}
		if d := typo.Distance(strings.ToLower(name), k); d < far {
			best, far = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	known = slices.Sorted(slices.Values(known))
	return "known names: " + strings.Join(known, ", ")
}
