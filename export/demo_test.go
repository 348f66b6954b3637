// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

const tides = "high water, minutes after midnight\n06:12  berth A\n18:40  berth B\n\nThe crossing takes 35 minutes.\n"

const plan = "def departures(tides):\n    \"\"\"Departures, in minutes after midnight.\"\"\"\n    crossing = 25\n    return [t - crossing for t in tides]\n"

// picture draws a chart: waves under a sky.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			line := float64(height) * (.5 + .12*math.Sin(float64(x)/37) + .05*math.Sin(float64(x)/11))
			c := color.NRGBA{250, 240, 221, 255}
			if d := (float64(y) - line) / float64(height); d > 0 {
				c = color.NRGBA{uint8(120 - 140*d), uint8(165 - 130*d), uint8(205 - 90*d), 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func dataURI(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// demo runs a conversation with a bit of everything against the rehearsal model,
// and returns it as a page.
func demo(t testing.TB) export.Log {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"tides.txt": []byte(tides), "plan.py": []byte(plan), "chart.png": picture(t, 640, 240)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := toolkit.Open(toolkit.Root{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	var store session.Memory
	s, err := session.Open(t.Context(), &store, "ferry")
	if err != nil {
		t.Fatal(err)
	}
	a := demoAgent(t, files)
	ask, err := item.UserParts(&item.InputText{Text: "Check the ferry's plan against the tides, and correct it.\nThe chart is the one in the harbour office:"},
		&item.InputImage{ImageURL: dataURI("image/png", picture(t, 640, 240))})
	if err != nil {
		t.Fatal(err)
	}
	system := item.System("You plan the crossings of a small ferry. Look at the tables before you speak of them, and change only what they do not support.")
	if _, err := a.Run(t.Context(), s, system, ask); err != nil {
		t.Fatal(err)
	}
	afterwards(t, s)
	nested := func(id string) ([]session.Entry, error) {
		inner, err := session.Open(context.Background(), &store, id)
		if err != nil {
			return nil, err
		}
		return timed(inner.Log()), nil
	}
	info := session.Info{ID: "0b6f5d", Name: "ferry", Path: "/home/ada/harbour/ferry.md", Title: "Check the ferry's plan against the tides, and correct it."}
	return export.Log{Info: info, Entries: timed(s.Log()), Nested: nested}
}

func demoAgent(t testing.TB, files *toolkit.Files) *agent.Agent {
	t.Helper()
	byName := func(name string) tool.Tool {
		one, err := toolkit.New(name, toolkit.Deps{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	master := &agent.Agent{Model: rehearse(t, "testdata/master.script"), Tools: []tool.Tool{byName("read_file")}}
	master.Request.Model, master.Prices = "rehearsal", demoPrices
	nested, err := agent.AsTool("harbour_master", "Checks departures.", master)
	if err != nil {
		t.Fatal(err)
	}
	type paths struct {
		Paths     []string `json:"paths"`
		Recursive bool     `json:"recursive"`
	}
	remove := tool.Must("remove_files", "Removes files.", func(context.Context, paths) (string, error) {
		return "", errors.New("never called")
	})
	a := &agent.Agent{
		Model: rehearse(t, "testdata/demo.script"),
		Tools: []tool.Tool{byName("read_file"), byName("import_image"), byName("apply_patch"), nested, remove},
		Policy: agent.Policy{Allow: []string{"apply_patch", "harbour_master"}, Ask: []string{"remove_files"}, Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
			return agent.Decision{By: "Ada", Reason: "the archive needs them until March"}, nil
		}},
		Prices: demoPrices,
	}
	a.Request.Model = "rehearsal"
	a.Limits.MaxCost = 1
	return a
}

func rehearse(t testing.TB, file string) *responses.Client {
	t.Helper()
	script, err := rehearsal.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return &responses.Client{BaseURL: url}
}

// afterwards adds what a rehearsal does not come to: a compaction, a file, a
// call that a crash interrupted, a reply that broke off.
func afterwards(t testing.TB, s *session.Session) {
	t.Helper()
	more, err := item.UserParts(&item.InputText{Text: "And in winter? The notes of the last one are in the file."},
		&item.InputFile{Filename: "winter notes.txt", FileData: dataURI("text/plain", []byte("From November on, one crossing a day.\n"))})
	if err != nil {
		t.Fatal(err)
	}
	note, err := item.New(&item.Message{Role: item.RoleAssistant, Content: item.Text("evaluation: 4 of 5 checks passed")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Append(t.Context(),
		session.Compacted{Through: 12, By: session.BySummary, Before: 48200, After: 2150, Usage: &api.Usage{InputTokens: 48200, OutputTokens: 900, TotalTokens: 49100}, Cost: .0123,
			Items: []item.Item{item.User("*Summary of the conversation so far.* The crossing takes 35 minutes; `plan.py` was corrected.")}},
		session.Note{Item: note},
		session.RunStarted{},
		session.InputItem{Item: more},
		session.TurnStarted{Turn: 8},
		session.OutputItem{Turn: 8, Item: item.Call("call_weather", "weather", `{"place":{"name":"Bergen","at":[60.39,5.32]},"days":3,"units":"metric","unicode":"\u202eevil"}`)},
		session.TurnEnded{Turn: 8, Status: item.StatusCompleted, ResponseID: "resp_8", Usage: &api.Usage{InputTokens: 3100, InputDetails: &api.InputTokensDetails{CachedTokens: 2048}, OutputTokens: 41, TotalTokens: 3141}, Cost: .0041},
		session.CallStarted{CallID: "call_weather"},
		session.RunStarted{},
		session.CallOutput{CallID: "call_weather", Failed: true, Item: output(t, "call_weather", "The program stopped while this call was running. Whether it took effect is not known.")},
		session.TurnStarted{Turn: 9},
		session.OutputItem{Turn: 9, Partial: true, Item: item.Assistant("In winter the ferry crosses once a day. The winter table begins on the")},
		session.TurnEnded{Turn: 9, Status: item.StatusFailed, Reason: "the connection was lost"},
		session.Stopped{Why: "cancelled", Detail: "interrupted by a signal"},
	)
	if err != nil {
		t.Fatal(err)
	}
}

func output(t testing.TB, callID, text string) item.Item {
	t.Helper()
	out, err := item.Output(callID, item.Text(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// timed gives entries times, as stores that keep them do.
func timed(log []session.Entry) []session.Entry {
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	out := make([]session.Entry, len(log))
	for i, e := range log {
		at = at.Add(time.Duration(40+i*i*37%2900) * time.Millisecond)
		e.Time = at
		out[i] = e
	}
	return out
}

func demoPrices(string) (agent.Price, bool) {
	return agent.Price{Input: 2, Cached: .5, Output: 8}, true
}
