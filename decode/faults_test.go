// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool/picture"
)

// A fault is a decoder that somebody has taken over, or that has a mistake.
type fault struct {
	decoder func(request) answer
	want    []string // one of these is in the error
	time    time.Duration
	cpu     int // it needs a limit of the operating system
}

// write writes to the standard output of a decoder, where its answer goes.
func write(b []byte) { _, _ = os.Stdout.Write(b) }

// head is the beginning of an answer.
func head(kind byte, text, data uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{kind}, text), data)
}

var kept [][]byte

// raceMemory and raceSpace are how the race detector says that it gets no more memory.
const (
	raceMemory = "its decoder crashed: exit status 66"
	raceSpace  = "its decoder crashed: exit status 2: fatal error: too many address space collisions for -race mode"
)

// recursion fills the stack.
func recursion(n int) int {
	var a [1024]int
	a[n%1024] = n
	if n < 0 { // never
		return 0
	}
	return recursion(n+1) + a[n%7]
}

// faults are in the copy of this test that decodes, too: it has the decoders in its init.
var faults = map[string]fault{
	"memory in small pieces": {decoder: func(request) answer {
		for {
			kept = append(kept, bytes.Repeat([]byte{1}, 1<<20))
		}
	}, want: []string{"to decode it takes more than 128 MB of memory", raceMemory, raceSpace}},
	"memory in one piece": {decoder: func(request) answer {
		kept = append(kept, bytes.Repeat([]byte{1}, 1<<30))
		return answer{kind: unchanged}
	}, want: []string{"to decode it takes more than 128 MB of memory", raceMemory, raceSpace}},
	"a loop": {decoder: func(request) answer {
		for {
			if len(kept) == -1 {
				return answer{}
			}
		}
	}, want: []string{"to decode it takes more than 1 seconds of processor time"}, cpu: 1},
	"a wait": {decoder: func(request) answer { select {} }, want: []string{"it was not decoded within 2s"}, time: 2 * time.Second},

	"a panic":  {decoder: func(request) answer { panic("with\nsome \x1b[31m words") }, want: []string{"its decoder crashed: exit status 2: panic: with"}},
	"an exit":  {decoder: func(request) answer { os.Exit(7); return answer{} }, want: []string{"its decoder crashed: exit status 7"}},
	"no words": {decoder: func(request) answer { os.Exit(0); return answer{} }, want: []string{"its decoder crashed: exit status 0"}},
	"a wrong address": {decoder: func(request) answer {
		address := uintptr(0xdead0000)
		return answer{kind: **(**byte)(unsafe.Pointer(&address))}
	}, want: []string{"its decoder crashed: "}},
	"a full stack": {decoder: func(request) answer { return answer{kind: byte(recursion(0))} },
		want: []string{"to decode it takes more than 128 MB of memory", raceMemory, raceSpace}},

	"another kind":       {decoder: func(request) answer { return answer{kind: 'x'} }, want: []string{"the answer of its decoder is damaged"}},
	"data without words": {decoder: func(request) answer { return answer{kind: unchanged, data: []byte("x")} }, want: []string{"the answer of its decoder is damaged"}},
	"an empty error":     {decoder: func(request) answer { return answer{kind: refused} }, want: []string{"the answer of its decoder is damaged"}},
	"garbage":            {decoder: func(request) answer { write(bytes.Repeat([]byte{0xa5}, 1000)); return answer{} }, want: []string{"the answer of its decoder is damaged"}},
	"half an answer": {decoder: func(request) answer { write(append(head(changed, 1, 500), "abc"...)); os.Exit(0); return answer{} },
		want: []string{"its decoder crashed: exit status 0"}},
	"too much": {decoder: func(request) answer { return answer{kind: changed, data: make([]byte, 1001)} }, want: []string{"the answer of its decoder is too long"}},
	"far too much": {decoder: func(request) answer { write(head(changed, 0, 0xffffffff)); return answer{} },
		want: []string{"the answer of its decoder is too long"}},
	"many words":  {decoder: func(request) answer { write(head(unchanged, 0xffffffff, 0)); return answer{} }, want: []string{"the answer of its decoder is too long"}},
	"one more":    {decoder: func(request) answer { write(append(head(unchanged, 0, 0), 0)); return answer{} }, want: []string{"the answer of its decoder is too long"}},
	"without end": {decoder: func(request) answer { write(head(unchanged, 0, 0)); endless(os.Stdout); return answer{} }, want: []string{"the answer of its decoder is too long"}},
	"many errors": {decoder: func(request) answer { endless(os.Stderr); return answer{} }, want: []string{"the answer of its decoder is too long"}},
}

func endless(to *os.File) {
	for {
		if _, err := to.Write(make([]byte, 1<<16)); err != nil {
			os.Exit(0)
		}
	}
}

// A reach is an attempt of a decoder to do more than decode.
var reaches = map[string]func() error{
	"read a file":   func() error { _, err := os.ReadFile("/etc/passwd"); return err },
	"write a file":  func() error { return os.WriteFile("/tmp/antiphon-decode-test", []byte("x"), 0o600) },
	"list a folder": func() error { _, err := os.ReadDir("/"); return err },
	"read itself":   func() error { _, err := os.ReadFile("/proc/self/environ"); return err },
	"connect":       func() error { _, err := new(net.Dialer).Dial("tcp", "127.0.0.1:1"); return notRefusedByPeer(err) },
	"listen": func() error {
		_, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		return err
	},
	"run a program":  func() error { return exec.Command("/bin/true").Run() },
	"start itself":   func() error { _, err := os.StartProcess("/proc/self/exe", nil, &os.ProcAttr{}); return err },
	"find a process": func() error { _, err := os.ReadDir("/proc"); return err },
}

// notRefusedByPeer returns nil if there was a connection to a port where nobody listens.
func notRefusedByPeer(err error) error {
	if err != nil && strings.Contains(err.Error(), "refused") {
		return nil
	}
	return err
}

const (
	kindReach  = '!'
	firstFault = 0x80
)

var faultNames = slices.Sorted(func(yield func(string) bool) {
	for name := range faults {
		if !yield(name) {
			return
		}
	}
})

var _ = func() bool {
	for i, name := range faultNames {
		decoders[byte(firstFault+i)] = faults[name].decoder
	}
	decoders[kindReach] = func(r request) answer {
		if err := reaches[string(r.data)](); err != nil {
			return answer{kind: refused, text: err.Error()}
		}
		return answer{kind: unchanged}
	}
	return true
}()

// aloneAgain proves that nothing is left of a decoding.
func aloneAgain(t *testing.T, temp string) {
	t.Helper()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
	noChildren(t)
}

// A10: whatever a decoder does is one error for the file, and nothing is left of it.
func TestFaults(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, name := range faultNames {
		f := faults[name]
		t.Run(name, func(t *testing.T) {
			if f.cpu > 0 && runtime.GOOS != "linux" {
				t.Skip("no limit of processor time is proved here")
			}
			j := job{what: "it", request: request{kind: byte(firstFault + i), data: make([]byte, 300_000)},
				limits: limits{memory: 128 << 20, cpu: cmp.Or(f.cpu, 600), time: cmp.Or(f.time, time.Hour), answer: 1000}}
			a, err := j.run(context.Background())
			if err == nil {
				t.Fatalf("%+v", a)
			}
			if !slices.ContainsFunc(f.want, func(want string) bool { return strings.HasPrefix(err.Error(), "it was not read: "+want) }) {
				t.Errorf("%q, want %q", err, f.want)
			}
			if strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 500 {
				t.Errorf("%q", err)
			}
			aloneAgain(t, temp)
		})
	}
	if runtime.ReadMemStats(&after); after.Sys-before.Sys > 64<<20 {
		t.Errorf("%d MiB were taken", (after.Sys-before.Sys)>>20)
	}
}

// A10: a decoder reaches no file, no network and no process.
func TestReaches(t *testing.T) {
	if !sandbox.Available().Has(sandbox.Seccomp) {
		t.Skip("this system cannot filter system calls")
	}
	for name := range reaches {
		j := job{what: "it", request: request{kind: kindReach, data: []byte(name)}, limits: limits{memory: 128 << 20, cpu: 10, time: time.Hour}}
		if _, err := j.run(context.Background()); err == nil || !strings.Contains(err.Error(), "operation not permitted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A10: the end of a context ends a decoder, and is the error.
func TestCanceled(t *testing.T) {
	gone := errors.New("not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	j := job{what: "it", request: request{kind: byte(firstFault + slices.Index(faultNames, "a wait"))}, limits: limits{memory: 128 << 20, cpu: 10, time: time.Hour}}
	c, err := start(j.limits)
	if err != nil {
		t.Fatal(err)
	}
	// A child whose parent has ended, and so has closed its input, ends.
	asked := make(chan error)
	go func() {
		_, _, err := c.ask(j.request, 0)
		asked <- err
	}()
	<-c.fed
	_ = c.in.Close()
	if err := <-asked; err == nil {
		t.Error("an answer")
	}
	if e := c.wait(); e.code != exitAlone {
		t.Errorf("%+v", e)
	}

	started := make(chan struct{})
	go func() {
		<-started
		cancel(gone)
	}()
	close(started)
	if _, err := j.run(ctx); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := j.run(ctx); !errors.Is(err, gone) {
		t.Error(err)
	}
	noChildren(t)
}

// A10: a program that cannot start itself says so, and does not decode in the process itself.
func TestNotStarted(t *testing.T) {
	j := job{what: "it", request: request{kind: kindImage}, limits: limits{memory: -1, cpu: 10, time: time.Hour}}
	if _, err := j.run(t.Context()); err == nil || err.Error() != "it was not read: the process that decodes it did not start: exit status 84: the limits of a decoder are wrong" {
		t.Error(err)
	}
}

// FuzzAnswer proves that an answer is read within its limits, whatever it is.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("u\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("c\x00\x00\x00\x01\x00\x00\x00\x02abc"))
	f.Add([]byte("r\x00\x00\x00\x03\x00\x00\x00\x00\x1b\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 100
		a, err := readAnswer(bytes.NewReader(data), most)
		if err != nil {
			return
		}
		if len(a.data) > most || strings.ContainsAny(a.text, "\x1b\n") {
			t.Errorf("%q", a)
		}
		var b bytes.Buffer
		if err := a.write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := readAnswer(&b, most); err != nil || fmt.Sprint(again) != fmt.Sprint(a) {
			t.Errorf("%q, then %q, %v", a, again, err)
		}
	})
}

// T10, A10: images that are made to hurt are errors that say what is wrong, before they are
// decoded where their headers tell.
func TestHostileImages(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for name, data := range hostileImages(t) {
		fit, note, err := Images{}.Fit(data)
		want, wantNote, wantErr := picture.Limits{}.Fit(data)
		if wantErr == nil && name != "tiny" {
			t.Errorf("%s: no error", name)
		}
		if !bytes.Equal(fit, want) || note != wantNote || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %d bytes, %q, %v; want %d, %q, %v", name, len(fit), note, err, len(want), wantNote, wantErr)
		}
	}
	aloneAgain(t, temp)
}
