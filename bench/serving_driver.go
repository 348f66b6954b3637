// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The rows of the server have their clients and their model in the separate process, which
// serves these routes too, so that the processor time and the memory of this process are
// those of what serves.

// pace is the time between two events of a model that many clients wait for.
const pace = 5 * time.Millisecond

// pacedDeltas is the number of deltas of such a stream.
const pacedDeltas = 200

// paced answers with a stream that is sent event by event.
func (s *answers) paced(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	next := time.NewTicker(pace)
	defer next.Stop()
	for _, p := range pacedStream() {
		_, _ = w.Write(p)
		_ = flush()
		<-next.C
	}
}

// burst answers with a long stream, as fast as it is read.
func (s *answers) burst(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(longStream())
}

var longStream = sync.OnceValue(func() []byte { return bytes.Join(modelStream(deltas), nil) })

var pacedStream = sync.OnceValue(func() [][]byte { return modelStream(pacedDeltas) })

// modelStream returns a stream of n deltas, one event a piece, with the events and members
// that OpenAI's endpoint sends.
func modelStream(n int) (pieces [][]byte) {
	var e events
	event := func(typ, members string) {
		e.Reset()
		e.event(typ, members)
		pieces = append(pieces, bytes.Clone(e.Bytes()))
	}
	const id = "msg_6863f64a5260819ea9e2fdc22f24f14808b05fafad31a471"
	const at = `"item_id":"` + id + `","output_index":0,"content_index":0`
	const begun = `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`
	event("response.created", begun)
	event("response.in_progress", begun)
	event("response.output_item.added", `"output_index":0,"item":{"id":"`+id+`","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	event("response.content_part.added", at+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	for range n {
		event("response.output_text.delta", at+`,"delta":"some words ","logprobs":[],"obfuscation":"aB3dE5"`)
	}
	part := fmt.Sprintf(`{"type":"output_text","annotations":[],"logprobs":[],"text":%q}`, strings.Repeat("some words ", n))
	message := `{"id":"` + id + `","type":"message","status":"completed","content":[` + part + `],"role":"assistant"}`
	event("response.output_text.done", fmt.Sprintf(`%s,"text":%q,"logprobs":[]`, at, strings.Repeat("some words ", n)))
	event("response.content_part.done", at+`,"part":`+part)
	event("response.output_item.done", `"output_index":0,"item":`+message)
	event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2000,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2001}}`)
	return pieces
}

// agentTurns is the number of turns of an agent's run, of which the last one has no call.
const agentTurns = 5

// worker answers with a call, and with a message after the last one.
func (s *answers) worker(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if bytes.Count(body, []byte(`"function_call_output"`)) < agentTurns-1 {
		_, _ = w.Write(callStream(s.calls.Add(1)))
		return
	}
	for _, p := range heldStream() {
		_, _ = w.Write(p)
	}
}

// driven is what a row asks of the clients: requests to a URL, many at once.
type driven struct {
	url, body string
	requests  int
	atOnce    int
}

// drive lets the clients do their work and returns the number that they come to: the events
// that they have read, or the answers if these are not streams.
func drive(how string, d driven) (n int, err error) {
	base, err := endpointURL()
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, base+"/drive/"+how, strings.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Url", d.url)
	req.Header.Set("X-Requests", strconv.Itoa(d.requests))
	req.Header.Set("X-At-Once", strconv.Itoa(d.atOnce))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(string(text), &n); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the clients say: %s %s", resp.Status, text)
	}
	return n, nil
}

// drivenOf reads the work of a request.
func drivenOf(r *http.Request) (d driven, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return d, err
	}
	d.url, d.body = r.Header.Get("X-Url"), string(body)
	if d.requests, err = strconv.Atoi(r.Header.Get("X-Requests")); err == nil {
		d.atOnce, err = strconv.Atoi(r.Header.Get("X-At-Once"))
	}
	return d, err
}

// driveAll sends the requests and answers with what they come to.
func (s *answers) driveAll(w http.ResponseWriter, r *http.Request) {
	d, err := drivenOf(r)
	if err == nil {
		var n int
		if n, err = s.clients(d); err == nil {
			fmt.Fprint(w, n)
			return
		}
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// clients sends the requests of d.
func (s *answers) clients(d driven) (sum int, err error) {
	web := manyConnections(d.atOnce)
	defer web.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	left := make(chan struct{}, d.requests)
	for range d.requests {
		left <- struct{}{}
	}
	close(left)
	for range d.atOnce {
		all.Go(func() {
			for range left {
				n, failed := one(web, d, func() {})
				mu.Lock()
				if sum += n; failed != nil {
					err = failed
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return sum, err
}

// one sends a request and reads the answer: the number of its events, or 1. It calls begun
// at the first byte of the body.
func one(web *http.Client, d driven, begun func()) (n int, err error) {
	req, err := http.NewRequest(http.MethodPost, d.url, strings.NewReader(d.body))
	if d.body == "" {
		req, err = http.NewRequest(http.MethodGet, d.url, nil)
	}
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := web.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if _, err := in.Peek(1); err != nil {
		return 0, err
	}
	begun()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(in)
		return 0, fmt.Errorf("%s: %s", resp.Status, text)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, err := io.Copy(io.Discard, in)
		return 1, err
	}
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return n, nil
		case err == bufio.ErrBufferFull: // the rest of a long line is skipped
			for err == bufio.ErrBufferFull {
				_, err = in.ReadSlice('\n')
			}
		case bytes.HasPrefix(line, []byte(`data: {"type":"response.output_text.delta"`)):
			n++
		}
		if err != nil && err != io.EOF {
			return n, err
		}
	}
}

// driveFirst answers with the median of the microseconds until the first byte of an answer.
// The requests follow each other.
func (s *answers) driveFirst(w http.ResponseWriter, r *http.Request) {
	d, err := drivenOf(r)
	web := manyConnections(1)
	defer web.CloseIdleConnections()
	var took []time.Duration
	for range d.requests {
		if err != nil {
			break
		}
		began := time.Now()
		_, err = one(web, d, func() { took = append(took, time.Since(began)) })
	}
	if err != nil || len(took) == 0 {
		http.Error(w, fmt.Sprint(err), http.StatusBadGateway)
		return
	}
	fmt.Fprint(w, median(took).Microseconds())
}

// driveHeld opens streams that wait, answers with their number when all have begun, and
// ends when they have ended.
func (s *answers) driveHeld(w http.ResponseWriter, r *http.Request) {
	d, err := drivenOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	web := manyConnections(d.atOnce)
	defer web.CloseIdleConnections()
	var begun, ended sync.WaitGroup
	opening := make(chan struct{}, 256) // otherwise the listener's queue overflows
	begun.Add(d.requests)
	for range d.requests {
		opening <- struct{}{}
		ended.Go(func() {
			first := sync.OnceFunc(func() {
				<-opening
				begun.Done()
			})
			_, _ = one(web, d, first)
			first()
		})
	}
	begun.Wait()
	fmt.Fprintln(w, d.requests)
	_ = http.NewResponseController(w).Flush()
	ended.Wait()
}

// holdThrough opens n streams through what serves in this process, and calls during while
// all of them wait.
func holdThrough(d driven, during func()) error {
	base, err := endpointURL()
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, base+"/drive/held", strings.NewReader(d.body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Url", d.url)
	req.Header.Set("X-Requests", strconv.Itoa(d.requests))
	req.Header.Set("X-At-Once", strconv.Itoa(d.requests))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); err != nil || strings.TrimSpace(line) != strconv.Itoa(d.requests) {
		return fmt.Errorf("the clients say %q, %w", line, err)
	}
	during()
	released, err := http.Post(base+"/go", "", nil)
	if err != nil {
		return err
	}
	_ = released.Body.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}
