// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// noChildren proves that this process has no child, also none that has ended.
func noChildren(t *testing.T) {
	t.Helper()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("there is a child: %d, %v", pid, err)
	}
}

const parentVariable = "ANTIPHON_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		j := job{request: request{kind: byte(firstFault + slices.Index(faultNames, "a wait"))}, limits: limits{memory: 128 << 20, cpu: 10, time: time.Hour}}
		c, err := start(j.limits)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		go func() {
			<-c.fed
			list, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
			for _, thread := range threads() {
				more, _ := os.ReadFile("/proc/self/task/" + thread + "/children")
				list = append(list, more...)
			}
			fmt.Println(strings.Fields(string(list))[0])
		}()
		_, _, err = c.ask(j.request, 0)
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func threads() (names []string) {
	entries, _ := os.ReadDir("/proc/self/task")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A10: a decoder ends with the program that started it, also if that is killed.
func TestParentKilled(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	decoder, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skip(err) // a kernel before 5.3
	}
	defer unix.Close(decoder)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for { // until it has ended
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(decoder), Events: unix.POLLIN}}, -1)
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}
