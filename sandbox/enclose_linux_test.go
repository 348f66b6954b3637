// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/antiphon-go/antiphon/sandbox"
)

func init() {
	// enclosed encloses itself and makes all attempts.
	roles["enclosed"] = func(args []string) {
		if err := sandbox.Enclose(sandbox.Limits{}); err != nil {
			fmt.Println(err)
			return
		}
		roles["attempts"](args)
	}
	// computes encloses itself, also a thread that was there before, computes, and prints
	// what it could do besides.
	roles["computes"] = func([]string) {
		enclosed, looked := make(chan bool), make(chan error)
		go func() {
			runtime.LockOSThread()
			<-enclosed
			_, err := os.ReadFile("/etc/passwd")
			looked <- err
		}()
		if err := sandbox.Enclose(sandbox.Limits{}); err != nil {
			fmt.Println(err)
			return
		}
		close(enclosed)
		done := make(chan int)
		for range 50 {
			go func() {
				runtime.LockOSThread() // so each needs a thread
				done <- len(make([]byte, 1<<20))
			}()
		}
		sum := 0
		for range 50 {
			sum += <-done
		}
		runtime.GC()
		fmt.Println(sum>>20, "MiB")
		_, exec := os.StartProcess("/bin/true", nil, &os.ProcAttr{})
		_, memory := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		for what, err := range map[string]error{"an earlier thread": <-looked, "a program": exec, "memory that is a program": memory, "an inherited file": writeTo(3)} {
			if err == nil {
				fmt.Println(what)
			}
		}
	}
}

func writeTo(fd int) error {
	_, err := unix.Write(fd, []byte("x"))
	return err
}

func needsFilter(t *testing.T) {
	t.Helper()
	if !sandbox.Available().Has(sandbox.Seccomp) {
		t.Skip("this system cannot filter system calls")
	}
}

// TestEnclose proves that all attempts fail in a process that has enclosed itself.
func TestEnclose(t *testing.T) {
	needsFilter(t)
	g := newGround(t, setting{name: "enclosed"})
	text, err := json.Marshal(g.targets())
	g.must(err)
	out, err := g.process("enclosed", string(text)).Output()
	g.must(err)
	var outcome map[string]string
	if err := json.Unmarshal(out, &outcome); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	for _, at := range attempts {
		if at.name == "write outside while a link changes" {
			continue // it begins with a write that fails here, and then proves nothing
		}
		if got := outcome[at.name]; !strings.HasPrefix(got, "failed: ") {
			t.Errorf("%s: %s", at.name, got)
		}
	}
	g.untouched()
}

// TestEnclosedComputes proves that a program in Go still has memory and threads, and that
// the filter is for the threads that were there before, too.
func TestEnclosedComputes(t *testing.T) {
	needsFilter(t)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	left, w, err := os.Pipe() // as a library in C might leave it open
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	defer w.Close()
	cmd := exec.Command(executable, "computes")
	cmd.ExtraFiles = []*os.File{w}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "50 MiB\n" {
		t.Errorf("%v: %s", err, out)
	}
}
