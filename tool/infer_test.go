// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// What follows is how schemas were inferred with jsonschema-go, which is what
// ours are held against.

// reference returns the text for the model and the validator of arguments.
func reference(t reflect.Type) (item.JSON, *jsonschema.Resolved, error) {
	anything := &jsonschema.Schema{}
	given, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():             {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[jsontext.Value]():     anything,
		reflect.TypeFor[stdjson.RawMessage](): anything,
		reflect.TypeFor[item.JSON]():          anything,
		reflect.TypeFor[time.Time]():          {Type: "string", Format: "date-time", Description: "a date and time of RFC 3339, such as 2026-01-02T15:04:05Z"},
		reflect.TypeFor[time.Duration]():      {Type: "string", Description: "a duration such as 90s or 1h30m"},
	}})
	if err != nil {
		return "", nil, err
	}
	accepted := given.CloneSchemas()
	walk(given, func(s *jsonschema.Schema) {
		if slices.Equal(s.Types, []string{"null", "array"}) {
			s.Type, s.Types = "array", nil
		}
	})
	walk(accepted, nullForAbsent)
	b, err := json.Marshal(given)
	if err != nil {
		return "", nil, err
	}
	if b, err = jsontext.AppendFormat(nil, b); err != nil {
		return "", nil, err
	}
	text := string(b)
	if len(given.Properties) == 0 {
		text = `{"properties":{},` + text[1:]
	}
	resolved, err := accepted.Resolve(nil)
	return item.JSON(text), resolved, err
}

func walk(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	for _, p := range s.Properties {
		walk(p, visit)
	}
	walk(s.Items, visit)
	walk(s.AdditionalProperties, visit)
}

func nullForAbsent(s *jsonschema.Schema) {
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) {
			continue
		}
		if p.Type != "" {
			p.Type, p.Types = "", []string{"null", p.Type}
		} else if len(p.Types) > 0 && !slices.Contains(p.Types, "null") {
			p.Types = append([]string{"null"}, p.Types...)
		}
	}
}

type (
	text   string
	level  int
	inner  struct{ X, Y float32 }
	Parent struct {
		Name string `json:"name"`
		Age  int    `json:"age,omitempty"`
	}
	Grand struct {
		Parent
		Extra bool `json:"extra"`
	}
	hidden struct {
		Seen string `json:"seen"`
		own  string
	}
	onlyHidden struct{ a, b int }
	numbers    struct {
		A int     `json:"a"`
		B int8    `json:"b"`
		C int16   `json:"c"`
		D int32   `json:"d"`
		E int64   `json:"e"`
		F uint    `json:"f"`
		G uint8   `json:"g"`
		H uint16  `json:"h"`
		I uint32  `json:"i"`
		J uint64  `json:"j"`
		K float32 `json:"k"`
		L float64 `json:"l"`
		M uintptr `json:"m"`
	}
	pointers struct {
		A *string            `json:"a"`
		B **int              `json:"b,omitzero"`
		C *[]string          `json:"c"`
		D *[2]bool           `json:"d"`
		E *map[string]int    `json:"e"`
		F *inner             `json:"f,omitempty"`
		G *time.Time         `json:"g,omitzero"`
		H *any               `json:"h"`
		I *uint8             `json:"i" jsonschema:"small"`
		J *time.Duration     `json:"j"`
		K []*string          `json:"k"`
		L map[string]*[]int8 `json:"l"`
	}
	lists struct {
		A []string           `json:"a"`
		B [3]int             `json:"b" jsonschema:"three"`
		C [][]byte           `json:"c"`
		D []any              `json:"d,omitzero"`
		E []map[string][]int `json:"e"`
		F [0]string          `json:"f"`
		G []inner            `json:"g"`
		H []time.Time        `json:"h"`
	}
	mappings struct {
		A map[string]string     `json:"a"`
		B map[text]any          `json:"b,omitempty"`
		C map[netip.Addr]bool   `json:"c"`
		D map[string]inner      `json:"d"`
		E map[string]*time.Time `json:"e,omitzero" jsonschema:"points in <time> & \"more\" \u2028 é"`
	}
	encoded struct {
		A time.Time          `json:"a" jsonschema:"when"`
		B time.Duration      `json:"b" jsonschema:"how long"`
		C slog.Level         `json:"c"`
		D big.Rat            `json:"d"`
		E *big.Float         `json:"e,omitzero"`
		F jsontext.Value     `json:"f"`
		G stdjson.RawMessage `json:"g,omitzero" jsonschema:"whatever"`
		H item.JSON          `json:"h"`
		I []byte             `json:"i"`
		J *[]byte            `json:"j"`
	}
	mixture struct {
		NoTag    string
		EmptyTag string `json:",omitempty"`
		Dash     string `json:"-"`
		private  string
		Text     text  `json:"text"`
		Level    level `json:"level"`
		Any      any   `json:"any"`
		Desc     any   `json:"desc,omitzero" jsonschema:"a text = with more"`
		Nested   struct {
			Empty  struct{}   `json:"empty"`
			Hidden onlyHidden `json:"hidden"`
			Deep   struct {
				inner
				Z []struct{ Q *string } `json:"z"`
			} `json:"deep,omitzero"`
		} `json:"nested"`
		private2 chan int
	}
)

// Fields that encoding does not see.
var _ = []any{hidden{}.own, onlyHidden{}.a, onlyHidden{}.b, mixture{}.private, mixture{}.private2}

// inferable are the types that both can do, by the schema texts of old.
var inferable = []reflect.Type{
	reflect.TypeFor[searchInput](),
	reflect.TypeFor[struct{}](),
	reflect.TypeFor[inner](),
	reflect.TypeFor[Parent](),
	reflect.TypeFor[Grand](),
	reflect.TypeFor[struct{ *Grand }](),
	reflect.TypeFor[struct {
		Grand
		Name int `json:"title"`
	}](),
	reflect.TypeFor[hidden](),
	reflect.TypeFor[numbers](),
	reflect.TypeFor[pointers](),
	reflect.TypeFor[lists](),
	reflect.TypeFor[mappings](),
	reflect.TypeFor[encoded](),
	reflect.TypeFor[mixture](),
	reflect.TypeFor[map[string]any](),
	reflect.TypeFor[map[string]string](),
	reflect.TypeFor[map[text]*inner](),
	reflect.TypeFor[map[string]pointers](),
	reflect.TypeFor[map[string][]lists](),
}

// I9: the schema that a model is given is, to the byte, that of jsonschema-go.
func TestInferenceAgainstJSONSchemaGo(t *testing.T) {
	for _, typ := range inferable {
		want, _, err := reference(typ)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		got, err := inferType(typ)
		if err != nil {
			t.Errorf("%v: %v", typ, err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got.text)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", typ, diff)
		}
		if err := got.text.Valid(); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
}

// Where we differ, it is because what jsonschema-go says is not what the type's
// JSON is.
func TestInferenceThatDiffers(t *testing.T) {
	for _, c := range []struct {
		typ        reflect.Type
		ours, that string
	}{
		{ // an embedded struct with a name is a member
			reflect.TypeFor[struct {
				Parent `json:"parent"`
				B      bool `json:"b"`
			}](),
			`{"type":"object","properties":{"parent":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false},"b":{"type":"boolean"}},"required":["parent","b"],"additionalProperties":false}`,
			`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"b":{"type":"boolean"}},"required":["name","b"],"additionalProperties":false}`,
		},
		{ // a pointer to any value is not null alone
			reflect.TypeFor[struct {
				A *jsontext.Value `json:"a"`
			}](),
			`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":["null"]}},"required":["a"],"additionalProperties":false}`,
		},
		{ // of two fields with one name the outer one counts
			reflect.TypeFor[struct {
				Title int `json:"name"`
				Parent
			}](),
			`{"type":"object","properties":{"name":{"type":"integer"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}`,
			`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","name"],"additionalProperties":false}`,
		},
	} {
		ours, err := inferType(c.typ)
		if err != nil || string(ours.text) != c.ours {
			t.Errorf("%v:\n got %s, %v\nwant %s", c.typ, ours.text, err, c.ours)
		}
		if that, _, err := reference(c.typ); err != nil || string(that) != c.that {
			t.Errorf("%v: jsonschema-go says %s, %v now", c.typ, that, err)
		}
		if err := ours.checkZero(reflect.Zero(c.typ).Interface()); err != nil {
			t.Errorf("%v: %v", c.typ, err)
		}
	}
}

// Types without a schema fail at registration, and the error names the field.
func TestInferenceErrors(t *testing.T) {
	for want, typ := range map[string]reflect.Type{
		"field C: type chan int has no JSON":                     reflect.TypeFor[struct{ C chan int }](),
		"field F: type func() has no JSON":                       reflect.TypeFor[struct{ F func() }](),
		"field A: element: field Z: type complex128 has no JSON": reflect.TypeFor[struct{ A []struct{ Z complex128 } }](),
		"field M: map value: type chan bool has no JSON":         reflect.TypeFor[struct{ M map[string]chan bool }](),
		"field M: map key float64 is neither text nor a whole":   reflect.TypeFor[struct{ M map[float64]bool }](),
		"field P: type chan int has no JSON":                     reflect.TypeFor[struct{ P **chan int }](),
		"field A: its jsonschema tag is empty": reflect.TypeFor[struct {
			A int `jsonschema:""`
		}](),
		`field A: its jsonschema tag "minimum=1" must be a descr`: reflect.TypeFor[struct {
			A int `jsonschema:"minimum=1"`
		}](),
	} {
		if s, err := inferType(typ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %+v, %v, want %s", typ, s, err, want)
		}
		if _, _, err := reference(typ); err == nil {
			t.Errorf("%v: jsonschema-go has no error", typ)
		}
	}
	if _, err := New("a", "", func(context.Context, struct{ A []struct{ C chan int } }) (string, error) { return "", nil }); err == nil ||
		!strings.Contains(err.Error(), "field A") {
		t.Errorf("%v", err)
	}
}

// T13: for random types and random arguments, what is accepted is exactly what
// the validator of jsonschema-go accepts for its schema of the type, and what
// is not is explained.
func TestInferredFormProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := structType(3).Draw(t, "type")
		_, validator, err := reference(typ)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := inferType(typ)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			compare(t, ours.form, validator, argumentFor(typ, 4).Draw(t, "arguments"))
		}
	})
}

// compare holds a form against the validator.
func compare(t *rapid.T, f *form, validator *jsonschema.Resolved, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	// What is checked is what was read.
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	theirs := validator.Validate(v)
	problem := f.explain(v)
	if fits := f.fits(v); fits != (theirs == nil) || fits != (problem == "") {
		t.Fatalf("%s: fits %v, explained %q, the validator: %v", b, fits, problem, theirs)
	}
	if again := f.explain(v); again != problem {
		t.Fatalf("%s: explained %q and %q", b, problem, again)
	}
}

// structType draws types from the kinds that can be inferred.
func structType(depth int) *rapid.Generator[reflect.Type] {
	return rapid.Custom(func(t *rapid.T) reflect.Type {
		if depth == 3 && rapid.IntRange(0, 4).Draw(t, "ready") == 0 {
			return rapid.SampledFrom(inferable).Draw(t, "type")
		}
		var fields []reflect.StructField
		for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
			tag := fmt.Sprintf(`json:"%c%s"`, 'a'+i, rapid.SampledFrom([]string{"", ",omitzero", ",omitempty"}).Draw(t, "option"))
			if rapid.Bool().Draw(t, "described") {
				tag += ` jsonschema:"a field"`
			}
			fields = append(fields, reflect.StructField{
				Name: string(rune('A' + i)), Type: anyType(depth-1).Draw(t, "field"), Tag: reflect.StructTag(tag),
			})
		}
		return reflect.StructOf(fields)
	})
}

func anyType(depth int) *rapid.Generator[reflect.Type] {
	leaves := []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[text](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
		reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](),
		reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[any](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](),
		reflect.TypeFor[item.JSON](), reflect.TypeFor[[]byte](), reflect.TypeFor[level](), reflect.TypeFor[Grand](),
	}
	leaf := rapid.SampledFrom(leaves)
	if depth <= 0 {
		return leaf
	}
	inside := anyTypeInside(depth - 1)
	return rapid.OneOf(leaf,
		rapid.Map(inside, reflect.SliceOf),
		rapid.Map(inside, func(t reflect.Type) reflect.Type { return reflect.ArrayOf(2, t) }),
		rapid.Map(inside, func(t reflect.Type) reflect.Type { return reflect.MapOf(reflect.TypeFor[string](), t) }),
		rapid.Map(inside, func(t reflect.Type) reflect.Type {
			if t == reflect.TypeFor[any]() || t == reflect.TypeFor[item.JSON]() {
				return t // see TestInferenceThatDiffers
			}
			return reflect.PointerTo(t)
		}),
		structType(depth))
}

func anyTypeInside(depth int) *rapid.Generator[reflect.Type] {
	return rapid.Deferred(func() *rapid.Generator[reflect.Type] { return anyType(depth) })
}

// argumentFor draws JSON that mostly has the shape of a type.
func argumentFor(typ reflect.Type, depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 || rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
			return jsonValue(1).Draw(t, "other")
		}
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Struct:
			m := make(map[string]any)
			for _, f := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "" {
					name = f.Name
				}
				if rapid.IntRange(0, 7).Draw(t, "there") > 0 {
					m[name] = argumentFor(f.Type, depth-1).Draw(t, name)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "more") == 0 {
				m["more"] = true
			}
			return m
		case reflect.Map:
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), argumentFor(typ.Elem(), depth-1), 0, 2).Draw(t, "map")
		case reflect.Slice, reflect.Array:
			return rapid.SliceOfN(argumentFor(typ.Elem(), depth-1), 0, 3).Draw(t, "list")
		case reflect.Bool:
			return true
		case reflect.String:
			return "x"
		}
		return rapid.SampledFrom([]float64{0, 1, -1, 1.5, 127, 128, -128, -129, 255, 256, 1 << 31, -1 << 31, -1<<31 - 1, 1<<32 - 1, 1 << 32, 1 << 63, 1e300}).Draw(t, "number")
	})
}

// jsonValue draws any JSON.
func jsonValue(depth int) *rapid.Generator[any] {
	leaf := rapid.SampledFrom([]any{nil, "x", "", "é", true, 1.0, 1.5, -3.0, 300.0, 1e300})
	if depth == 0 {
		return leaf
	}
	inside := rapid.Deferred(func() *rapid.Generator[any] { return jsonValue(depth - 1) })
	return rapid.OneOf(leaf, leaf,
		rapid.Map(rapid.SliceOfN(inside, 0, 3), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), inside, 0, 3), func(v map[string]any) any { return v }))
}
