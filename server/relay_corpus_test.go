// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/server"
)

// Recorded streams with all their events pass byte for byte, between the events about the
// response, and each of them once. Only what the schema requires is added. W7 W8
func TestRelayRecorded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), "streams", "*.sse"))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, file := range files {
		in := eventsOf(t, file)
		if !inOrder(in) {
			continue
		}
		whole++
		var out []api.Event
		w := server.NewWriter(api.Response{ID: "resp_1"}, func(ev api.Event) error {
			out = append(out, ev)
			return nil
		})
		for _, ev := range in {
			if err := w.Relay(ev); err != nil {
				t.Errorf("%s: %v: %s", filepath.Base(file), err, ev.JSON())
			}
		}
		if got, want := inside(out), inside(in); len(got) != len(want) {
			t.Errorf("%s: %d events became %d", filepath.Base(file), len(want), len(got))
		} else {
			for i := range want {
				if got[i] != want[i] && got[i] != strings.TrimSuffix(want[i], "}")+`,"logprobs":[]}` {
					t.Errorf("%s:\n%s\nbecame\n%s", filepath.Base(file), want[i], got[i])
				}
			}
		}
	}
	if whole == 0 {
		t.Fatal("no recorded stream has all events")
	}
	t.Log(whole, "of", len(files), "streams have all events")
}

// eventsOf reads a recorded stream.
func eventsOf(t *testing.T, file string) (list []api.Event) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := sse.NewReader(bytes.NewReader(text), sse.Options{})
	for {
		ev, err := r.Next()
		if err != nil {
			return list
		}
		if string(ev.Data) == "[DONE]" {
			continue
		}
		parsed, err := api.ParseEvent(bytes.Clone(ev.Data))
		if err != nil {
			return nil
		}
		list = append(list, parsed)
	}
}

// inOrder reports whether a stream begins and ends as the API says, with numbers from 0,
// and so do its items.
func inOrder(list []api.Event) bool {
	open := 0
	for i, ev := range list {
		if ev.SequenceNumber != int64(i) {
			return false
		}
		switch ev.Type {
		case api.EventItemAdded:
			open++
		case api.EventItemDone:
			open--
		}
	}
	return open == 0 && len(list) > 3 && list[0].Type == api.EventCreated && list[1].Type == api.EventInProgress && list[len(list)-1].Terminal()
}

// inside returns the events that are not about the response.
func inside(list []api.Event) (all []string) {
	for _, ev := range list {
		switch ev.Type {
		case api.EventCreated, api.EventInProgress, api.EventQueued, api.EventCompleted, api.EventIncomplete, api.EventFailed, api.EventCancelled, api.EventError:
		default:
			all = append(all, ev.JSON())
		}
	}
	return all
}
