// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/antiphon-go/antiphon/internal/apispec"
)

// kept is an event whose strings outlive the reader's buffer.
type kept struct {
	Type, ID, Data string
	Retry          time.Duration
	Unterminated   bool
}

func readAll(r io.Reader, opts Options) ([]kept, error) {
	var list []kept
	for rd := NewReader(r, opts); ; {
		ev, err := rd.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, kept{string(ev.Type), string(ev.ID), string(ev.Data), ev.Retry, ev.Unterminated})
	}
}

// plain is the standard's text, line by line, over the whole stream: slow,
// obvious, and what the Reader is compared with.
func plain(stream string) []kept {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var list []kept
	var typ, id, data string
	var retry time.Duration
	lines := strings.Split(stream, "\n")
	for _, line := range lines[:len(lines)-1] { // the last has no end
		if line == "" {
			if data != "" {
				list = append(list, kept{typ, id, strings.TrimSuffix(data, "\n"), retry, false})
			}
			typ, data = "", ""
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "data":
			data += value + "\n"
		case name == "event":
			typ = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			ms, err := strconv.ParseInt(value, 10, 64)
			if err == nil && ms <= 24*3600*1000 {
				retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return list
}

// terminated drops a last event that the standard would drop.
func terminated(list []kept) []kept {
	return slices.DeleteFunc(list, func(k kept) bool { return k.Unterminated })
}

// cut gives the stream in pieces of the sizes that next draws.
type cut struct {
	rest []byte
	next func() int
}

func (c *cut) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), max(1, c.next()))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// S1
func TestReader(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []kept
	}{
		{"empty", "", nil},
		{"one event", "event: a\ndata: x\n\n", []kept{{Type: "a", Data: "x"}}},
		{"no space after the colon", "event:a\ndata:x\n\n", []kept{{Type: "a", Data: "x"}}},
		{"only one space is dropped", "data:  x \n\n", []kept{{Data: " x "}}},
		{"CRLF", "event: a\r\ndata: x\r\n\r\ndata: y\r\n\r\n", []kept{{Type: "a", Data: "x"}, {Data: "y"}}},
		{"CR", "event: a\rdata: x\r\rdata: y\r\r", []kept{{Type: "a", Data: "x"}, {Data: "y"}}},
		{"line ends mixed", "data: x\r\ndata: y\rdata: z\n\r", []kept{{Data: "x\ny\nz"}}},
		{"CR LF is one line end", "data: x\r\n\ndata: y\n\n", []kept{{Data: "x"}, {Data: "y"}}},
		{"byte order mark", "\ufeffdata: x\n\n", []kept{{Data: "x"}}},
		{"second byte order mark is a field name", "\ufeff\ufeffdata: x\n\ndata: y\n\n", []kept{{Data: "y"}}},
		{"byte order mark and nothing else", "\ufeff", nil},
		{"comments", ": hi\n:\ndata: x\n: in between\ndata: y\n\n: end\n\n", []kept{{Data: "x\ny"}}},
		{"several data lines", "data: a\ndata:\ndata: c\n\n", []kept{{Data: "a\n\nc"}}},
		{"event between data lines", "data: a\nevent: long-name\ndata: b\n\n", []kept{{Type: "long-name", Data: "a\nb"}}},
		{"last event field wins", "event: a\nevent: b\ndata: x\n\n", []kept{{Type: "b", Data: "x"}}},
		{"empty data is data", "data:\n\ndata\n\n", []kept{{}, {}}},
		{"two empty data lines", "data\ndata\n\n", []kept{{Data: "\n"}}},
		{"event without data is none", "event: a\n\ndata: x\n\n", []kept{{Data: "x"}}},
		{"id stays", "id: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n", []kept{{ID: "1", Data: "x"}, {ID: "1", Data: "y"}, {Data: "z"}}},
		{"id with NUL is ignored", "id: 1\nid: 2\x00\ndata: x\n\n", []kept{{ID: "1", Data: "x"}}},
		{"retry", "retry: 1500\ndata: x\n\nretry: 1.5\nretry: \nretry: -1\ndata: y\n\n", []kept{{Data: "x", Retry: 1500 * time.Millisecond}, {Data: "y", Retry: 1500 * time.Millisecond}}},
		{"unknown fields", "dat: no\ndatax: no\nData: no\n data: no\ndata: x\n\n", []kept{{Data: "x"}}},
		{"colon in the value", "data: {\"a\": \"b:c\"}\n\n", []kept{{Data: `{"a": "b:c"}`}}},
		{"blank lines", "\n\n\r\n\r\rdata: x\n\n\n", []kept{{Data: "x"}}},
		{"no blank line at the end", "data: x\n\ndata: y\n", []kept{{Data: "x"}, {Data: "y", Unterminated: true}}},
		{"no newline at the end", "event: a\ndata: x", []kept{{Type: "a", Data: "x", Unterminated: true}}},
		{"cut in a further data line", "data: x\ndata: y", []kept{{Data: "x\ny", Unterminated: true}}},
		{"cut in a field name", "data: x\n\nda", []kept{{Data: "x"}}},
		{"invalid UTF-8 is left as it is", "data: \xff\xfe\n\n", []kept{{Data: "\xff\xfe"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"at once":         strings.NewReader(tt.stream),
				"byte by byte":    iotest.OneByteReader(strings.NewReader(tt.stream)),
				"data with error": iotest.DataErrReader(strings.NewReader(tt.stream)),
			}
			for how, r := range readers {
				got, err := readAll(r, Options{})
				if err != nil {
					t.Errorf("%s: %v", how, err)
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", how, d)
				}
			}
		})
	}
}

// An event is there with the byte that ends it, not with the byte after it.
func TestReaderDoesNotWait(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n", "\r\n\r"} {
		src, dst := io.Pipe()
		go dst.Write([]byte("data: x" + end))
		ev, err := NewReader(src, Options{}).Next()
		if err != nil || string(ev.Data) != "x" {
			t.Errorf("%q: got %q, %v", end, ev.Data, err)
		}
		src.Close()
	}
}

func TestReaderLimit(t *testing.T) {
	const limit = 100
	line := "data: " + strings.Repeat("x", limit-len("data: "))
	tests := []struct {
		name, stream string
		events       int
		tooLarge     bool
	}{
		{"a line at the limit", line + "\n\n", 1, false},
		{"a line above it", "data: ok\n\n" + line + "x\n\n", 1, true},
		{"a line above it without end", "data: ok\n\n" + strings.Repeat("x", limit+1), 1, true},
		{"many data lines", "data: ok\n\n" + strings.Repeat("data: 123456789\n", 11) + "\n", 1, true},
		{"many events", strings.Repeat("data: 123456789\n\n", 1000), 1000, false},
		{"comments do not count", strings.Repeat(": 123456789\n", 1000) + "data: x\n\n", 1, false},
		{"comments inside an event do not count", "data: x\n" + strings.Repeat(": 123456789\n", 10000) + "data: y\n\n", 1, false},
	}
	for _, tt := range tests {
		for how, r := range map[string]io.Reader{
			"at once":      strings.NewReader(tt.stream),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream)),
		} {
			rd := NewReader(r, Options{MaxEvent: limit})
			n := 0
			var err error
			for err == nil {
				if _, err = rd.Next(); err == nil {
					n++
				}
			}
			var tooLarge *TooLargeError
			if n != tt.events || errors.As(err, &tooLarge) != tt.tooLarge {
				t.Errorf("%s, %s: %d events, then %v", tt.name, how, n, err)
			}
			if _, again := rd.Next(); again != err {
				t.Errorf("%s, %s: error %v did not stick: %v", tt.name, how, err, again)
			}
			most := FirstBuffer
			if how == "at once" {
				most = fastBuffer
			}
			if len(rd.buf) > most {
				t.Errorf("%s, %s: buffer grew to %d bytes", tt.name, how, len(rd.buf))
			}
		}
	}
}

func TestReaderLargeEvent(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	stream := "data: a\n\ndata: " + big + "\n\ndata: " + big + "\ndata: b\n\ndata: c\n\n"
	got, err := readAll(iotest.HalfReader(strings.NewReader(stream)), Options{})
	want := []kept{{Data: "a"}, {Data: big}, {Data: big + "\nb"}, {Data: "c"}}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("wrong events, error %v", err)
	}
}

func TestReaderSourceError(t *testing.T) {
	broken := errors.New("broken")
	src := io.MultiReader(strings.NewReader("data: x\n\ndata: y"), iotest.ErrReader(broken))
	got, err := readAll(src, Options{})
	want := []kept{{Data: "x"}, {Data: "y", Unterminated: true}}
	if d := cmp.Diff(want, got); d != "" || !errors.Is(err, broken) {
		t.Errorf("error %v, events (-want +got):\n%s", err, d)
	}
	if _, err := readAll(idle{}, Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// S1, any chunk boundary; the events are the same, allocation aside.
func TestReaderChunks(t *testing.T) {
	stream := "\ufeffevent: a\r\ndata: x\r\n\r\n: c\rdata: y\rdata: z\r\rid: 7\nretry: 10\ndata: ä€𝄞\n\nevent: e\n\ndata\n\ndata: end"
	want, err := readAll(strings.NewReader(stream), Options{})
	if err != nil || len(want) != 5 {
		t.Fatalf("%d events, %v", len(want), err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		most := 1 + rnd.IntN(12)
		got, err := readAll(&cut{[]byte(stream), func() int { return 1 + rnd.IntN(most) }}, Options{})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Fatalf("error %v, events (-want +got):\n%s", err, d)
		}
	}
}

func TestReaderAllocations(t *testing.T) {
	one := "event: response.output_text.delta\ndata: {\"delta\":\"x\",\"sequence_number\":7}\n\n"
	endless := &cut{next: func() int { return 1000 }}
	rd := NewReader(endless, Options{})
	stream := []byte(strings.Repeat(one, 100))
	read := func() {
		endless.rest = stream
		for range 100 {
			if _, err := rd.Next(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations in 100 events, want none", n)
	}
}

// S1: recorded streams, whole, byte by byte and in random pieces.
func TestReaderCorpus(t *testing.T) {
	files := corpus(t, "streams/*.sse", "streams_rewrapped/*.sse", "chat_completions/streams/*.sse")
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := plain(string(raw))
		readers := map[string]io.Reader{
			"at once":   bytes.NewReader(raw),
			"in pieces": &cut{raw, func() int { return rnd.IntN(3000) }},
		}
		if len(raw) < 16<<10 { // the large ones take long so
			readers["byte by byte"] = iotest.OneByteReader(bytes.NewReader(raw))
		}
		for how, r := range readers {
			got, err := readAll(r, Options{})
			if err != nil || !cmp.Equal(want, terminated(got), cmpopts.EquateEmpty()) {
				t.Errorf("%s, %s: %d events, want %d; error %v", filepath.Base(file), how, len(got), len(want), err)
			}
		}
	}
	t.Logf("%d streams", len(files))
}

// corpus lists recorded files.
func corpus(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), filepath.FromSlash(p)))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files match %s: %v", p, err)
		}
		files = append(files, found...)
	}
	return files
}

// S1
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"data: x\n\n", "\ufeffdata:x\r\n\r\n", "data: a\rdata: b\r\r", ":c\n\nevent: e\ndata\n\n",
		"id: 1\x00\nid: 2\nretry: 007\ndata: \n\n", "data: a\nevent: long\ndata: b\n\n", "data", "data\n", "data: x\r\n\n\rdata",
		"retry: 99999999999999999999\ndata: x\n\n", "\ufeff\ufeff", "data: \xff\n\n",
	} {
		f.Add([]byte(s), uint64(len(s)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		got, err := readAll(&cut{stream, func() int { return 1 + rnd.IntN(8) }}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(plain(string(stream)), terminated(got), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("plain parser and Reader differ (-plain +Reader):\n%s", d)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	one := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" word\",\"logprobs\":[]}\n\n"
	stream := []byte(strings.Repeat(one, 1000))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		rd := NewReader(bytes.NewReader(stream), Options{})
		for {
			if _, err := rd.Next(); err != nil {
				break
			}
		}
	}
}

// S1: a reader that begins with what was read already gives the events that the
// whole stream has, wherever it is cut, and so does one that is used again.
func TestReaderReset(t *testing.T) {
	const stream = "\xef\xbb\xbfevent: a\r\ndata: one\r\n\r\ndata: two\ndata: three\n\nid: 5\ndata: four\n\n"
	want, err := readAll(strings.NewReader(stream), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rd Reader
	buf := make([]byte, 64)
	for cut := range len(stream) + 1 {
		n := copy(buf, stream[:min(cut, len(buf))])
		rd.Reset(strings.NewReader(stream[n:]), buf, n, Options{})
		for i := 0; ; i++ {
			ev, err := rd.Next()
			if err == io.EOF && i == len(want) {
				break
			}
			if err != nil || i >= len(want) || string(ev.Data) != want[i].Data || string(ev.Type) != want[i].Type {
				t.Fatalf("cut at %d: event %d is %q %q, %v", cut, i, ev.Type, ev.Data, err)
			}
		}
	}
}
