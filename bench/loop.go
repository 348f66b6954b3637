// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// fileText is the output of the tool in the loops.
var fileText = strings.Repeat("A line of a file.\n", 20)

const (
	benchKey = "sk-bench-0123456789"
	bareHTTP = "net/http alone"
)

// way is a connection between the client of a loop and its server.
type way struct {
	name   string
	client func() (web *http.Client, base string, err error)
	usual  bool // the clients need no configuration
	gated  bool
}

var (
	plainHTTP = way{"over a socket", overHTTP, true, true}
	overTLS   = way{"over TLS, HTTP/1.1", func() (*http.Client, string, error) { return overHTTPS(false) }, false, false}
	overTLS2  = way{"over TLS, as negotiated", func() (*http.Client, string, error) { return overHTTPS(true) }, false, false}
)

// wired is a way with its connections. The libraries of a row share them, unless the
// clients need no configuration: then each library uses its default client. In that
// case ours is nil, which selects Antiphon's own, and web is configured like
// net/http's own.
type wired struct {
	web, ours *http.Client
	base      string
}

// wired connects the clients.
func (w way) wired() (wired, error) {
	web, base, err := w.client()
	own := web
	if w.usual {
		own = nil
	}
	return wired{web, own, base}, err
}

const (
	openaiGo = "openai-go"
	jsSDK    = "Agents SDK for JavaScript"
)

// loopRow runs a conversation in which the model calls a tool in each turn. The
// server is another process, so that its processor time is not counted.
func loopRow(turns int, over way) row {
	connect := sync.OnceValues(over.wired)
	with := func(loop func(wired) (int, error)) func() (int, error) {
		return func() (int, error) {
			w, err := connect()
			if err != nil {
				return 0, err
			}
			return loop(w)
		}
	}
	r := row{
		name: fmt.Sprintf("loop of %d turns %s", turns, over.name), unit: "turn", units: turns, bytes: len(bareTurn()) * turns * (turns - 1) / 2, maxAllocs: -1,
		libs: []lib{
			{"antiphon", with(func(w wired) (int, error) { return ourLoop(w, turns, fileTool(func() {})) })},
			{openaiGo, with(func(w wired) (int, error) { return theirLoop(w, turns) })},
			{bareHTTP, with(func(w wired) (int, error) { return bareLoop(w, turns) })},
		},
	}
	if !over.gated {
		return r
	}
	if hasNode() {
		r.addApart(jsSDK, agentsJS, "/loop")
		r.note = func() string {
			return "The Agents SDK (" + versionJS() + ") runs in a process of its own and says how much of it was the loop."
		}
	}
	if turns == 200 {
		r.gate, r.goal = 6, 10
		r.bars = loopBars(turns)
	}
	return r
}

// loopBars returns the gates of the loop.
func loopBars(turns int) []bar {
	bars := []bar{
		most("ours of net/http alone", func(r result) float64 { return 1 / r.of(bareHTTP) }, 1.6, 1.25),
		most("allocations a turn at the start", func(result) float64 { return loopAllocs().first }, 200, 120),
		most(fmt.Sprintf("at turn %d", turns), func(result) float64 { return loopAllocs().last }, 200, 120),
		most("the one by the other", func(result) float64 { return loopAllocs().last / loopAllocs().first }, 1.1, 1.05),
	}
	if hasNode() {
		bars = append(bars, least("against the Agents SDK for JavaScript", func(r result) float64 { return r.of(jsSDK) }, 20, 40))
	}
	return bars
}

// fileInput is the input of the tool.
type fileInput struct {
	Path string `json:"path"`
}

// fileTool returns a tool that always returns the same text. It calls called first.
func fileTool(called func()) tool.Tool {
	return tool.Must("read_file", "Reads a file.", func(context.Context, fileInput) (string, error) {
		called()
		return fileText, nil
	}, tool.ReadOnly())
}

// ourLoop runs the loop of Antiphon over the Responses API.
func ourLoop(w wired, turns int, t tool.Tool) (int, error) {
	return ourRun(&responses.Client{BaseURL: w.base + "/loop", Key: endpoint.NewKey(benchKey), HTTP: w.ours}, turns, t)
}

// ourRun runs an agent with the model and returns the number of its turns.
func ourRun(model agent.Model, turns int, t tool.Tool) (int, error) {
	a := &agent.Agent{
		Model:   model,
		Request: api.Request{Model: "gpt-5.1", Instructions: instructions},
		Tools:   []tool.Tool{t},
		Limits:  agent.Limits{MaxTurns: turns},
	}
	res, err := a.Run(context.Background(), session.New(), item.User("Read on."))
	if err != nil {
		return 0, err
	}
	return res.Turns, nil
}

// theirLoop runs the loop that a program would write with openai-go, which has none.
func theirLoop(w wired, turns int) (int, error) {
	client := openai.NewClient(option.WithAPIKey(benchKey), option.WithHTTPClient(w.web), option.WithBaseURL(w.base+"/loop"))
	h := &history{theirs: oai.ResponseInputParam{theirMessage(oai.ResponseInputContentParamOfInputText("Read on."))}}
	params := h.theirParams()
	read := func(string) (string, error) { return fileText, nil }
	for n := range turns {
		if _, _, err := h.theirTurn(context.Background(), &client, params, read); err != nil {
			return n, err
		}
	}
	return turns, nil
}

// theirTurn asks once. It adds the answer to the history, and after each call the output
// that run returns for its arguments.
func (h *history) theirTurn(ctx context.Context, client *openai.Client, params oai.ResponseNewParams, run func(arguments string) (string, error)) (done oai.Response, called bool, err error) {
	params.Input.OfInputItemList = h.theirs
	s := client.Responses.NewStreaming(ctx, params)
	for s.Next() {
		if ev := s.Current(); ev.Type == "response.completed" {
			done = ev.Response
		}
	}
	if err := s.Err(); err != nil {
		return done, false, err
	}
	for i := range done.Output {
		switch v := done.Output[i].AsAny().(type) {
		case oai.ResponseOutputMessage:
			p := v.ToParam()
			h.theirs = append(h.theirs, oai.ResponseInputItemUnionParam{OfOutputMessage: &p})
		case oai.ResponseFunctionToolCall:
			output, err := run(v.Arguments)
			if err != nil {
				return done, false, err
			}
			p := v.ToParam()
			h.theirs = append(h.theirs, oai.ResponseInputItemUnionParam{OfFunctionCall: &p}, theirOutput(v.CallID, output))
			called = true
		}
	}
	return done, called, nil
}

// bareLoop sends the same requests as our loop, from bytes prepared in advance, and
// does not parse the answers.
func bareLoop(w wired, turns int) (int, error) {
	req := (&history{ours: item.NewList(item.User("Read on."))}).ourRequest()
	body, err := req.MarshalJSON()
	if err != nil {
		return 0, err
	}
	more := bareTurn()
	body = append(body[:len(body)-1], `,"input":[{}`...)
	for n := range turns {
		r, err := http.NewRequest(http.MethodPost, w.base+"/loop/responses", bytes.NewReader(append(body, "]}"...)))
		if err != nil {
			return n, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+benchKey)
		if err := readAll(w.web, r); err != nil {
			return n, err
		}
		body = append(body, more...)
	}
	return turns, nil
}

// bareTurn returns the bytes that a turn adds to the history.
var bareTurn = sync.OnceValue(func() []byte {
	var acc api.Accumulator
	var out []byte
	for data := range dataOf(callStream(100)) {
		ev, err := api.ParseEvent(data)
		if err != nil {
			panic(err)
		}
		items, err := acc.Add(ev)
		if err != nil {
			panic(err)
		}
		for _, it := range items {
			out = append(append(out, ','), it.JSON()...)
		}
	}
	return append(append(out, ','), item.Must(&item.FunctionCallOutput{CallID: "call_100", Output: item.Text(fileText)}).JSON()...)
})

// dataOf returns the data of the events in a stream.
func dataOf(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for event := range bytes.SplitSeq(stream, []byte("\n\n")) {
			if _, data, ok := bytes.Cut(event, []byte("\ndata: ")); ok && !yield(data) {
				return
			}
		}
	}
}

func readAll(web *http.Client, r *http.Request) error {
	resp, err := web.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// turnAllocs is the number of allocations per turn, near the start and near the end
// of a run.
type turnAllocs struct{ first, last float64 }

// loopAllocs counts the allocations of a turn near the start of a run and near its
// 200th turn, from one call of the tool to the next. They include those of the
// transport's goroutines.
var loopAllocs = sync.OnceValue(func() (a turnAllocs) {
	const turns, window, runs = 201, 10, 4
	w, err := plainHTTP.wired()
	if err != nil {
		return turnAllocs{math.NaN(), math.NaN()}
	}
	for run := range runs + 1 {
		var marks []uint64
		var m runtime.MemStats
		t := fileTool(func() {
			runtime.ReadMemStats(&m)
			marks = append(marks, m.Mallocs)
		})
		if _, err := ourLoop(w, turns, t); err != nil {
			return turnAllocs{math.NaN(), math.NaN()} // the row itself reports errors
		}
		// The first run opens connections and fills pools.
		if run == 0 {
			continue // warm-up
		}
		n := len(marks)
		a.first += float64(marks[window]-marks[0]) / (window * runs)
		a.last += float64(marks[n-1]-marks[n-1-window]) / (window * runs)
	}
	return a
})
