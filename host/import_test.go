// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// exported returns a session with messages in the form of an export.
func exported(t *testing.T, messages ...item.Item) string {
	t.Helper()
	log := export.Log{Info: session.Info{ID: "x", Name: "work"}}
	for i, it := range messages {
		log.Entries = append(log.Entries, session.Entry{Seq: int64(i + 1), Body: session.InputItem{Item: it}})
	}
	var text strings.Builder
	if err := export.JSONLines(&text, log); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func image(t *testing.T, address string) item.Item {
	t.Helper()
	it, err := item.UserParts(&item.InputImage{ImageURL: address})
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// swapped is a file that another program replaces when it has been read a few times.
type swapped struct {
	*strings.Reader
	times int
	by    string
}

func (s *swapped) Seek(offset int64, whence int) (int64, error) {
	if s.times--; s.times == 0 {
		s.Reset(s.by)
	}
	return s.Reader.Seek(offset, whence)
}

// K1: nothing of an import is in the store while its question is open, and what was asked about is what is
// imported, whatever the file is by then.
func TestImportAsksFirst(t *testing.T) {
	good, evil := exported(t, image(t, "https://good.example/x.png")), exported(t, image(t, "https://good.example/x.png"), image(t, "https://evil.example/x.png"))
	for name, c := range map[string]struct {
		file     io.ReadSeeker // or a transcript
		agrees   bool
		asks     int
		imported bool
	}{
		"no question":            {strings.NewReader(exported(t, item.User("hi"))), false, 0, true},
		"a yes":                  {strings.NewReader(good), true, 1, true},
		"a no":                   {strings.NewReader(good), false, 1, false},
		"a transcript":           {nil, true, 1, true},
		"a transcript, and a no": {nil, false, 1, false},
		"replaced after it":      {&swapped{strings.NewReader(good), 3, evil}, true, 1, false},
		"replaced before it":     {&swapped{strings.NewReader(exported(t, item.User("hi"))), 2, evil}, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			in, asked, agrees := new(memstore.DB).Open(memstore.Options{}), 0, c.agrees
			sessions := func() (n int) {
				for _, err := range in.List(t.Context(), session.Query{}) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				return n
			}
			how := host.Import{Store: in, Options: agentfile.Options{Consent: trust.Everything}, Consent: func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
				if asked++; sessions() > 0 {
					t.Error("a session is there before the answer")
				}
				if len(c.Powers) != 1 || c.Powers[0].What != "https://good.example" {
					t.Errorf("asked about %v", c.Powers)
				}
				if !agrees {
					return trust.Agreement{}, nil
				}
				return trust.Agreement{Powers: c.Powers}, nil
			}}
			var err error
			if c.file == nil {
				_, err = how.Transcript(t.Context(), "x.md", strings.NewReader(`<user>x<img src="https://good.example/x.png"/></user>`))
			} else {
				_, err = how.Lines(t.Context(), "x.jsonl", c.file)
			}
			if (err == nil) != c.imported || asked != c.asks || (sessions() == 1) != c.imported {
				t.Errorf("asked %d times, %d sessions, %v", asked, sessions(), err)
			}
		})
	}
}

// killedStore is one whose process dies when an import has made its session.
type killedStore struct{ *memstore.Store }

var errKilled = errors.New("killed")

func (killedStore) Append(context.Context, string, int64, []session.Entry) error { return errKilled }
func (killedStore) Delete(context.Context, string) error                         { return errKilled }

// What an import leaves that was killed says what it is; a session that was imported whole does not.
func TestKilledImportIsNamed(t *testing.T) {
	in := new(memstore.DB).Open(memstore.Options{})
	file := exported(t, item.User("hi"))
	if _, err := (host.Import{Store: killedStore{in}, Name: "talk"}).Lines(t.Context(), "x.jsonl", strings.NewReader(file)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if _, err := (host.Import{Store: in, Name: "talk"}).Lines(t.Context(), "x.jsonl", strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for info, err := range in.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(info.Name, info.Tags))
	}
	slices.Sort(got)
	if want := []string{"[" + host.UnfinishedImport + "]", "talk[]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// J13: a session keeps its tags, however many it may have.
func TestImportKeepsAllTags(t *testing.T) {
	in := new(memstore.DB).Open(memstore.Options{})
	var tags []string
	for i := range 33 {
		tags = append(tags, fmt.Sprintf("tag-%02d", i))
	}
	for _, n := range []int{0, 1, 31, 32, 33} {
		var text strings.Builder
		err := export.JSONLines(&text, export.Log{Info: session.Info{ID: "x", Tags: tags[:n]}, Entries: []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("hi")}}}})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("with-%d", n)
		_, err = (host.Import{Store: in, Name: name}).Lines(t.Context(), "x.jsonl", strings.NewReader(text.String()))
		if n > 32 {
			if !errors.Is(err, session.ErrBadLabel) {
				t.Errorf("%d tags: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for info, err := range in.List(t.Context(), session.Query{}) {
			if err != nil || info.Name == name && !slices.Equal(info.Tags, tags[:n]) {
				t.Errorf("%d tags: got %q, %v", n, info.Tags, err)
			}
		}
	}
	for info := range in.List(t.Context(), session.Query{}) {
		if info.Name == "" {
			t.Errorf("%s is left with %q", info.ID, info.Tags)
		}
	}
}

// J13 K5: what waits in a file has no key that a delivery of this program could have, later or now, and no sender: the log would
// state it as a fact. A delivery that the file has twice waits once.
func TestImportOfWhatWaitsClaimsNothing(t *testing.T) {
	keys := []string{session.OwnKey("decision about call 1"), session.OwnKey("nobody answered about call 1"), session.OwnKey("schedule daily 2026-11-30T00:00:00Z"), "an id of a chat", "an id of a chat"}
	log := export.Log{Info: session.Info{ID: "x"}, Entries: []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("go")}}}}
	log.Waiting = func(string) iter.Seq2[session.Delivery, error] {
		return func(yield func(session.Delivery, error) bool) {
			for _, key := range keys {
				head := session.Delivered{Key: key, By: "alice", From: "a terminal", Shown: "ab", Queued: true}
				if !yield(session.Delivery{Delivered: head, Bodies: []session.Body{session.InputItem{Item: item.User("words of " + key)}}}, nil) {
					return
				}
			}
		}
	}
	var text strings.Builder
	if err := export.JSONLines(&text, log); err != nil {
		t.Fatal(err)
	}
	in := new(memstore.DB).Open(memstore.Options{})
	made, err := host.Import{Store: in}.Lines(t.Context(), "there/x.jsonl", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d, err := range in.Deliveries(t.Context(), made.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; slices.Contains(keys, d.Key) || d.By != "" || d.From != `an import of "x.jsonl"` || d.Shown != "" || !d.Queued {
			t.Errorf("what waits now: %+v", d.Delivered)
		}
	}
	if n != len(keys)-1 {
		t.Errorf("%d deliveries wait", n)
	}
	if len(made.Dropped) != len(keys) || !strings.Contains(made.Dropped[0].What, `that "alice" sent`) {
		t.Errorf("it is not listed who the file says has sent it: %v", made.Dropped)
	}
	for _, key := range keys[:4] { // the program's own have their effect
		own := session.Delivery{Delivered: session.Delivered{Key: key}, Bodies: []session.Body{session.InputItem{Item: item.User("own words")}}}
		if _, err := in.Deliver(t.Context(), made.ID, own); err != nil {
			t.Errorf("a delivery with the key %q: %v", key, err)
		}
	}
}
