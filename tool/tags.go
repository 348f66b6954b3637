// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads the tags of struct fields. Each keyword of JSON Schema has a tag of
// its own name, so that a tag reads like the schema, a description may contain any
// character, and nothing has to be escaped. What is not understood is an error: a
// setting that reaches the model as a description, or that is not read at all, would
// look like a check and be none.

// tagHint explains the notation for settings in an error.
const tagHint = "write the description alone into it, and settings as tags of their own, such as enum:\"a,b\" minimum:\"1\" pattern:\"^x\"; a field is optional by omitempty"

// foreignWords are settings that other packages keep in the jsonschema tag. As
// descriptions, they would reach the model and have no effect on the check.
var foreignWords = map[string]bool{"-": true, "required": true, "nullable": true, "readOnly": true, "writeOnly": true, "uniqueItems": true}

const descriptionHint = `write it as jsonschema:"…"`

// foreignTags are the tags with which other packages describe or check fields, with
// what to write here.
var foreignTags = map[string]string{
	"jsonschema_description": descriptionHint,
	"jsonschema_extras":      "write settings as tags of their own, such as enum:\"a,b\" minimum:\"1\" pattern:\"^x\"",
	"description":            descriptionHint,
	"desc":                   descriptionHint,
	"title":                  descriptionHint,
	"doc":                    descriptionHint,
	"min":                    `write minimum:"1" for a number, minLength:"1" for a text, minItems:"1" for a list`,
	"max":                    `write maximum:"1" for a number, maxLength:"1" for a text, maxItems:"1" for a list`,
	"minlen":                 `write minLength:"1"`,
	"maxlen":                 `write maxLength:"1"`,
	"enums":                  `write enum:"a,b"`,
	"oneof":                  `write enum:"a,b"`,
	"options":                `write enum:"a,b"`,
	"example":                `write examples:"…"`,
	"regexp":                 `write pattern:"…"`,
	"regex":                  `write pattern:"…"`,
	"required":               "a field is required unless its json tag has omitempty or omitzero",
	"nullable":               "a field that may be null is a pointer",
	"validate":               `write its rules as tags such as enum:"a,b" minimum:"1" maxLength:"40" format:"email"; a field is optional by omitempty`,
	"binding":                `write its rules as tags such as enum:"a,b" minimum:"1" maxLength:"40" format:"email"; a field is optional by omitempty`,
}

// setting is a JSON Schema keyword that the tag of the same name sets.
type setting struct {
	name  string
	kinds string // the kinds of fields that it applies to; "" for all except objects and lists
	value string // the kind of its value: "" for a value of the field, "list" for several, or "number", "count", "text"
}

var settings = [...]setting{
	{"enum", "", "list"},
	{"minimum", "integer number", "number"},
	{"maximum", "integer number", "number"},
	{"exclusiveMinimum", "integer number", "number"},
	{"exclusiveMaximum", "integer number", "number"},
	{"multipleOf", "integer number", "number"},
	{"minLength", "string", "count"},
	{"maxLength", "string", "count"},
	{"pattern", "string", "text"},
	{"format", "string", "text"},
	{"minItems", "array", "count"},
	{"maxItems", "array", "count"},
	{"default", "", ""},
	{"examples", "", "list"},
}

// describe takes the description from a field's tag, and refuses the tags of other
// packages.
func (d *derived) describe(f field) error {
	for _, key := range tagKeys(f.Tag) {
		hint := foreignTags[key]
		if hint == "" {
			hint = foreignTags[plainLetters(key)]
		}
		if hint != "" {
			return fmt.Errorf("its tag %s is not read here: %s", key, hint)
		}
		for _, k := range settings {
			if key != k.name && plainLetters(key) == plainLetters(k.name) {
				return fmt.Errorf("its tag %s is not read here: did you mean %s?", key, k.name)
			}
		}
	}
	tag, ok := f.Tag.Lookup("jsonschema")
	if !ok {
		return nil
	}
	if strings.TrimSpace(tag) == "" {
		return fmt.Errorf("its jsonschema tag is empty")
	}
	// Other packages keep settings in this tag. The model must not get them as a
	// description.
	if i := strings.IndexAny(tag, " \t\n="); i >= 0 && tag[i] == '=' {
		return fmt.Errorf("its jsonschema tag %q must be a description, not a setting: %s", tag, tagHint)
	}
	for word := range strings.SplitSeq(tag, ",") {
		if foreignWords[strings.TrimSpace(word)] {
			return fmt.Errorf("its jsonschema tag %q must be a description, and %q is a setting of another package: %s", tag, word, tagHint)
		}
	}
	d.description = tag
	return nil
}

// tagKeys returns the keys of a tag, as package reflect reads them.
func tagKeys(tag reflect.StructTag) (keys []string) {
	rest := strings.TrimLeft(string(tag), " ")
	for rest != "" {
		key, value, ok := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(value)
		if !ok || err != nil {
			break
		}
		keys = append(keys, key)
		rest = strings.TrimLeft(value[len(quoted):], " ")
	}
	return keys
}

// constrain reads the keywords in a field's tags. Arguments are checked against all
// of them except default and examples. A format that is not in [formats] is for the
// model only.
func (d *derived) constrain(zero *bool, f field) error {
	var list []clause
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
			hint := ""
			if d.kind == "array" {
				hint = "; for its elements, give their type a method JSONSchema"
			}
			return fmt.Errorf("its tag %s: it is not for a field of type %s%s", k.name, cmp.Or(d.kind, "any"), hint)
		}
		value, err := k.read(tag, d.kind)
		if err != nil {
			return fmt.Errorf("its tag %s:%q: %w", k.name, tag, err)
		}
		v, err := parseValue(value)
		if err != nil {
			return fmt.Errorf("its tag %s:%q: %w", k.name, tag, err)
		}
		if k.name == "format" && d.time && v != dateTime {
			return fmt.Errorf("its tag format:%q: the JSON of a time.Time is a date-time, so no value can meet it; for another format use a string", tag)
		}
		if problem := d.misfit(k, v); problem != "" {
			return fmt.Errorf("its tag %s:%q: %s", k.name, tag, problem)
		}
		if k.name == "enum" && d.null {
			value = strings.TrimSuffix(value, "]") + ",null]"
			v = append(v.([]any), nil) //nolint:forcetypeassert // a list is an array
		}
		list, checked[k.name] = append(list, clause{k.name, value}), v
	}
	if list == nil {
		return nil
	}
	d.settle(list)
	return d.hold(zero, f, checked)
}

// hold adds what the keywords of a field's tags ask for to the check.
func (d *derived) hold(zero *bool, f field, checked map[string]any) error {
	if err := contradiction(checked); err != nil {
		return err
	}
	values := map[string][]any{"examples": nil, "enum": nil}
	for name := range values {
		values[name], _ = checked[name].([]any)
	}
	def, given := checked["default"]
	delete(checked, "default")
	delete(checked, "examples")
	asked, err := ownForm(checked)
	if err != nil {
		return fmt.Errorf("its tags: %s", strings.Replace(err.Error(), errors.ErrUnsupported.Error()+": ", "", 1))
	}
	d.ask(zero, asked)
	d.form.entire = d.form.entire || asked.entire
	if least := checked["minItems"]; least != nil && compareNumbers(least, 0.0) > 0 && !d.takesNull { // null is a list without elements
		d.form.types = []string{d.kind}
	}
	if problem := d.form.explain(def); given && problem != "" {
		return fmt.Errorf("its tag default:%q: %s", f.Tag.Get("default"), problem)
	}
	for _, name := range []string{"enum", "examples"} {
		for _, v := range values[name] {
			if problem := d.form.explain(v); problem != "" && !(v == nil && d.null) {
				return fmt.Errorf("its tag %s:%q: %s", name, f.Tag.Get(name), problem)
			}
		}
	}
	return nil
}

// misfit returns the problem of a bound that a value of the field's type can never
// meet or never miss, or "".
func (d *derived) misfit(k setting, v any) string {
	if k.value != "number" {
		return ""
	}
	if k.name == "multipleOf" && compareNumbers(v, 0.0) <= 0 {
		return "want more than 0"
	}
	return d.form.explain(v)
}

// contradiction returns an error for bounds that no value can meet.
func contradiction(checked map[string]any) error {
	for _, pair := range []struct {
		low, high string
		equal     bool // both may be equal
	}{
		{"minimum", "maximum", true},
		{"minimum", "exclusiveMaximum", false},
		{"exclusiveMinimum", "maximum", false},
		{"exclusiveMinimum", "exclusiveMaximum", false},
		{"minLength", "maxLength", true},
		{"minItems", "maxItems", true},
	} {
		low, high := checked[pair.low], checked[pair.high]
		if low == nil || high == nil {
			continue
		}
		if c := compareNumbers(low, high); c > 0 || c == 0 && !pair.equal {
			return fmt.Errorf("its tags %s:%q and %s:%q: no value can meet both", pair.low, canonical(low), pair.high, canonical(high))
		}
	}
	return nil
}

// clause is a keyword of a schema, with its value as JSON.
type clause struct{ name, value string }

// settle adds keywords after the description. A keyword that the type has set
// already, such as the smallest int8, is replaced: [derived.misfit] has checked that
// it becomes narrower.
func (d *derived) settle(list []clause) {
	for _, k := range list {
		if i := slices.IndexFunc(d.tail, func(o clause) bool { return o.name == k.name }); i >= 0 {
			d.tail[i] = k
		} else {
			d.tail = append(d.tail, k)
		}
	}
}

// ask adds the restrictions of another form. They do not apply to null if the field
// accepts null, nor to the zero value: otherwise a field whose zero value they
// refuse could have no such tag.
func (d *derived) ask(zero *bool, other *form) {
	asked := assertion{
		ok:  func(v any) bool { return *zero || v == nil && d.takesNull || other.fits(v) },
		why: func(v any) string { return other.explain(v) },
	}
	if other.skims() && len(other.types) == 0 && other.properties == nil && other.items == nil && other.others == nil && len(other.required) == 0 {
		asked.length = func(n int) bool { return *zero || other.hasLength(n) }
		if other.readsNumbers() {
			asked.number = func(n float64) bool { return *zero || other.takesNumber(n) }
		}
	}
	d.form.assertions = append(d.form.assertions, asked)
}

// read returns the value of a tag as JSON.
func (k setting) read(tag, kind string) (string, error) {
	switch k.value {
	case "text":
		if tag == "" {
			return "", errors.New("it is empty")
		}
		if k.name == "format" && !slices.Contains(formatNames, tag) {
			return "", fmt.Errorf("there is no such format; JSON Schema has %s", strings.Join(formatNames, ", "))
		}
		return quote(tag), nil
	case "count":
		n, err := strconv.ParseUint(tag, 10, 31)
		if err != nil {
			return "", errors.New("want a whole number, 0 or more")
		}
		return strconv.FormatUint(n, 10), nil
	case "number":
		return valueOf(tag, "number")
	case "list":
		var list []string
		for one := range strings.SplitSeq(tag, ",") {
			v, err := valueOf(one, kind)
			switch {
			case err != nil:
				return "", err
			case strings.TrimSpace(one) == "":
				return "", errors.New("one of its values is empty")
			case kind == "string" && strings.TrimSpace(one) != one:
				return "", fmt.Errorf("the value %q has a space at its side; values are separated by a comma alone", one)
			case slices.Contains(list, v):
				return "", fmt.Errorf("it has the value %s twice", v)
			}
			list = append(list, v)
		}
		return "[" + strings.Join(list, ",") + "]", nil
	}
	return valueOf(tag, kind)
}

// valueOf returns a value of a kind as JSON.
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
