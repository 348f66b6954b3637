// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// machine identifies the place in which process numbers are unique: this boot of the
// kernel, and this namespace of process numbers. It is "" if that cannot be found out.
var machine = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, err2 := os.Readlink("/proc/self/ns/pid")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + namespace
})

// thisProcess identifies this process among all of all machines; "-" if it cannot.
var thisProcess = sync.OnceValue(func() string {
	began, err := startOf(os.Getpid())
	if err != nil || machine() == "" {
		return "-"
	}
	return fmt.Sprintf("%s/%d/%s", machine(), os.Getpid(), began)
})

// startOf returns when a process began, in ticks of the kernel, or an error that wraps
// fs.ErrNotExist if there is none.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name, in parentheses, may contain anything. The state follows, and the start
	// is the twentieth field from there.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "", errors.New("/proc: unknown form")
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", fs.ErrNotExist // it was killed, and its parent has not asked yet
	}
	return fields[19], nil
}

// isDead reports whether the owner of a lease was a process of this machine that has
// ended for certain.
func isDead(owner string) bool {
	process, _, _ := strings.Cut(owner, " ")
	rest, here := strings.CutPrefix(process, machine()+"/")
	if !here || machine() == "" {
		return false
	}
	var pid int
	var began string
	if n, err := fmt.Sscanf(strings.Replace(rest, "/", " ", 1), "%d %s", &pid, &began); n != 2 || err != nil {
		return false
	}
	now, err := startOf(pid)
	return errors.Is(err, fs.ErrNotExist) || err == nil && now != began
}
