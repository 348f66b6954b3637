// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

// infer derives the schema of a type. It produces the text for the model, in which a
// list is an array, and the form for checking arguments, which also accepts null for
// a list and for an optional member. Models do send null there, and decoding it
// gives the same value.
//
// The schema of a type is inferred once: programs make the same tool for each run. That of a type that provides
// it, or a part of it, may change.
func infer(t reflect.Type) (*schema, error) {
	if known, ok := inferred.Load(t); ok {
		return known.(*schema), nil
	}
	s, err := inferInput(t)
	if err == nil && !s.given {
		inferred.Store(t, s)
	}
	return s, err
}

var inferred sync.Map // from reflect.Type to *schema

func inferInput(t reflect.Type) (*schema, error) {
	if !isObjectType(t) {
		return nil, fmt.Errorf("input type %v: want a struct or a map with string keys", t)
	}
	s, err := inferType(t)
	err = cmp.Or(err, membersOf(t))
	if err == nil {
		err = s.checkZero(reflect.Zero(t).Interface())
	}
	if errors.Is(err, errOwnJSON) {
		err = fmt.Errorf("%w: use the option Parameters, or another type", err)
	}
	if err != nil {
		return nil, fmt.Errorf("input %w", ofType(t, err))
	}
	return s, nil
}

// errOwnJSON is the error for a type whose JSON is not what its kind suggests.
var errOwnJSON = errors.New("its JSON does not fit the schema inferred for it")

// ofType adds the name of a type to an error that does not begin with it.
func ofType(t reflect.Type, err error) error {
	rest, named := strings.CutPrefix(err.Error(), "type "+t.String())
	if named && (rest == "" || rest[0] == ':' || rest[0] == ' ') {
		return err
	}
	return fmt.Errorf("type %v: %w", t, err)
}

// isObjectType reports whether values of a type are a struct or a map with texts as
// keys.
func isObjectType(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

func inferType(t reflect.Type) (*schema, error) {
	r := deriver{definitions: newDefinitions(), zero: new(bool), plain: new(true), given: new(bool)}
	d, err := r.derive(t)
	if err != nil {
		return nil, err
	}
	d.ref = "" // endpoints want the whole as an object, not as a reference
	// Some endpoints refuse an object schema without properties, so it is always
	// present.
	text := d.text()
	if d.kind == "object" && len(d.form.properties) == 0 {
		d.body = ""
		text = `{"properties":{},` + d.text()[1:]
	}
	if len(r.texts) > 0 {
		text = strings.TrimSuffix(text, "}") + `,"$defs":{` + strings.Join(r.texts, ",") + "}}"
	}
	return &schema{text: item.JSON(text), form: d.form, zero: r.zero, plain: *r.plain, given: *r.given}, nil
}

// checkZero checks at registration whether the JSON of a type matches its schema. It
// may not for types with their own encoding.
func (s *schema) checkZero(zero any) error {
	b, err := encodeZero(zero)
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
		return fmt.Errorf("%w (%s)", errOwnJSON, problem)
	}
	return nil
}

// encodeZero returns the JSON of a type's zero value. A panic of the type's own method
// is an error, as everything else that is wrong with a type.
func encodeZero(zero any) (text []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its own method for JSON panicked on the zero value: %v", v)
		}
	}()
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	v.Set(reflect.ValueOf(zero))
	setEmbedded(v, nil)
	return json.Marshal(v.Interface(), jsonOptions)
}

// setEmbedded points the embedded pointers of a struct to zero values, so that its JSON has
// their members.
func setEmbedded(v reflect.Value, around []reflect.Type) {
	if v.Kind() != reflect.Struct || slices.Contains(around, v.Type()) {
		return
	}
	around = append(around, v.Type())
	for i := range v.NumField() {
		f, sf := v.Field(i), v.Type().Field(i)
		if name, _, _ := strings.Cut(sf.Tag.Get("json"), ","); sf.Anonymous && name == "" && f.Kind() == reflect.Pointer && f.CanSet() && !slices.Contains(around, f.Type().Elem()) {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		setEmbedded(f, around)
	}
}

// derived is the schema of a Go type: the form and the parts of its text.
type derived struct {
	form        *form
	whole       string   // the complete text, for a type with its own schema
	ref         string   // the place of the text, for a type that contains itself
	kind        string   // "" for any type
	time        bool     // it is a time.Time, in the form of RFC 3339
	takesNull   bool     // null is accepted
	null        bool     // the text for the model allows null
	body        string   // the keyword before the description
	tail        []clause // the keywords after the description
	description string
}

func (d *derived) text() string {
	var list []string
	switch {
	case d.ref != "":
		return d.reference()
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
	for _, k := range d.tail {
		list = append(list, quote(k.name)+":"+k.value)
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

// deriver derives the schema of one type.
type deriver struct {
	*definitions
	zero  *bool // set when the zero value is checked, which need not satisfy the tags
	plain *bool // no value needs [jsonOptions] to be decoded
	given *bool // a type provides its own schema
}

// derive returns the schema of a type. The schema of *T is the schema of T, or null.
func (r deriver) derive(t reflect.Type) (*derived, error) {
	pointer := false
	for first := t; t.Kind() == reflect.Pointer; {
		if pointer, t = true, t.Elem(); t == first {
			return nil, fmt.Errorf("type %v contains itself", t)
		}
	}
	d, err := r.once(t)
	if err != nil {
		return nil, err
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

// direct returns the schema of a type that is not a pointer.
func (r deriver) direct(t reflect.Type) (*derived, error) {
	d, err := r.ownSchema(t)
	if err != nil {
		return nil, err
	}
	// A type with its own way to read JSON may have a duration inside.
	if d != nil || t == reflect.TypeFor[time.Duration]() || decodesItself(t) && t != reflect.TypeFor[time.Time]() {
		*r.plain = false
	}
	if d == nil && t.PkgPath()+"."+t.Name() == "encoding/json.Number" {
		return nil, errors.New("a json.Number is a string in Go, so that no number could be decoded into it: use float64 or int64, or a string whose pattern is that of a number")
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
	return d, nil
}

// known returns the schema of a type whose JSON differs from what its kind suggests,
// or nil. Types of packages that this one does not import are recognized by name.
func known(t reflect.Type) *derived {
	name := t.PkgPath() + "." + t.Name()
	switch name {
	case "time.Time":
		d := &derived{form: &form{entire: true}, kind: "string", time: true, description: "a date and time of " + timeExample}
		d.tail = []clause{{"format", quote(dateTime)}}
		return d
	case "math/big.Int":
		return &derived{form: &form{entire: true}, kind: "integer"}
	case "log/slog.Level", "math/big.Rat", "math/big.Float":
		return &derived{form: &form{entire: true}, kind: "string"}
	case "time.Duration":
		return &derived{form: &form{entire: true}, kind: "string", description: "a duration such as 90s or 1h30m"}
	case "encoding/json.RawMessage", "github.com/go-json-experiment/json/jsontext.Value", "encoding/json/jsontext.Value":
		return &derived{form: &form{entire: true}}
	}
	switch t {
	case reflect.TypeFor[item.JSON]():
		return &derived{form: &form{entire: true}}
	case reflect.TypeFor[[]byte]():
		return &derived{form: &form{entire: true}, kind: "string", tail: []clause{{"contentEncoding", `"base64"`}}}
	}
	if readsText(t) {
		return &derived{form: &form{entire: true}, kind: "string"}
	}
	return nil
}

// readsText reports whether the JSON of a type is the text that its own methods write and read,
// such as that of a netip.Addr or of a UUID.
func readsText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) &&
		!p.Implements(reflect.TypeFor[json.Marshaler]()) && !p.Implements(reflect.TypeFor[json.MarshalerTo]()) &&
		!p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[json.UnmarshalerFrom]())
}

// The format of a time, and its form in words for a model.
const (
	dateTime    = "date-time"
	timeExample = "RFC 3339, such as 2026-01-02T15:04:05Z"
)

func (r deriver) byKind(t reflect.Type) (*derived, error) {
	d := &derived{form: &form{entire: decodesItself(t)}}
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
		if t.NumMethod() > 0 {
			return nil, fmt.Errorf("no JSON can be decoded into the interface %v: use a type that implements it, or any", t)
		}
		d.form.entire = true
	case reflect.Slice, reflect.Array:
		return d, r.list(d, t)
	case reflect.Map:
		return d, r.dictionary(d, t)
	case reflect.Struct:
		return d, r.object(d, t)
	default:
		return nil, fmt.Errorf("type %v%s", t, hasNoJSON)
	}
	return d, nil
}

// decodesItself reports whether a type has its own way to read JSON, so that a part
// of its JSON may mean something else than the whole.
func decodesItself(t reflect.Type) bool {
	// Not MethodByName with a variable: the linker would then keep every exported
	// method of the program, a fifth of its size.
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// within bounds an integer. An upper bound beyond 32 bits is omitted.
func (d *derived) within(low, high int64) {
	d.tail = []clause{{"minimum", strconv.FormatInt(low, 10)}}
	d.form.assertions = append(d.form.assertions, minimum(wholeNumber(low)))
	if high < math.MaxInt64 {
		d.tail = append(d.tail, clause{"maximum", strconv.FormatInt(high, 10)})
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
		d.tail = []clause{{"minItems", n}, {"maxItems", n}}
		d.form.entire = true // the decoder wants all elements
		d.form.assertions = append(d.form.assertions, elements.atLeast(t.Len()), elements.atMost(t.Len()))
	}
	return nil
}

func (r deriver) dictionary(d *derived, t reflect.Type) error {
	k := t.Key()
	whole := k.Kind() >= reflect.Int && k.Kind() <= reflect.Uintptr
	text := k.Kind() == reflect.String || k.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if !whole && !text {
		return fmt.Errorf("map key %v is neither text nor a whole number: use a list of structs", k)
	}
	e, err := r.derive(t.Elem())
	if err != nil {
		return fmt.Errorf("map value: %w", err)
	}
	d.kind, d.tail, d.form.others = "object", []clause{{"additionalProperties", e.text()}}, e.form
	if whole && !text {
		d.tail = append([]clause{{"propertyNames", `{"pattern":` + quote(wholeNames.String()) + "}"}}, d.tail...)
		d.form.patterns, d.form.others, d.form.entire = []pattern{{wholeNames.MatchString, e.form}}, nothing, true
	}
	return nil
}

// wholeNames matches the names of members that are the keys of a map with whole numbers.
var wholeNames = lazyregexp.New(`^-?(0|[1-9][0-9]*)$`)

// object adds the struct fields that the JSON encoding uses. If two fields have the
// same name, the outer one counts.
func (r deriver) object(d *derived, t reflect.Type) error {
	d.kind, d.form.others = "object", nothing
	d.form.properties = make(map[string]*form)
	fields, some := fieldsOf(t)
	var members, required []string
	for _, f := range fields {
		if f.inline {
			return fmt.Errorf("field %s: its json tag has the option inline, which is not read here: embed the struct, or give the members of a map a name", f.Name)
		}
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
		d.tail = append(d.tail, clause{"required", "[" + strings.Join(required, ",") + "]"})
	}
	d.tail = append(d.tail, clause{"additionalProperties", "false"})
	return nil
}

// field is a member of a struct's JSON.
type field struct {
	reflect.StructField
	name     string
	optional bool
	inline   bool // its members are members of the struct itself
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
		f.inline = f.inline || o == "inline" || o == "unknown"
	}
	return f, true
}

// quote writes a text as JSON.
func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	return string(b)
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
	*r.given = true
	given, err := callOwner(owner)
	if err != nil {
		return nil, fmt.Errorf("type %v: %w", t, err)
	}
	value := jsontext.Value(given)
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
	own, err := ownForm(v)
	if err != nil {
		return nil, fmt.Errorf("type %v: its JSONSchema: %w", t, faultOf(given, v, err))
	}
	if err := value.Compact(); err != nil {
		return nil, err
	}
	d := &derived{form: &form{entire: true}, whole: string(value)}
	d.ask(r.zero, own)
	return d, nil
}

// callOwner returns what a type says of itself. A panic is an error, as everything
// else that is wrong with a type.
func callOwner(owner SchemaOwner) (text item.JSON, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its method JSONSchema panicked on the zero value: %v", v)
		}
	}()
	return owner.JSONSchema(), nil
}
