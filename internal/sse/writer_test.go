// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// S1
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, err := range []error{
		w.Event("a", []byte(`{"x":1}`)),
		w.Event("", nil),
		w.Event("b", []byte("one\ntwo\r\nthree\rfour\n")),
		w.Comment("alive\nstill"),
		w.Event("", []byte("[DONE]")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "event: a\ndata: {\"x\":1}\n\n" +
		"data: \n\n" +
		"event: b\ndata: one\ndata: two\ndata: three\ndata: four\ndata: \n\n" +
		": alive\n: still\n\n" +
		"data: [DONE]\n\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := w.Event("a\ndata: forged", nil); err == nil {
		t.Error("a line break in the type was accepted")
	}
}

type flusher struct {
	bytes.Buffer
	flushed int
	err     error
}

func (f *flusher) FlushError() error { f.flushed++; return f.err }

func TestWriterFlushes(t *testing.T) {
	f := new(flusher)
	if err := NewWriter(f).Event("", []byte("x")); err != nil || f.flushed != 1 {
		t.Errorf("error %v, %d flushes", err, f.flushed)
	}
	f.err = errors.New("gone")
	if err := NewWriter(f).Event("", []byte("x")); !errors.Is(err, f.err) {
		t.Errorf("error %v, want the flush's", err)
	}
}

// S1: what the Writer writes, the Reader reads.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a", []byte("x\ny"))
	f.Add("", []byte(""))
	f.Add("type", []byte("\r\n\r"))
	f.Fuzz(func(t *testing.T, typ string, data []byte) {
		var out bytes.Buffer
		if err := NewWriter(&out).Event(typ, data); err != nil {
			t.Skip("type with a line break")
		}
		want := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		got, err := readAll(&out, Options{})
		if err != nil || len(got) != 1 {
			t.Fatalf("%d events, %v", len(got), err)
		}
		if got[0].Type != typ || got[0].Data != string(want) || got[0].Unterminated {
			t.Errorf("got %+v, want type %q, data %q", got[0], typ, want)
		}
	})
}

// A stream that waits for its next event has no buffer, whatever it has sent, and no stream gets what
// another one holds back.
func TestWriterBuffers(t *testing.T) {
	var outs [4]bytes.Buffer
	var all sync.WaitGroup
	for i := range outs {
		all.Go(func() {
			w, text := NewWriter(&outs[i]), strings.Repeat(string(rune('a'+i)), 1000*(i+1))
			for range 200 {
				for range 3 {
					if _, err := w.Add("", text); err != nil {
						t.Error(err)
					}
				}
				if err := errors.Join(w.Flush(), w.Flush(), w.Comment("alive")); err != nil {
					t.Error(err)
				}
				if w.own != nil || w.buf != nil {
					t.Error("nothing waits, and there is a buffer")
				}
			}
		})
	}
	all.Wait()
	for i := range outs {
		text := strings.Repeat(string(rune('a'+i)), 1000*(i+1))
		want := strings.Repeat(strings.Repeat("data: "+text+"\n\n", 3)+": alive\n\n", 200)
		if outs[i].String() != want {
			t.Errorf("stream %d has other events than it was given", i)
		}
	}
}
