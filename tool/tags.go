// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// tagHint says how settings are written here.
const tagHint = "write the description alone into it, and settings as tags of their own, such as enum:\"a,b\" minimum:\"1\" pattern:\"^x\"; a field is optional by omitempty"

// foreignWords are settings of packages that have them in the jsonschema tag.
// Taken for descriptions they would be told to the model and bind nobody.
var foreignWords = map[string]bool{"-": true, "required": true, "nullable": true, "readOnly": true, "writeOnly": true, "uniqueItems": true}

// setting is a keyword of JSON Schema that a tag of the same name sets.
type setting struct {
	name  string
	kinds string // of the fields that it is for, "" for any but objects and lists
	value string // "" is a value of the field, "list" several, "number", "count" or "text" are those
}

var settings = [...]setting{
	{"enum", "", "list"},
	{"minimum", "integer number", "number"},
	{"maximum", "integer number", "number"},
	{"minLength", "string", "count"},
	{"maxLength", "string", "count"},
	{"pattern", "string", "text"},
	{"format", "string", "text"},
	{"default", "", ""},
	{"examples", "", "list"},
}

// constrain takes keywords from a field's tags: enum, minimum, maximum,
// minLength, maxLength, pattern, format, default and examples. Arguments are
// checked against them, but for a pattern or a format, which the model is told.
func (d *derived) constrain(zero *bool, f field) error {
	var text []string
	checked := map[string]any{}
	for _, k := range settings {
		tag, ok := f.Tag.Lookup(k.name)
		if !ok {
			continue
		}
		if d.whole != "" {
			return fmt.Errorf("its tag %s: the schema of its type is what JSONSchema returns", k.name)
		}
		if k.kinds == "" && (d.kind == "object" || d.kind == "array" || d.kind == "") || k.kinds != "" && !strings.Contains(" "+k.kinds+" ", " "+d.kind+" ") {
			return fmt.Errorf("its tag %s: it is not for a field of type %s", k.name, cmp.Or(d.kind, "any"))
		}
		value, err := k.read(tag, d.kind)
		if err != nil {
			return fmt.Errorf("its tag %s:%q: %w", k.name, tag, err)
		}
		if k.name == "enum" && d.null {
			value = strings.TrimSuffix(value, "]") + ",null]"
		}
		text = append(text, quote(k.name)+":"+value)
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return fmt.Errorf("its tag %s:%q: %w", k.name, tag, err)
		}
		checked[k.name] = v
	}
	if text == nil {
		return nil
	}
	if d.tail != "" {
		text = append([]string{d.tail}, text...)
	}
	d.tail = strings.Join(text, ",")
	def, given := checked["default"]
	delete(checked, "default")
	delete(checked, "examples")
	asked, err := formOf(checked, nil)
	if asked == nil {
		return fmt.Errorf("its tags: %w", err)
	}
	d.ask(zero, asked)
	if problem := d.form.explain(def); given && problem != "" {
		return fmt.Errorf("its tag default:%q: %s", f.Tag.Get("default"), problem)
	}
	return nil
}

// ask lets the form ask what another does, but not of null where the field takes
// that, and not of the zero value: no tag would be possible on a field whose
// zero value it refuses.
func (d *derived) ask(zero *bool, other *form) {
	d.form.assertions = append(d.form.assertions, assertion{
		ok:  func(v any) bool { return *zero || v == nil && d.takesNull || other.fits(v) },
		why: func(v any) string { return other.explain(v) },
	})
}

// read returns what a tag says, as JSON.
func (k setting) read(tag, kind string) (string, error) {
	switch k.value {
	case "text":
		return quote(tag), nil
	case "count":
		n, err := strconv.ParseUint(tag, 10, 31)
		return strconv.FormatUint(n, 10), err
	case "number":
		return valueOf(tag, "number")
	case "list":
		var list []string
		for one := range strings.SplitSeq(tag, ",") {
			v, err := valueOf(one, kind)
			if err != nil {
				return "", err
			}
			list = append(list, v)
		}
		return "[" + strings.Join(list, ",") + "]", nil
	}
	return valueOf(tag, kind)
}

// valueOf returns the JSON of a value of a kind.
func valueOf(text, kind string) (string, error) {
	if kind == "string" {
		return quote(text), nil
	}
	text = strings.TrimSpace(text)
	var fits bool
	switch v := jsontext.Value(text); {
	case !v.IsValid():
	case kind == "boolean":
		fits = v.Kind() == 't' || v.Kind() == 'f'
	case kind == "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		fits = err == nil
	case kind == "number":
		fits = v.Kind() == '0'
	}
	if !fits {
		return "", fmt.Errorf("%q is not a value of type %s", text, kind)
	}
	return text, nil
}

// SchemaOwner is implemented by a type that says itself what its JSON looks like:
// an object schema without references, for a value of which nothing else is
// known. It is asked of the zero value.
type SchemaOwner interface{ JSONSchema() item.JSON }

// ownSchema returns the schema of a type that has one, or nil.
func (r deriver) ownSchema(t reflect.Type) (*derived, error) {
	if t.Kind() == reflect.Interface {
		return nil, nil
	}
	owner, ok := reflect.New(t).Interface().(SchemaOwner)
	if !ok {
		if _, foreign := reflect.PointerTo(t).MethodByName("JSONSchema"); foreign {
			return nil, fmt.Errorf("type %v: its method JSONSchema is for another package; here it is func (%v) JSONSchema() item.JSON", t, t)
		}
		return nil, nil
	}
	value := jsontext.Value(owner.JSONSchema())
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("type %v: its JSONSchema: %w", t, err)
	}
	m, isObject := v.(map[string]any)
	if !isObject || len(m) == 0 {
		return nil, fmt.Errorf("type %v: its JSONSchema is not an object with keywords", t)
	}
	if strings.Contains(string(value), `"$ref"`) {
		return nil, fmt.Errorf("type %v: its JSONSchema has a $ref, which would point elsewhere where it stands", t)
	}
	own, err := formOf(v, nil)
	if own == nil {
		return nil, fmt.Errorf("type %v: its JSONSchema: %w", t, err)
	}
	if err := value.Compact(); err != nil {
		return nil, err
	}
	d := &derived{form: new(form), whole: string(value)}
	d.ask(r.zero, own)
	return d, nil
}
