// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
)

const tourDir = "../examples/tour"

// run is the simplest loop there is: ask, run the calls, ask again. It returns
// each turn as its calls, or its text.
func run(t *testing.T, c *responses.Client, set *tool.Set, req *api.Request) (turns []string) {
	t.Helper()
	for range 10 {
		var acc api.Accumulator
		for e, err := range c.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := acc.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		r, _ := acc.Response()
		req.Input.Append(r.Output...)
		var made []string
		for _, it := range r.Output {
			if call, err := item.As[item.FunctionCall](it); err == nil {
				made = append(made, call.Name+" "+call.Arguments)
				o := set.Invoke(t.Context(), tool.Call{ID: call.CallID, Name: call.Name, Arguments: call.Arguments}, output.Policy{})
				out, err := item.Output(call.CallID, o.Content)
				if err != nil {
					t.Fatal(err)
				}
				req.Input.Append(out)
			}
		}
		if len(made) == 0 {
			return append(turns, r.Text())
		}
		turns = append(turns, strings.Join(made, "; "))
	}
	t.Fatal("no end")
	return nil
}

func tour(t *testing.T) (*responses.Client, *tool.Set, *api.Request) {
	t.Helper()
	script, err := rehearsal.Load(filepath.Join(tourDir, "tour.script"))
	if err != nil {
		t.Fatal(err)
	}
	base, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	files, err := toolkit.Open(toolkit.Root{Name: "tour", Path: tourDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	var tools []tool.Tool
	var defs []item.Tool
	for _, name := range []string{"read_file", "import_image", "read_directory", "append_to_file"} {
		tl, err := toolkit.New(name, toolkit.Deps{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		tools, defs = append(tools, tl), append(defs, tl.Definition())
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	programme, picture := read(t, "programme.txt"), read(t, "waves.png")
	img, err := output.Image([]byte(picture))
	if err != nil {
		t.Fatal(err)
	}
	user, err := item.UserParts(&item.InputText{Text: "This is the programme:\n\n" + programme}, img, &item.InputText{Text: "\nRead two-choirs.txt, look at waves.png yourself, and tell me what reached you."})
	if err != nil {
		t.Fatal(err)
	}
	return &responses.Client{BaseURL: base}, set, &api.Request{Model: "rehearsal:tour.script", Input: item.NewList(user), Tools: defs}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(tourDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The tour, over a socket, through the client and with the built-in tools:
// what the answer says is what the files hold.
func TestTour(t *testing.T) {
	client, set, req := tour(t)
	turns := run(t, client, set, req)
	want := []string{
		`read_file {"path": "two-choirs.txt"}`,
		`import_image {"path": "waves.png"}`,
		`read_directory {"path": "."}; read_file {"path": "two-choirs.txt", "offset": 3, "limit": 2}`,
		`read_file {"path": "two-chairs.txt"}`,
		`listen {"path": "waves.png", "seconds": 4}`,
	}
	if d := cmp.Diff(want, turns[:len(turns)-1]); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	answer, text, picture := turns[len(turns)-1], strings.Split(read(t, "two-choirs.txt"), "\n"), read(t, "waves.png")
	entries, err := os.ReadDir(tourDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range []string{
		fmt.Sprintf("%d lines and begins:\n  %q", len(text)-1, text[0]),
		fmt.Sprintf("%q", text[2]),
		fmt.Sprintf("image/png, %d bytes, with the SHA-256\n  %x\n", len(picture), sha256.Sum256([]byte(picture))),
		"and it is byte for byte the picture in your message",
		strings.Split(read(t, "programme.txt"), "\n")[3],
		fmt.Sprintf("holds %d entries", len(entries)),
		"no such file or directory: two-chairs.txt. Similar names there: two-choirs.txt",
		"listen", "read_file, import_image, read_directory, append_to_file",
	} {
		if !strings.Contains(answer, fact) {
			t.Errorf("the answer lacks %q:\n%s", fact, answer)
		}
	}
	if t.Failed() {
		return
	}
	t.Log(answer)

	// The conversation goes on.
	req.Input.Append(item.User("And now?"))
	turns = run(t, client, set, req)
	if len(turns) != 2 || !strings.Contains(turns[1], `You said: "And now?"`) || !strings.Contains(turns[1], text[11]) {
		t.Errorf("second message: %q", turns)
	}
}

// Whatever is asked, the tour plays to its end and says what its script cannot answer.
func TestTourWithAnotherQuestion(t *testing.T) {
	client, set, req := tour(t)
	req.Input.Append(item.User("What is the\nweather?"))
	turns := run(t, client, set, req)
	answer := turns[len(turns)-1]
	if len(turns) != 6 || !strings.Contains(answer, `ends: "weather?"`) || !strings.Contains(answer, "byte for byte the picture in your message") {
		t.Errorf("%d turns: %q", len(turns), answer)
	}
}

// scripted serves a script for the test, and returns the address.
func scripted(t *testing.T, text string) (base string) {
	t.Helper()
	script, err := rehearsal.Parse("x.script", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	base, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// E2: a mistake in a script is one request and a readable error, also when a tool showed an image,
// which another form of the request would carry in a message of the user.
func TestMistakeAfterImage(t *testing.T) {
	client, _, req := tour(t)
	base := scripted(t, "turn\n  call look\nturn\n  say {{output \"look\" 2}}\n")
	client.BaseURL = base
	r, err := client.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := output.Image([]byte(read(t, "waves.png")))
	if err != nil {
		t.Fatal(err)
	}
	call, err := item.As[item.FunctionCall](r.Output[0])
	if err != nil {
		t.Fatal(err)
	}
	shown, err := item.Output(call.CallID, item.Parts(picture))
	if err != nil {
		t.Fatal(err)
	}
	req.Input.Append(r.Output[0], shown)
	if r, err = client.Create(t.Context(), req); err == nil {
		t.Fatalf("another form of the request was answered: %q", r.Text())
	}
	if !strings.Contains(err.Error(), "x.script:4:9: say: no call 2 of look") {
		t.Error(err)
	}
}

// E2: a mistake in a script is one request and a readable error.
func TestClientReadsMistake(t *testing.T) {
	base := scripted(t, "turn\n  say {{output \"read_file\"}}\n")
	client := &responses.Client{BaseURL: base, OnRetry: func(err error, _ time.Duration, _ int) { t.Errorf("retried after %v", err) }}
	_, err := client.Create(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))})
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.BadRequest || !strings.Contains(err.Error(), "x.script:2:9: say: no call 1 of read_file") {
		t.Errorf("got %v", err)
	}
}

// S2 S8: stopping the server in mid-text is a stream that was cut.
func TestClientSeesCut(t *testing.T) {
	script, err := rehearsal.Parse("x.script", []byte("turn\n  say before\n  pause 10m\n  say after\n"))
	if err != nil {
		t.Fatal(err)
	}
	base, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var acc api.Accumulator
	var last error
	for e, err := range (&responses.Client{BaseURL: base}).Stream(context.Background(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))}) {
		if last = err; err != nil {
			break
		}
		if _, err := acc.Add(e); err != nil {
			t.Error(err)
		}
		if e.Delta == "before" {
			go stop()
		}
	}
	var e *endpoint.Error
	if !errors.As(last, &e) {
		t.Errorf("got %v", last)
	}
	if p := acc.Partial(); len(p) != 1 || !strings.Contains(p[0].JSON(), `"text":"before"`) {
		t.Errorf("partial items: %v", p)
	}
}

// L6: wherever the tour is interrupted, a later run goes on to the answer. What
// is kept is what was whole; calls that did not run are closed as failures.
func TestTourInterrupted(t *testing.T) {
	client, set, req := tour(t)
	start := req.Input
	for turn := range 6 {
		for kept := range 4 {
			if turn == 5 && kept > 0 {
				continue // the answer was whole
			}
			req.Input = start.Clone()
			for range turn {
				step(t, client, set, req, 99)
			}
			step(t, client, nil, req, kept)
			turns := run(t, client, set, req)
			if answer := turns[len(turns)-1]; !strings.Contains(answer, "I am a rehearsal") {
				t.Errorf("turn %d, %d items kept: %q", turn, kept, turns)
			}
		}
	}
}

// step asks once, keeps the first items of the reply, and answers the calls
// among them; without tools, as calls that did not run.
func step(t *testing.T, c *responses.Client, set *tool.Set, req *api.Request, keep int) {
	t.Helper()
	r, err := c.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	kept := r.Output[:min(keep, len(r.Output))]
	req.Input.Append(kept...)
	for _, it := range kept {
		if !it.IsCall() {
			continue
		}
		content := item.Text(output.Envelope(true, it.Name(), tool.NotStarted, ""))
		if set != nil {
			call, err := item.As[item.FunctionCall](it)
			if err != nil {
				t.Fatal(err)
			}
			content = set.Invoke(t.Context(), tool.Call{ID: call.CallID, Name: call.Name, Arguments: call.Arguments}, output.Policy{}).Content
		}
		out, err := item.Output(it.CallID(), content)
		if err != nil {
			t.Fatal(err)
		}
		req.Input.Append(out)
	}
}
