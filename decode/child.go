// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/antiphon-go/antiphon/sandbox"
)

// childName is the first argument, and where possible the name, by which this executable
// knows that it is started to decode. The other arguments are its limits of memory, in
// bytes, and of processor time, in seconds.
const childName = "antiphon-decoder"

// The exit codes of the copy that decodes. Programs in Go that crash have the code 2.
const (
	exitMemory = 83
	exitSetup  = 84
	exitAlone  = 85 // the parent has gone
)

// init decodes if this process is for that, and does not return then.
func init() {
	named := runtime.GOOS == "darwin" || len(os.Args) > 0 && os.Args[0] == childName // sandbox-exec names it
	if !named || len(os.Args) != 4 || os.Args[1] != childName {
		return
	}
	done := make(chan int)
	go func() { done <- serve(os.Args[2], os.Args[3]) }() // the thread of init functions is for nothing else
	os.Exit(<-done)
}

// serve reads one request and answers it.
func serve(memoryText, cpuText string) int {
	memory, err := strconv.ParseInt(memoryText, 10, 64)
	cpu, cpuErr := strconv.ParseInt(cpuText, 10, 64)
	if err != nil || cpuErr != nil || memory <= 0 || cpu <= 0 {
		fmt.Fprintln(os.Stderr, "the limits of a decoder are wrong")
		return exitSetup
	}
	debug.SetMemoryLimit(memory / 4 * 3) // the garbage collector is at work before the limit is reached
	watchMemory(uint64(memory))
	// No file gets a number of 3 or more, also where the system cannot filter calls.
	err = sandbox.Enclose(sandbox.Limits{Memory: memory + runtimeMemory, CPU: cpu, Files: 3, FileSize: 1})
	if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		fmt.Fprintln(os.Stderr, err)
		return exitSetup
	}
	if _, err := io.WriteString(os.Stdout, hello); err != nil {
		return exitAlone
	}
	r, err := readRequest(os.Stdin, memory)
	if err != nil {
		return exitAlone
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has closed it, or has ended
		os.Exit(exitAlone)
	}()
	decoder := decoders[r.kind]
	if decoder == nil {
		return exitSetup
	}
	if err := decoder(r).write(os.Stdout); err != nil {
		return exitAlone
	}
	return 0
}

// runtimeMemory is what a decoder may reserve besides the memory that it may use: the system
// counts stacks of threads, and whole blocks of which only a part is used. At this limit, the
// runtime of Go ends the process in one of several ways.
const runtimeMemory = 256 << 20

// watchMemory ends this process when it uses too much memory. So most decoders that do
// end in the same way on all systems. Its timer is also the first one, see
// [sandbox.Enclose].
func watchMemory(most uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	var check func()
	check = func() {
		metrics.Read(sample)
		if total, released := sample[0].Value, sample[1].Value; total.Kind() == metrics.KindUint64 && released.Kind() == metrics.KindUint64 &&
			total.Uint64() > most+released.Uint64() {
			os.Exit(exitMemory)
		}
		time.AfterFunc(10*time.Millisecond, check)
	}
	time.AfterFunc(0, check)
}
