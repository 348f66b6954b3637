// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package nonsense

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// arg is a value, and how it was made, for the report.
type arg struct {
	reflect.Value

	text string
}

// dice chooses: by the bytes of a fuzz input, or at random.
type dice struct {
	data   []byte
	random *rand.Rand
}

// n returns a number from 0 to n-1, and 0 once the bytes are used up: the simplest value.
func (d *dice) n(n int) int {
	if d.random != nil {
		return d.random.IntN(n)
	}
	if len(d.data) == 0 {
		return 0
	}
	b := int(d.data[0])
	d.data = d.data[1:]
	if n > 256 && len(d.data) > 0 {
		b = b<<8 | int(d.data[0])
		d.data = d.data[1:]
	}
	return b % n
}

// values are the scalars to choose from.
var (
	texts = []string{
		"", "x", "\xff\xfe", " ", "\x00", "a\r\nb", "../x", "x/y", "é", "-1", "null", "{}", "[]", "[null]", `"x"`, "1e999", "resp_1",
		`{"type":"message","role":"user","content":"x"}`, `{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}`, `{"type":"response.completed","response":{}}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{}]}]}`, `{"model":"m","input":[{"role":"user","content":[{}]}]}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "http://127.0.0.1:1", "https://example.com/v1", "data:image/png;base64,aGVsbG8=",
		"sqlite:x.db", "2026-01-01T00:00:00Z", "<config model=\"m\"/>\n\n<user>\nhi\n</user>\n", "# rehearsal\n\nsay hello\n",
		strings.Repeat("long \xff", 1<<13), strings.Repeat("[", 1<<12), strings.Repeat("<user>", 1<<10),
	}
	numbers = []int64{0, 1, -1, 2, 7, 1000, 1 << 20, math.MaxInt64, math.MinInt64}
	floats  = []float64{0, 1, -1, 0.5, math.NaN(), math.Inf(1), math.MaxFloat64}
)

// maker makes values of any type.
type maker struct {
	*dice
	*runner

	pool []arg // results of calls
}

// deep is how many levels of a value are filled.
const deep = 4

func (m *maker) make(t reflect.Type, depth int) arg {
	if m.n(3) == 1 {
		if a, ok := m.fromPool(t); ok {
			return a
		}
	}
	if list := m.makers[t]; len(list) > 0 && depth < deep-1 && m.n(3) == 1 {
		if a, ok := m.result(list[m.n(len(list))], t, depth); ok {
			return a
		}
	}
	if f, ok := foreign[t]; ok {
		return f(m, depth)
	}
	switch t.Kind() {
	case reflect.Bool:
		return m.scalar(t, reflect.ValueOf(m.n(2) == 1))
	case reflect.String:
		return m.scalar(t, reflect.ValueOf(texts[m.n(len(texts))]))
	case reflect.Float32, reflect.Float64:
		return m.scalar(t, reflect.ValueOf(floats[m.n(len(floats))]))
	case reflect.Interface:
		return m.inInterface(t, depth)
	case reflect.Pointer:
		return m.pointer(t, depth, true)
	case reflect.Struct:
		return m.structure(t, depth)
	case reflect.Slice, reflect.Array:
		return m.slice(t, depth)
	case reflect.Map:
		return m.table(t, depth)
	case reflect.Func:
		return m.function(t, depth)
	case reflect.Chan:
		return m.channel(t)
	default:
		return m.scalar(t, reflect.ValueOf(numbers[m.n(len(numbers))]))
	}
}

func (m *maker) scalar(t reflect.Type, v reflect.Value) arg {
	v = v.Convert(t)
	return arg{v, fmt.Sprintf("%s(%.60q)", t, fmt.Sprint(v.Interface()))}
}

func zero(t reflect.Type) arg { return arg{reflect.Zero(t), "zero " + t.String()} }

// fromPool returns a result of an earlier call, preferably not the oldest.
func (m *maker) fromPool(t reflect.Type) (arg, bool) {
	var fit []arg
	for _, a := range m.pool {
		if a.Type().AssignableTo(t) {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		return arg{}, false
	}
	return fit[len(fit)-1-m.n(len(fit))], true
}

// result calls a function that returns a value of the type.
func (m *maker) result(f target, t reflect.Type, depth int) (arg, bool) {
	results := m.call(m, f, depth+1)
	for _, r := range results {
		if r.Type() == t {
			return r, true
		}
	}
	return arg{}, false
}

// inInterface returns nil, a nil pointer in an interface, or what implements the interface.
func (m *maker) inInterface(t reflect.Type, depth int) arg {
	fit := m.implementing(t)
	if t.NumMethod() == 0 {
		others := []any{"x", 1, -1.5, []byte("{}"), map[string]any{"a": nil}, make(chan int), func() {}, []any{nil}, struct{ A *int }{}}
		if k := m.n(len(others) + 2); k > 1 {
			return arg{reflect.ValueOf(others[k-2]), fmt.Sprintf("%T", others[k-2])}
		}
	}
	k := m.n(4)
	if k == 0 || len(fit) == 0 || depth > deep+2 {
		return zero(t)
	}
	of := fit[m.n(len(fit))]
	if k == 1 && of.Kind() == reflect.Pointer {
		return arg{reflect.Zero(of), fmt.Sprintf("%s((%s)(nil))", t, of)}
	}
	if of.Kind() == reflect.Pointer {
		return m.pointer(of, depth, false)
	}
	return m.make(of, depth+1)
}

func (m *maker) pointer(t reflect.Type, depth int, orNil bool) arg {
	// Zero values of structs of other modules are not tried.
	if orNil && (m.n(4) == 0 || depth > deep || t.Elem().Kind() == reflect.Struct && !own(t.Elem())) {
		return arg{reflect.Zero(t), fmt.Sprintf("(%s)(nil)", t)}
	}
	p := reflect.New(t.Elem())
	if m.n(3) == 0 {
		return arg{p, fmt.Sprintf("new(%s)", t.Elem())}
	}
	to := m.make(t.Elem(), depth+1)
	p.Elem().Set(to.Value)
	return arg{p, "&" + to.text}
}

// structure returns a zero struct, one with one field, or one with several.
func (m *maker) structure(t reflect.Type, depth int) arg {
	a := arg{reflect.New(t).Elem(), t.String() + "{"}
	var fields []int
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			fields = append(fields, i)
		}
	}
	how := m.n(4)
	if how == 0 || len(fields) == 0 || depth > deep || !own(t) && t.Name() != "" {
		a.text += "}"
		return a
	}
	if how == 1 {
		fields = []int{fields[m.n(len(fields))]}
	}
	for _, i := range fields {
		if len(fields) > 1 && m.n(2) == 0 {
			continue
		}
		v := m.make(t.Field(i).Type, depth+1)
		a.Field(i).Set(v.Value)
		a.text += t.Field(i).Name + ": " + v.text + ", "
	}
	a.text += "}"
	return a
}

func (m *maker) slice(t reflect.Type, depth int) arg {
	n := m.n(5) - 1
	if t.Kind() == reflect.Array {
		return zero(t)
	}
	if n < 0 || depth > deep && n > 0 {
		return arg{reflect.Zero(t), fmt.Sprintf("%s(nil)", t)}
	}
	if t.Elem().Kind() == reflect.Uint8 {
		return m.scalar(t, reflect.ValueOf(texts[m.n(len(texts))]))
	}
	a := arg{reflect.MakeSlice(t, n, n), t.String() + "{"}
	for i := range n {
		v := m.make(t.Elem(), depth+1)
		a.Index(i).Set(v.Value)
		a.text += v.text + ", "
	}
	a.text += "}"
	return a
}

func (m *maker) table(t reflect.Type, depth int) arg {
	if m.n(3) == 0 {
		return zero(t)
	}
	a := arg{reflect.MakeMap(t), t.String() + "{"}
	if m.n(2) == 1 && depth < deep {
		k, v := m.make(t.Key(), depth+1), m.make(t.Elem(), depth+1)
		if k.Comparable() {
			a.SetMapIndex(k.Value, v.Value)
			a.text += k.text + ": " + v.text
		}
	}
	a.text += "}"
	return a
}

func (m *maker) channel(t reflect.Type) arg {
	if m.n(2) == 0 || t.ChanDir() != reflect.BothDir {
		return zero(t)
	}
	a := arg{reflect.MakeChan(t, 1), "make(" + t.String() + ")"}
	if m.n(2) == 1 {
		a.Close()
		a.text = "closed " + a.text
	}
	return a
}

// function returns nil, or a function with results that are made now: it may be called from
// any goroutine. An iterator yields a value twice, unless its consumer stops.
func (m *maker) function(t reflect.Type, depth int) arg {
	if m.n(4) == 0 || depth > deep {
		return arg{reflect.Zero(t), t.String() + "(nil)"}
	}
	if isIterator(t) {
		var each []reflect.Value
		text := t.String() + " yields"
		for i := range t.In(0).NumIn() {
			v := m.make(t.In(0).In(i), depth+1)
			each = append(each, m.as(v, t.In(0).In(i)))
			text += " " + v.text
		}
		return arg{reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
			for range 2 {
				if !args[0].Call(each)[0].Bool() {
					break
				}
			}
			return nil
		}), text}
	}
	var results []reflect.Value
	text := t.String() + " returns"
	for i := range t.NumOut() {
		v := zero(t.Out(i))
		if m.n(2) == 1 {
			v = m.make(t.Out(i), depth+1)
		}
		results = append(results, m.as(v, t.Out(i)))
		text += " " + v.text
	}
	return arg{reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return results }), text}
}

// as returns the value in the interface that a function wants.
func (*maker) as(a arg, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	v.Set(a.Value)
	return v
}

// isIterator tells a function that yields to its only argument.
func isIterator(t reflect.Type) bool {
	if t.Kind() != reflect.Func || t.NumIn() != 1 || t.NumOut() != 0 || t.In(0).Kind() != reflect.Func {
		return false
	}
	yield := t.In(0)
	return yield.NumOut() == 1 && yield.Out(0).Kind() == reflect.Bool && yield.NumIn() > 0
}

// foreign makes values of types of other modules, whose zero values are not our concern.
var foreign map[reflect.Type]func(m *maker, depth int) arg

func init() {
	foreign = map[reflect.Type]func(m *maker, depth int) arg{
		reflect.TypeFor[context.Context](): func(m *maker, _ int) arg {
			// A nil context may panic, as in the standard library.
			if m.n(2) == 0 {
				return arg{reflect.ValueOf(m.cancelled), "a cancelled context"}
			}
			return arg{reflect.ValueOf(m.soon()), "a context that ends soon"}
		},
		reflect.TypeFor[testing.TB]():          one("a testing.TB", func(m *maker) testing.TB { return &quiet{TB: m.tb, runner: m.runner, ctx: m.soon()} }),
		reflect.TypeFor[http.ResponseWriter](): one("a recorder", func(*maker) http.ResponseWriter { return httptest.NewRecorder() }),
		reflect.TypeFor[*http.Request](): func(m *maker, _ int) arg {
			method := []string{"GET", "POST", "DELETE"}[m.n(3)]
			path := []string{"/", "/v1/responses", "/v1/chat/completions", "/v1/conversations", "/v1/files/x", "/v1/responses/x?stream=true"}[m.n(6)]
			body := texts[m.n(len(texts))]
			r := httptest.NewRequestWithContext(m.soon(), method, "http://127.0.0.1:1"+path, strings.NewReader(body))
			return arg{reflect.ValueOf(r), fmt.Sprintf("%s %s %.60q", method, path, body)}
		},
		reflect.TypeFor[http.Handler]():      some(http.NotFoundHandler()),
		reflect.TypeFor[http.RoundTripper](): some(http.DefaultTransport),
		reflect.TypeFor[*http.Client]():      some(new(http.Client)),
		reflect.TypeFor[*slog.Logger]():      some(slog.New(slog.DiscardHandler)),
		reflect.TypeFor[*sql.DB]():           some[*sql.DB](),
		reflect.TypeFor[image.Image]():       some[image.Image](image.NewRGBA(image.Rectangle{}), image.NewGray(image.Rect(-1, -1, 3, 3))),
		reflect.TypeFor[*rand.Rand]():        one("a rand.Rand", func(*maker) *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }),
		reflect.TypeFor[error]():             some(errors.New("x"), context.Canceled, io.ErrUnexpectedEOF, error(new(http.MaxBytesError))),
		reflect.TypeFor[time.Time]():         one("a time", func(m *maker) time.Time { return time.Unix(numbers[m.n(len(numbers))], 0) }),
		reflect.TypeFor[io.Writer](): func(m *maker, depth int) arg {
			return some[io.Writer](io.Discard, new(bytes.Buffer), &brokenWriter{})(m, depth)
		},
		reflect.TypeFor[io.Reader](): func(m *maker, depth int) arg {
			return some[io.Reader](strings.NewReader(texts[m.n(len(texts))]), iotest.ErrReader(errors.New("broken")))(m, depth)
		},
		reflect.TypeFor[io.ReadSeeker](): func(m *maker, depth int) arg {
			return some[io.ReadSeeker](strings.NewReader(texts[m.n(len(texts))]))(m, depth)
		},
		reflect.TypeFor[io.ReadCloser](): func(m *maker, depth int) arg {
			return some(io.NopCloser(strings.NewReader(texts[m.n(len(texts))])))(m, depth)
		},
	}
}

// some returns nil, or one of the values.
func some[T any](values ...T) func(m *maker, depth int) arg {
	t := reflect.TypeFor[T]()
	return func(m *maker, _ int) arg {
		k := m.n(len(values) + 1)
		if k == 0 {
			return arg{reflect.Zero(t), t.String() + "(nil)"}
		}
		v := reflect.ValueOf(&values[k-1]).Elem()
		return arg{v, fmt.Sprintf("%s(%T)", t, v.Interface())}
	}
}

func one[T any](text string, make func(m *maker) T) func(m *maker, depth int) arg {
	return func(m *maker, _ int) arg {
		v := make(m)
		return arg{reflect.ValueOf(&v).Elem(), text}
	}
}

type brokenWriter struct{}

func (*brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// quiet is a test that fails without anybody hearing of it.
type quiet struct {
	testing.TB
	*runner

	ctx context.Context
}

func (q *quiet) Context() context.Context { return q.ctx }
func (q *quiet) Cleanup(f func())         { q.cleanups = append(q.cleanups, f) }
func (*quiet) Error(...any)               {}
func (*quiet) Errorf(string, ...any)      {}
func (*quiet) Fail()                      {}
func (*quiet) Failed() bool               { return false }
func (*quiet) FailNow()                   { runtime.Goexit() }
func (*quiet) Fatal(...any)               { runtime.Goexit() }
func (*quiet) Fatalf(string, ...any)      { runtime.Goexit() }
func (*quiet) Log(...any)                 {}
func (*quiet) Logf(string, ...any)        {}
func (*quiet) Skip(...any)                { runtime.Goexit() }
func (*quiet) Skipf(string, ...any)       { runtime.Goexit() }
func (*quiet) SkipNow()                   { runtime.Goexit() }
func (*quiet) Setenv(string, string)      {}
func (*quiet) Chdir(string)               {}
