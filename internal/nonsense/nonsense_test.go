// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package nonsense

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
)

const module = "github.com/antiphon-go/antiphon/"

var (
	show   = flag.Bool("calls", false, "print each call before it is made: a panic in another goroutine ends the process")
	only   = flag.String("only", "", "call only what has this in its name, such as agent.AsTool")
	rounds = flag.Int("rounds", 0, "how often TestNonsense calls each function and method")
)

// function is a line of the table.
type function struct {
	at, name string
	call     any
}

type typ struct {
	at   string
	name reflect.Type
}

// target is a function or a method. A method's first argument is its receiver.
type target struct {
	name   string
	call   reflect.Value // not that of an interface's method
	method string        // of an interface
	recv   reflect.Type
	in     []reflect.Type
	out    []reflect.Type
}

// runner calls targets and reports what panics or does not return.
type runner struct {
	tb        testing.TB
	makers    map[reflect.Type][]target
	cancelled context.Context
	cancels   []context.CancelFunc
	cleanups  []func()
	history   []string
	reported  map[string]int
	calls     int
}

func newRunner(tb testing.TB) *runner {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := &runner{tb: tb, cancelled: ctx, makers: map[reflect.Type][]target{}, reported: map[string]int{}}
	for _, f := range targets() {
		for _, out := range f.out {
			if of := out; f.recv == nil && (own(of) || of.Kind() == reflect.Pointer && own(of.Elem())) {
				r.makers[out] = append(r.makers[out], f)
			}
		}
	}
	return r
}

func own(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), module) }

// targets are all functions and methods, but those of the list of exceptions.
func targets() []target {
	var list []target
	add := func(f target) {
		if reason := exceptions[f.name]; reason == "" && strings.Contains(f.name, *only) {
			list = append(list, f)
		}
	}
	for _, f := range functions {
		v := reflect.ValueOf(f.call)
		t := target{name: f.at + "." + f.name, call: v}
		for in := range v.Type().Ins() {
			t.in = append(t.in, in)
		}
		for out := range v.Type().Outs() {
			t.out = append(t.out, out)
		}
		add(t)
	}
	for _, t := range types {
		recv := t.name
		if recv.Kind() != reflect.Interface {
			recv = reflect.PointerTo(recv)
		}
		for method := range recv.Methods() {
			if !method.IsExported() {
				continue
			}
			f := target{name: t.at + "." + t.name.Name() + "." + method.Name, recv: recv, method: method.Name}
			ins := slices.Collect(method.Type.Ins())
			if recv.Kind() != reflect.Interface {
				f.call, ins = method.Func, ins[1:]
			}
			f.in, f.out = ins, slices.Collect(method.Type.Outs())
			add(f)
		}
	}
	return list
}

// soon returns a context that lets a call begin its work, and ends before anybody waits.
func (r *runner) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	r.cancels = append(r.cancels, cancel)
	return ctx
}

// call calls a function or a method with nonsense and returns its results.
func (r *runner) call(m *maker, f target, depth int) []arg {
	var args []arg
	call := f.call
	if f.recv != nil {
		recv, ok := m.receiver(f.recv, depth)
		if !ok {
			return nil
		}
		if !call.IsValid() {
			call = recv.MethodByName(f.method)
			recv.text += "." + f.method
		} else {
			args = append(args, recv)
		}
	}
	for _, in := range f.in {
		args = append(args, m.make(in, depth))
	}
	var values []reflect.Value
	var texts []string
	for i, a := range args {
		values = append(values, m.as(a, call.Type().In(i)))
		texts = append(texts, a.text)
	}
	text := f.name + "(" + strings.Join(texts, ", ") + ")"
	text = text[:min(len(text), 3000)]
	stop := m.n(4)
	var results []arg
	r.watch(text, func() {
		var out []reflect.Value
		if call.Type().IsVariadic() {
			out = call.CallSlice(values)
		} else {
			out = call.Call(values)
		}
		for _, v := range out {
			use(v, stop)
			if v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			if v.IsValid() {
				results = append(results, arg{v, "result of " + text[:min(len(text), 400)]})
			}
		}
	})
	if m.pool = append(m.pool, results...); len(m.pool) > 64 {
		m.pool = m.pool[len(m.pool)-64:]
	}
	return results
}

// receiver returns what a method can be called on: no nil.
func (m *maker) receiver(t reflect.Type, depth int) (arg, bool) {
	if t.Kind() == reflect.Pointer {
		if m.n(2) == 1 {
			if a := m.make(t, depth); !a.IsNil() && !nils.Is(a.Elem().Interface()) {
				return a, true
			}
		}
		return m.pointer(t, depth, false), true
	}
	for range 8 {
		a := m.make(t, depth)
		if a.Kind() == reflect.Interface {
			a.Value = a.Elem()
		}
		if a.IsValid() && (a.Kind() != reflect.Pointer || !a.IsNil()) {
			return a, true
		}
		if m.random == nil {
			break // the bytes are used up
		}
	}
	return arg{}, false
}

// implementing lists the types of the table that implement an interface.
func (r *runner) implementing(t reflect.Type) (list []reflect.Type) {
	for _, of := range types {
		if of.name.Kind() == reflect.Interface {
			continue
		}
		if of.name.Implements(t) && of.name.Kind() != reflect.Struct {
			list = append(list, of.name)
		} else if p := reflect.PointerTo(of.name); p.Implements(t) {
			list = append(list, p)
		}
	}
	for _, of := range hollow {
		if of.Implements(t) {
			list = append(list, of)
		}
	}
	return list
}

// use does with a result what a program would do: it asks an error for its text, ranges over an
// iterator, which it may leave early, and calls a function that needs nothing.
func use(v reflect.Value, stop int) {
	if err, ok := v.Interface().(error); ok && !nils.Is(err) {
		_ = err.Error()
		_ = errors.Unwrap(err)
	}
	switch {
	case v.Kind() != reflect.Func || v.IsNil():
	case isIterator(v.Type()):
		n := 0
		v.Call([]reflect.Value{reflect.MakeFunc(v.Type().In(0), func([]reflect.Value) []reflect.Value {
			n++
			return []reflect.Value{reflect.ValueOf(n != stop && n < 100)}
		})})
	case v.Type().NumIn() == 0:
		v.Call(nil)
	}
}

// patience is the time after which a call counts as hanging. All its contexts have
// ended by then. It is no promise of speed.
const patience = 30 * time.Second

// watch runs a call, and reports it if it panics or does not return.
func (r *runner) watch(text string, call func()) {
	r.calls++
	r.history = append(r.history, text)
	if len(r.history) > 8 {
		r.history = r.history[1:]
	}
	if *show {
		fmt.Fprintln(os.Stderr, text)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				r.report(text, v, debug.Stack())
			}
		}()
		call()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		var ours []string
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "nonsense.(*runner).watch.func1") {
				ours = append(ours, stack)
			}
		}
		r.tb.Fatalf("%s\ndoes not return:\n%s", text, strings.Join(ours, "\n\n"))
	}
}

// report tells of a panic once for each place.
func (r *runner) report(text string, v any, stack []byte) {
	places := frames(stack)
	if len(places) == 1 && strings.Contains(places[0], "<autogenerated>") {
		return // a method of an embedded pointer that is nil: the caller's, as with any nil
	}
	at := strings.Join(places[:min(1, len(places))], "")
	if r.reported[at]++; r.reported[at] > 1 {
		return
	}
	r.tb.Errorf("%s\npanics: %v\nat %s\nafter\n  %s", text, v, strings.Join(places[:min(6, len(places))], "\n   "),
		strings.Join(r.history[:max(0, len(r.history)-1)], "\n  "))
}

// frames returns the module's functions below a panic, the innermost first.
func frames(stack []byte) (list []string) {
	_, after, _ := strings.Cut(string(stack), "panic(")
	lines := strings.Split(after, "\n")
	for i, line := range lines[:len(lines)-1] {
		name, ours := strings.CutPrefix(line, module)
		if !ours || strings.HasPrefix(name, "internal/nonsense.") {
			continue
		}
		if k := strings.LastIndex(name, "("); k > 0 {
			name = name[:k]
		}
		file, _, _ := strings.Cut(path.Base(lines[i+1]), " ")
		list = append(list, name+" "+file)
	}
	return list
}

// isolate lets calls read and write only in a temporary folder, send nothing beyond this
// machine and start no program.
func isolate(tb testing.TB) {
	root, err := os.MkdirTemp("", "nonsense")
	if err != nil {
		tb.Fatal(err)
	}
	// A call that was left alone may still write there.
	tb.Cleanup(func() { _ = os.RemoveAll(root) })
	work := filepath.Join(root, "home", "work", "a", "b")
	if err := os.MkdirAll(work, 0o700); err != nil {
		tb.Fatal(err)
	}
	tb.Chdir(work)
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"} {
		tb.Setenv(name, filepath.Join(root, "home"))
	}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "ANTIPHON_") || strings.HasPrefix(name, "PG") {
			tb.Setenv(name, "")
		}
	}
	tb.Setenv("PATH", "")
}

func TestMain(m *testing.M) {
	flag.Parse()
	// No name has an address, and no connection leaves this machine.
	refuse := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no network in this test")
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: refuse}
	web := http.DefaultTransport.(*http.Transport)
	web.DialContext, web.Proxy = refuse, nil
	os.Exit(m.Run())
}

// TestNonsense calls each exported function and method several times, with arguments that a
// fixed seed chooses. G8
func TestNonsense(t *testing.T) {
	n := *rounds
	if n == 0 {
		n = 6
		if testing.Short() {
			n = 2
		}
	}
	isolate(t)
	r := newRunner(t)
	for _, f := range targets() {
		for round := range n {
			seed := fnv.New64a()
			fmt.Fprint(seed, f.name, round)
			m := &maker{runner: r, dice: &dice{random: rand.New(rand.NewPCG(seed.Sum64(), 0))}}
			r.call(m, f, 0)
			r.call(m, f, 0)
			r.end()
		}
	}
	t.Logf("%d calls of %d functions and methods", r.calls, len(targets()))
}

// end ends the contexts and the tests that calls got.
func (r *runner) end() {
	for _, f := range slices.Backward(r.cleanups) {
		r.watch("the end of a test", f)
	}
	for _, cancel := range r.cancels {
		cancel()
	}
	r.cancels, r.cleanups, r.history = nil, nil, nil
}

// FuzzNonsense lets the bytes choose functions and arguments. The results of a call are
// arguments of the next. G8
func FuzzNonsense(f *testing.F) {
	all := targets()
	for i := range 16 {
		seed := make([]byte, 256)
		random := rand.New(rand.NewPCG(uint64(i), 1))
		for k := range seed {
			seed[k] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		isolate(t)
		r := newRunner(t)
		defer r.end()
		m := &maker{runner: r, dice: &dice{data: data}}
		for range 8 {
			r.call(m, all[m.n(len(all))], 0)
			if len(m.data) == 0 {
				break
			}
		}
	})
}

// TestExceptions proves that each exception is of something that is there.
func TestExceptions(t *testing.T) {
	there := map[string]bool{}
	for _, f := range functions {
		there[f.at+"."+f.name] = true
	}
	for _, of := range types {
		for method := range reflect.PointerTo(of.name).Methods() {
			there[of.at+"."+of.name.Name()+"."+method.Name] = true
		}
	}
	for name := range exceptions {
		if !there[name] {
			t.Errorf("%s is an exception and not in package %s", name, path.Dir(name))
		}
	}
}
