// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// streamsRow reads many streams concurrently, event by event as they arrive. The
// server is another process.
func streamsRow(n int) row {
	web := manyConnections(n)
	size := 0
	for _, p := range heldStream() {
		size += len(p)
	}
	events := len(heldStream())
	ours := sync.OnceValue(func() float64 { return memoryEach(n, ourStream) })
	bare := sync.OnceValue(func() float64 { return memoryEach(n, bareStream) })
	return row{
		name: fmt.Sprintf("%d streams at once, over sockets", n), unit: "stream", units: n, bytes: n * size, maxAllocs: -1, rounds: 3,
		bars: []bar{
			most("ours of net/http alone", func(r result) float64 { return 1 / r.of(bareHTTP) }, 1.3, 1.1),
			most("KB of memory each", func(result) float64 { return ours() }, 60, 40),
		},
		note: func() string {
			return fmt.Sprintf("%d events each; net/http alone holds %.1f KB a stream.", events, bare())
		},
		libs: []lib{
			{"antiphon", func() (int, error) { return n, readStreams(web, n, ourStream) }},
			{bareHTTP, func() (int, error) { return n, readStreams(web, n, bareStream) }},
		},
	}
}

// manyConnections returns a client that keeps n idle connections, so that all
// libraries reuse the same ones.
func manyConnections(n int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, n
	return &http.Client{Transport: t}
}

// streamer reads one stream and calls begun when the first data has arrived.
type streamer func(web *http.Client, base string, begun func()) error

// ourStream reads a stream with Antiphon's client.
func ourStream(web *http.Client, base string, begun func()) error {
	client := &responses.Client{BaseURL: base + "/streams", Key: endpoint.NewKey(benchKey), HTTP: web}
	req := &api.Request{Model: "gpt-5.1", Input: item.NewList(item.User("hi"))}
	last := false
	for ev, err := range client.Stream(context.Background(), req) {
		if err != nil {
			return err
		}
		begun()
		last = ev.Terminal()
	}
	if !last {
		return errors.New("a stream ended without its last event")
	}
	return nil
}

// bareStream reads a stream with net/http, without parsing it.
func bareStream(web *http.Client, base string, begun func()) error {
	body := []byte(`{"model":"gpt-5.1","input":[{"type":"message","content":[{"type":"input_text","text":"hi"}],"role":"user"}],"stream":true}`)
	r, err := http.NewRequest(http.MethodPost, base+"/streams/responses", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+benchKey)
	resp, err := web.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", resp.Status)
	}
	// The stream has begun when its first byte has arrived.
	var one [1]byte
	if _, err := resp.Body.Read(one[:]); err != nil {
		return err
	}
	begun()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// readStreams reads n streams concurrently.
func readStreams(web *http.Client, n int, read streamer) error {
	return holdStreams(web, n, read, func() {})
}

// holdStreams reads n streams. None of them continues before all have begun and
// whole has returned.
func holdStreams(web *http.Client, n int, read streamer, whole func()) error {
	base, err := endpointURL()
	if err == nil {
		err = moreFiles(wantFiles)
	}
	if err != nil {
		return err
	}
	var begun, ended sync.WaitGroup
	var failed atomic.Pointer[error]
	opening := make(chan struct{}, 256) // otherwise the listener's queue overflows
	begun.Add(n)
	for range n {
		opening <- struct{}{}
		ended.Go(func() {
			first := sync.OnceFunc(func() {
				<-opening
				begun.Done()
			})
			if err := read(web, base, first); err != nil {
				failed.Store(&err)
			}
			first()
		})
	}
	begun.Wait()
	whole()
	resp, err := web.Post(base+"/go", "", nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	ended.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// memoryEach returns the kilobytes of memory per running stream in this process,
// including its connection and goroutines.
func memoryEach(n int, read streamer) float64 {
	web := manyConnections(n)
	defer web.CloseIdleConnections()
	before, during := memoryInUse(), uint64(0)
	if err := holdStreams(web, n, read, func() { during = memoryInUse() }); err != nil {
		return math.NaN() // the row itself reports errors
	}
	return float64(int64(during-before)) / float64(n) / 1000
}

// memoryInUse returns the bytes of memory in use after garbage collection.
func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC() // pools are empty after the second collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// wantFiles is the number of files that the row with streams opens, and throughFiles the
// number of those behind a gateway: a stream has two sockets in each process, and the
// sockets of the streams before may be idle.
const (
	wantFiles    = 6000
	throughFiles = 17_000
)

// moreFiles raises the soft limit on open files to the hard limit, if it is below what is
// wanted.
func moreFiles(want uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= want {
		return nil
	}
	if limit.Max < want {
		return fmt.Errorf("%d files may be open, want %d: raise the hard limit (ulimit -Hn)", limit.Max, want)
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
