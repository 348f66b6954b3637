// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// infer derives the schema of In. Two things come out of it: the text that the
// model is given, where a list is a list, and the form that arguments are
// checked against, which also takes null for a list and for a member that may
// be absent. Models do send that, and decoding it gives the same value.
func infer[In any]() (*schema, error) {
	t := reflect.TypeFor[In]()
	if k := t.Kind(); k != reflect.Struct && (k != reflect.Map || t.Key().Kind() != reflect.String) {
		return nil, fmt.Errorf("input type %v: want a struct or a map with string keys", t)
	}
	s, err := inferType(t)
	if err == nil {
		err = s.checkZero(*new(In))
	}
	if err != nil {
		return nil, fmt.Errorf("input type %v: %w", t, err)
	}
	return s, nil
}

func inferType(t reflect.Type) (*schema, error) {
	r := deriver{inside: map[reflect.Type]bool{}, zero: new(bool)}
	d, err := r.derive(t)
	if err != nil {
		return nil, err
	}
	// Some endpoints refuse an object schema without properties, so there is
	// always a list of them.
	text := d.text()
	if len(d.form.properties) == 0 {
		d.body = ""
		text = `{"properties":{},` + d.text()[1:]
	}
	return &schema{text: item.JSON(text), form: d.form, zero: r.zero}, nil
}

// checkZero finds out at registration whether the JSON of a type and its
// schema agree, which types with their own encoding need not do.
func (s *schema) checkZero(zero any) error {
	b, err := json.Marshal(zero, jsonOptions)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if s.zero != nil {
		*s.zero = true
		defer func() { *s.zero = false }()
	}
	if problem := s.form.explain(v); problem != "" {
		return fmt.Errorf("its JSON does not fit the schema inferred for it (%s): use the option Parameters, or Raw", problem)
	}
	return nil
}

// derived is the schema of a Go type: the form, and the parts of its text.
type derived struct {
	form        *form
	whole       string // the text, of a type that has its own
	kind        string // "" for anything
	takesNull   bool   // null is taken
	null        bool   // the model is told that it may be null
	body, tail  string // keywords before and after the description
	description string
}

func (d *derived) text() string {
	var list []string
	switch {
	case d.whole != "" && d.description != "":
		return strings.TrimSuffix(d.whole, "}") + `,"description":` + quote(d.description) + "}"
	case d.whole != "":
		return d.whole
	case d.kind != "" && d.null:
		list = append(list, `"type":["null","`+d.kind+`"]`)
	case d.kind != "":
		list = append(list, `"type":"`+d.kind+`"`)
	}
	if d.body != "" {
		list = append(list, d.body)
	}
	if d.description != "" {
		list = append(list, `"description":`+quote(d.description))
	}
	if d.tail != "" {
		list = append(list, d.tail)
	}
	if list == nil {
		return "true"
	}
	return "{" + strings.Join(list, ",") + "}"
}

// allowNull makes the form take null too.
func (f *form) allowNull() {
	if len(f.types) > 0 && !slices.Contains(f.types, "null") {
		f.types = append([]string{"null"}, f.types...)
	}
}

// deriver holds the named types that it is inside of.
type deriver struct {
	inside map[reflect.Type]bool
	zero   *bool // the zero value is looked at, which need not keep to what tags ask
}

// derive follows pointers: the schema of *T is that of T or null.
func (r deriver) derive(t reflect.Type) (*derived, error) {
	pointer := false
	for t.Kind() == reflect.Pointer {
		pointer, t = true, t.Elem()
	}
	if t.Name() != "" {
		if r.inside[t] {
			return nil, fmt.Errorf("type %v contains itself", t)
		}
		r.inside[t] = true
		defer delete(r.inside, t)
	}
	d, err := r.ownSchema(t)
	if err != nil {
		return nil, err
	}
	if d == nil {
		d = known(t)
	}
	if d == nil {
		if d, err = r.byKind(t); err != nil {
			return nil, err
		}
	}
	if d.kind != "" {
		d.form.types = []string{d.kind}
	}
	if pointer {
		d.form.allowNull()
		d.null, d.takesNull = d.kind != "array", true
	}
	if d.kind == "array" && t.Kind() == reflect.Slice {
		d.form.allowNull()
	}
	return d, nil
}

// known returns the schema of a type whose JSON is not what its kind suggests,
// or nil. The types are told by their names, so that a program links only those
// that it has.
func known(t reflect.Type) *derived {
	name := t.PkgPath() + "." + t.Name()
	switch name {
	case "time.Time", "log/slog.Level", "math/big.Int", "math/big.Rat", "math/big.Float":
		return &derived{form: new(form), kind: "string"}
	case "time.Duration":
		return &derived{form: new(form), kind: "string", description: "a duration such as 90s or 1h30m"}
	case "encoding/json.RawMessage", "github.com/go-json-experiment/json/jsontext.Value", "encoding/json/jsontext.Value":
		return &derived{form: new(form)}
	}
	switch t {
	case reflect.TypeFor[item.JSON]():
		return &derived{form: new(form)}
	case reflect.TypeFor[[]byte]():
		return &derived{form: new(form), kind: "string", tail: `"contentEncoding":"base64"`}
	}
	return nil
}

func (r deriver) byKind(t reflect.Type) (*derived, error) {
	d := &derived{form: new(form)}
	switch t.Kind() {
	case reflect.Bool:
		d.kind = "boolean"
	case reflect.String:
		d.kind = "string"
	case reflect.Float32, reflect.Float64:
		d.kind = "number"
	case reflect.Int, reflect.Int64:
		d.kind = "integer"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		d.kind = "integer"
		d.within(-1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		d.kind = "integer"
		d.within(0, 1<<t.Bits()-1)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		d.kind = "integer"
		d.within(0, math.MaxInt64)
	case reflect.Interface:
	case reflect.Slice, reflect.Array:
		return d, r.list(d, t)
	case reflect.Map:
		return d, r.dictionary(d, t)
	case reflect.Struct:
		return d, r.object(d, t)
	default:
		return nil, fmt.Errorf("type %v has no JSON", t)
	}
	return d, nil
}

// within bounds an integer; there is no upper bound beyond 32 bits.
func (d *derived) within(low, high int64) {
	d.tail = `"minimum":` + strconv.FormatInt(low, 10)
	d.form.assertions = append(d.form.assertions, minimum(float64(low)))
	if high < math.MaxInt64 {
		d.tail += `,"maximum":` + strconv.FormatInt(high, 10)
		d.form.assertions = append(d.form.assertions, maximum(float64(high)))
	}
}

func (r deriver) list(d *derived, t reflect.Type) error {
	e, err := r.derive(t.Elem())
	if err != nil {
		return fmt.Errorf("element: %w", err)
	}
	d.kind, d.body, d.form.items = "array", `"items":`+e.text(), e.form
	if t.Kind() == reflect.Array {
		n := strconv.Itoa(t.Len())
		d.tail = `"minItems":` + n + `,"maxItems":` + n
		d.form.assertions = append(d.form.assertions, elements.atLeast(t.Len()), elements.atMost(t.Len()))
	}
	return nil
}

func (r deriver) dictionary(d *derived, t reflect.Type) error {
	if k := t.Key(); k.Kind() != reflect.String && !k.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return fmt.Errorf("map key %v is not text", k)
	}
	e, err := r.derive(t.Elem())
	if err != nil {
		return fmt.Errorf("map value: %w", err)
	}
	d.kind, d.tail, d.form.others = "object", `"additionalProperties":`+e.text(), e.form
	return nil
}

// object takes the fields that encoding sees. Of two with one name, the outer
// one counts.
func (r deriver) object(d *derived, t reflect.Type) error {
	d.kind, d.form.others = "object", nothing
	d.form.properties = make(map[string]*form)
	fields, some := fieldsOf(t)
	var members, required []string
	for _, f := range fields {
		m, err := r.derive(f.Type)
		if err == nil {
			err = m.describe(f)
		}
		if err == nil {
			err = m.constrain(r.zero, f)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		if f.optional {
			m.form.allowNull()
			m.takesNull = true
		} else {
			required = append(required, quote(f.name))
			d.form.required = append(d.form.required, f.name)
		}
		d.form.properties[f.name] = m.form
		members = append(members, quote(f.name)+":"+m.text())
	}
	if some {
		d.body = `"properties":{` + strings.Join(members, ",") + "}"
	}
	if required != nil {
		d.tail = `"required":[` + strings.Join(required, ",") + "],"
	}
	d.tail += `"additionalProperties":false`
	return nil
}

// describe takes the description from a field's tag.
func (d *derived) describe(f field) error {
	for _, other := range []string{"jsonschema_description", "jsonschema_extras"} {
		if _, ok := f.Tag.Lookup(other); ok {
			return fmt.Errorf("its tag %s is not read here: %s", other, tagHint)
		}
	}
	tag, ok := f.Tag.Lookup("jsonschema")
	if !ok {
		return nil
	}
	if tag == "" {
		return fmt.Errorf("its jsonschema tag is empty")
	}
	// Other packages have settings there, which would be told to the model.
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

// field is a member of a struct's JSON.
type field struct {
	reflect.StructField
	name     string
	optional bool
}

// fieldsOf returns the members of a struct in order, and whether it has any
// field at all.
func fieldsOf(t reflect.Type) (fields []field, some bool) {
	var named []int // the index of an embedded struct that is a member itself
	for _, sf := range reflect.VisibleFields(t) {
		some = true
		if named != nil && len(sf.Index) > len(named) && slices.Equal(sf.Index[:len(named)], named) {
			continue
		}
		f, ok := fieldOf(sf)
		if !ok {
			continue
		}
		if sf.Anonymous {
			named = sf.Index
		}
		if i := slices.IndexFunc(fields, func(o field) bool { return o.name == f.name }); i < 0 {
			fields = append(fields, f)
		} else if len(sf.Index) <= len(fields[i].Index) {
			fields = append(slices.Delete(fields, i, i+1), f)
		}
	}
	return fields, some
}

// fieldOf reads a field's json tag. It reports false for a field that is not a
// member, or whose own fields are members in its place.
func fieldOf(sf reflect.StructField) (f field, ok bool) {
	tag := sf.Tag.Get("json")
	name, options, more := strings.Cut(tag, ",")
	if !sf.IsExported() || name == "-" && !more || sf.Anonymous && name == "" {
		return f, false
	}
	f = field{StructField: sf, name: name}
	if name == "" {
		f.name = sf.Name
	}
	for o := range strings.SplitSeq(options, ",") {
		f.optional = f.optional || o == "omitempty" || o == "omitzero"
	}
	return f, true
}

// quote writes a text as JSON.
func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	return string(b)
}
