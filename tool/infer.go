// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
	"github.com/go-json-experiment/json"
)

// infer derives the schema of In. It produces the text for the model, in which a
// list is an array, and the form for checking arguments, which also accepts null for
// a list and for an optional member. Models do send null there, and decoding it
// gives the same value.
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
	// Some endpoints refuse an object schema without properties, so it is always
	// present.
	text := d.text()
	if len(d.form.properties) == 0 {
		d.body = ""
		text = `{"properties":{},` + d.text()[1:]
	}
	return &schema{text: item.JSON(text), form: d.form, zero: r.zero}, nil
}

// checkZero checks at registration whether the JSON of a type matches its schema. It
// may not for types with their own encoding.
func (s *schema) checkZero(zero any) error {
	b, err := json.Marshal(zero, jsonOptions)
	if err != nil {
		return err
	}
	v, err := parseValue(string(b))
	if err != nil {
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

// derived is the schema of a Go type: the form and the parts of its text.
type derived struct {
	form        *form
	whole       string // the complete text, for a type with its own schema
	kind        string // "" for any type
	takesNull   bool   // null is accepted
	null        bool   // the text for the model allows null
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

// deriver holds the named types that enclose the current one.
type deriver struct {
	inside map[reflect.Type]bool
	zero   *bool // set when the zero value is checked, which need not satisfy the tags
}

// derive returns the schema of a type. The schema of *T is the schema of T, or null.
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

// known returns the schema of a type whose JSON differs from what its kind suggests,
// or nil. Types of packages that this one does not import are recognized by name.
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

// within bounds an integer. An upper bound beyond 32 bits is omitted.
func (d *derived) within(low, high int64) {
	d.tail = `"minimum":` + strconv.FormatInt(low, 10)
	d.form.assertions = append(d.form.assertions, minimum(wholeNumber(low)))
	if high < math.MaxInt64 {
		d.tail += `,"maximum":` + strconv.FormatInt(high, 10)
		d.form.assertions = append(d.form.assertions, maximum(wholeNumber(high)))
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

// object adds the struct fields that the JSON encoding uses. If two fields have the
// same name, the outer one counts.
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

// field is a member of a struct's JSON.
type field struct {
	reflect.StructField
	name     string
	optional bool
}

// fieldsOf returns the members of a struct in order, and whether it has any
// field at all.
func fieldsOf(t reflect.Type) (fields []field, some bool) {
	var named []int // the indexes of embedded structs that are members themselves
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

// fieldOf reads a field's json tag. It reports false if the field is not a member
// itself, or if the fields inside it are members instead.
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

// tagHint explains the notation for settings in an error.
const tagHint = "write the description alone into it, and settings as tags of their own, such as enum:\"a,b\" minimum:\"1\" pattern:\"^x\"; a field is optional by omitempty"

// foreignWords are settings that other packages keep in the jsonschema tag. As
// descriptions, they would reach the model and have no effect on the check.
var foreignWords = map[string]bool{"-": true, "required": true, "nullable": true, "readOnly": true, "writeOnly": true, "uniqueItems": true}

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
	{"minLength", "string", "count"},
	{"maxLength", "string", "count"},
	{"pattern", "string", "text"},
	{"format", "string", "text"},
	{"default", "", ""},
	{"examples", "", "list"},
}

// constrain reads keywords from a field's tags: enum, minimum, maximum, minLength,
// maxLength, pattern, format, default and examples. Arguments are checked against
// all of them except pattern and format, which only the model sees.
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
		v, err := parseValue(value)
		if err != nil {
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

// ask adds the restrictions of another form. They do not apply to null if the field
// accepts null, nor to the zero value: otherwise a field whose zero value they
// refuse could have no such tag.
func (d *derived) ask(zero *bool, other *form) {
	d.form.assertions = append(d.form.assertions, assertion{
		ok:  func(v any) bool { return *zero || v == nil && d.takesNull || other.fits(v) },
		why: func(v any) string { return other.explain(v) },
	})
}

// read returns the value of a tag as JSON.
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

// SchemaOwner is implemented by types that provide their own JSON Schema: an object
// schema without references. The method is called on the zero value, so it must not
// depend on the value.
type SchemaOwner interface{ JSONSchema() item.JSON }

// ownSchema returns the schema of a type that implements SchemaOwner, or nil.
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
	v, err := parseValue(string(value))
	if err != nil {
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
