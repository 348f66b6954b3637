// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

const reverseProxy = "httputil.ReverseProxy"

// servingRows are the rows of package server.
func servingRows(runs int) []row {
	return []row{
		gatewayRow("gateway: 100 streams at once, event by event", "/paced", 100, pacedDeltas),
		gatewayRow("gateway: 16 streams as fast as they are read", "/burst", 16, deltas),
		gatewayFiguresRow(5000, 10_000_000),
		agentsRow(runs),
	}
}

// askStream is a request for a stream.
const askStream = `{"model":"gpt-5.1","input":"hi","stream":true,"store":false}`

// served is an address that this process serves while the program runs.
type served func() (base string, err error)

// proxied returns a reverse proxy before the endpoint at a path.
func proxied(path string) served {
	return sync.OnceValues(func() (string, error) {
		base, err := endpointURL()
		if err != nil {
			return "", err
		}
		to, err := url.Parse(base + path)
		if err != nil {
			return "", err
		}
		p := &httputil.ReverseProxy{
			Transport: manyConnections(wantFiles).Transport,
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go func() {
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// Without it the server closes the request's body when the answer begins. If
				// the proxy has not read the end of the body by then, the answer breaks off.
				_ = http.NewResponseController(w).EnableFullDuplex()
				p.ServeHTTP(w, r)
			}))
		}()
		return "http://" + l.Addr().String(), nil
	})
}

// passing returns a gateway before the endpoint at a path, with a store of its own if file
// is not "".
func passing(path, file string) served {
	return sync.OnceValues(func() (string, error) {
		base, err := endpointURL()
		if err != nil {
			return "", err
		}
		s := &server.Server{Backend: &gateway.Backend{Upstreams: []gateway.Upstream{
			{Config: &dialect.Config{BaseURL: base + path, HTTP: manyConnections(wantFiles)}},
		}}}
		if file != "" {
			dir, err := os.MkdirTemp("", "antiphon-bench-")
			if err != nil {
				return "", err
			}
			in, err := store.Open(context.Background(), filepath.Join(dir, file), store.Options{Create: true})
			if err != nil {
				return "", err
			}
			s.Store = &gateway.Store{In: in}
		}
		at, _, err := s.Start()
		return at, err
	})
}

// gatewayRow passes streams through this process.
func gatewayRow(name, path string, streams, deltas int) row {
	through := func(s served) func() (int, error) {
		return func() (int, error) {
			base, err := s()
			if err != nil {
				return 0, err
			}
			return drive("all", driven{url: base + "/responses", body: askStream, requests: streams, atOnce: streams})
		}
	}
	n := streams * deltas
	return row{
		name: name, unit: "delta", units: n, bytes: n * len(pacedStream()[4]), maxAllocs: -1, rounds: 5,
		bars: []bar{
			most("ours of "+reverseProxy, func(r result) float64 { return 1 / r.of(reverseProxy) }, 1.5, 1.2),
			most("allocations a delta more than "+reverseProxy, func(r result) float64 {
				return (r.ours().allocs - r.theirs().allocs) / float64(r.units)
			}, 0.99, 0.5),
		},
		libs: []lib{
			{"antiphon", through(passing(path, ""))},
			{reverseProxy, through(proxied(path))},
		},
	}
}

// gatewayFiguresRow reports the memory of open streams and the time until a first byte.
func gatewayFiguresRow(streams, size int) row {
	took := sync.OnceValue(func() gatewayFigures { return measureGateway(streams, size) })
	return row{
		name: fmt.Sprintf("gateway: %d open streams, and the first byte", streams), unit: "stream", units: streams, maxAllocs: -1,
		bars: []bar{
			most("KB of memory an open stream", func(result) float64 { return took().kb }, 60, 40),
			most("ms that the first byte comes later, with storing on SQLite", func(result) float64 { return took().later }, 0.3, 0.15),
			most("ms that it comes later than through "+reverseProxy, func(result) float64 { return took().laterThanProxy }, 0.3, 0.15),
			most(fmt.Sprintf("ms to the first byte of a finished response of %d MB", size/1_000_000), func(result) float64 { return took().resumed }, 5, 2),
		},
		note: func() string {
			t := took()
			if t.err != nil {
				return t.err.Error()
			}
			return fmt.Sprintf("Both connections of a stream are in the memory; %s takes %.1f KB. Times pass, medians of requests that follow each other; directly the first byte comes after %.2f ms.", reverseProxy, t.proxyKB, t.direct)
		},
	}
}

// gatewayFigures are the figures of the row.
type gatewayFigures struct {
	kb, proxyKB                            float64
	direct, later, laterThanProxy, resumed float64 // milliseconds
	err                                    error
}

// measureGateway measures a gateway with this many open streams, and a stored response of
// this size.
func measureGateway(streams, size int) (f gatewayFigures) {
	nan := math.NaN()
	f = gatewayFigures{kb: nan, proxyKB: nan, direct: nan, later: nan, laterThanProxy: nan, resumed: nan}
	f.err = func() (err error) {
		if err := moreFiles(uint64(throughFiles * streams / 5000)); err != nil {
			return err
		}
		if f.kb, err = heldBy(passing("/streams", ""), streams); err != nil {
			return err
		}
		if f.proxyKB, err = heldBy(proxied("/streams"), streams); err != nil {
			return err
		}
		if err := f.firstBytes(); err != nil {
			return err
		}
		f.resumed, err = resume(size)
		return err
	}()
	return f
}

// heldBy returns the kilobytes of an open stream.
func heldBy(s served, streams int) (float64, error) {
	base, err := s()
	if err != nil {
		return 0, err
	}
	before, during := memoryInUse(), uint64(0)
	err = holdThrough(driven{url: base + "/responses", body: askStream, requests: streams}, func() { during = memoryInUse() })
	return float64(int64(during-before)) / float64(streams) / 1000, err
}

// firstBytes measures how long the first byte takes, directly, through a gateway that stores the
// response, and through a reverse proxy.
func (f *gatewayFigures) firstBytes() error {
	direct, err := endpointURL()
	if err != nil {
		return err
	}
	through, err := passing("/loop", "first.db")()
	if err != nil {
		return err
	}
	proxy, err := proxied("/loop")()
	if err != nil {
		return err
	}
	const rounds, requests = 9, 40
	stored := strings.Replace(askStream, `"store":false`, `"store":true`, 1)
	var alone, more, moreThanProxy []float64
	for range rounds {
		var micros [3]float64
		for i, base := range []string{direct + "/loop", through, proxy} {
			took, err := drive("first", driven{url: base + "/responses", body: stored, requests: requests})
			if err != nil {
				return err
			}
			micros[i] = float64(took)
		}
		alone, more, moreThanProxy = append(alone, micros[0]/1000), append(more, (micros[1]-micros[0])/1000), append(moreThanProxy, (micros[1]-micros[2])/1000)
	}
	f.direct, f.later, f.laterThanProxy = median(alone), median(more), median(moreThanProxy)
	return nil
}

// resume returns the milliseconds until the first byte of a finished background response of
// this many bytes.
func resume(size int) (float64, error) {
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	in, err := store.Open(context.Background(), filepath.Join(dir, "resumed.db"), store.Options{Create: true})
	if err != nil {
		return 0, err
	}
	defer in.Close()
	words := strings.Repeat("some words ", 10)
	keeper := &gateway.Store{In: in}
	defer keeper.Close()
	s := &server.Server{Store: keeper, Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		for range size / 300 { // an event with these words has about 300 bytes
			_ = w.Text(words) // the error is kept
		}
		return w.Complete()
	})}
	base, stop, err := s.Start()
	if err != nil {
		return 0, err
	}
	defer stop()
	resp, err := http.Post(base+"/responses", "application/json", strings.NewReader(`{"model":"m","input":"hi","stream":true,"background":true}`))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	id := ""
	for data := range dataOf(text) {
		var first struct{ Response struct{ ID string } }
		if err := json.Unmarshal(data, &first); err != nil {
			return 0, err
		}
		id = first.Response.ID
		break
	}
	micro, err := drive("first", driven{url: base + "/responses/" + id + "?stream=true&starting_after=5", requests: 9})
	return float64(micro) / 1000, err
}

// agentsRow runs agents with a tool for many clients at once.
func agentsRow(n int) row {
	through := func(s served) func() (int, error) {
		return func() (int, error) {
			base, err := s()
			if err != nil {
				return 0, err
			}
			return drive("all", driven{url: base + "/responses", body: `{"model":"it","input":"Read on.","store":false}`, requests: n, atOnce: n})
		}
	}
	return row{
		name: fmt.Sprintf("server: %d runs of an agent at once", n), unit: "turn", units: n * agentTurns, maxAllocs: -1, rounds: 3,
		gate: 3, goal: 5,
		note: func() string {
			return fmt.Sprintf("Each run has %d turns, and reads a file in all but the last. On the other side is a handler with a loop as a program would write it with openai-go.", agentTurns)
		},
		libs: []lib{
			{"antiphon", through(sync.OnceValues(serveAgent))},
			{openaiGo, through(sync.OnceValues(serveLoop))},
		},
	}
}

// agentFolder returns a folder with what the agent needs.
func agentFolder() (string, error) {
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(fileText), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "it.md"), []byte("<config model=\"gpt-5.1\"/>\n<tool name=\"read_file\" approval=\"allow\"/>\n<system>"+instructions+"</system>\n"), 0o600)
	}
	return dir, err
}

// serveAgent serves a file with an agent.
func serveAgent() (string, error) {
	endpointBase, err := endpointURL()
	if err != nil {
		return "", err
	}
	dir, err := agentFolder()
	if err != nil {
		return "", err
	}
	b := &agents.Backend{Agents: []agents.Agent{{Name: "it", Config: host.Config{
		File: filepath.Join(dir, "it.md"), Trust: trust.Everything,
		Endpoint: host.Endpoint{Model: "gpt-5.1", BaseURL: endpointBase + "/work"},
		Limits:   agent.Limits{MaxTurns: 2 * agentTurns},
	}}}}
	base, _, err := (&server.Server{Backend: b}).Start()
	return base, err
}

// serveLoop serves the loop that a program would write with openai-go behind net/http.
func serveLoop() (string, error) {
	endpointBase, err := endpointURL()
	if err != nil {
		return "", err
	}
	dir, err := agentFolder()
	if err != nil {
		return "", err
	}
	client := openai.NewClient(option.WithAPIKey(benchKey), option.WithHTTPClient(manyConnections(wantFiles)), option.WithBaseURL(endpointBase+"/work"))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /responses", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		last, err := answerFor(r.Context(), &client, dir, asked.Input)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(last)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(l, mux) }()
	return "http://" + l.Addr().String(), nil
}

// answerFor asks the model until it calls no tool any more, and returns its last response.
func answerFor(ctx context.Context, client *openai.Client, dir, question string) (last oai.Response, err error) {
	h := &history{theirs: oai.ResponseInputParam{theirMessage(oai.ResponseInputContentParamOfInputText(question))}}
	params := h.theirParams()
	read := func(arguments string) (string, error) {
		var in fileInput
		if err := json.Unmarshal([]byte(arguments), &in); err != nil {
			return "", err
		}
		text, err := os.ReadFile(filepath.Join(dir, in.Path))
		return string(text), err
	}
	for called := true; called && err == nil; {
		last, called, err = h.theirTurn(ctx, client, params, read)
	}
	return last, err
}
