// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// sizes holds the sizes of two programs: one that uses client, loop and tools, and
// one that uses only net/http.
type sizes struct {
	ours, alone           int64
	oursBuild, aloneBuild time.Duration // processor time of a build with an empty cache
}

// The limits for a user's program, relative to one with only net/http. A tighter
// gate on the size, of 1.4, distorted the public API: it led to interfaces that
// existed only for the linker.
const (
	sizeGate  = 1.6
	buildGate = 1.5
)

func (s *sizes) ratio() float64      { return float64(s.ours) / float64(s.alone) }
func (s *sizes) buildRatio() float64 { return s.oursBuild.Seconds() / s.aloneBuild.Seconds() }

// measureSize builds both programs with an empty build cache.
func measureSize() (*sizes, error) {
	dir, err := os.MkdirTemp("", "antiphon-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := new(sizes)
	if s.alone, s.aloneBuild, err = build(dir, "./httponly"); err != nil {
		return nil, err
	}
	s.ours, s.oursBuild, err = build(dir, "./umbrella")
	return s, err
}

// build builds a program with an empty cache and returns its size in bytes and the
// processor time of the build.
func build(dir, program string) (size int64, cpu time.Duration, err error) {
	cache, err := os.MkdirTemp(dir, "cache")
	if err != nil {
		return 0, 0, err
	}
	out := filepath.Join(cache, "program")
	cmd := exec.Command("go", "build", "-o", out, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(cache, "go"))
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("building %s: %w: %s", program, err, text)
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), cpu, nil
}

func (s *sizes) markdown() string {
	return fmt.Sprintf("\n## A user's program\n\nClient, loop and one tool (`umbrella`) against net/http alone (`httponly`), without cgo.\n"+
		"Gates: %g× the size, %g× the processor time of a build with an empty cache.\n\n"+
		"| program | size | cold build |\n|---|---|---|\n| net/http alone | %.2f MB | %.1f s |\n| with Antiphon | %.2f MB (%.3f×) | %.1f s (%.2f×) |\n",
		sizeGate, buildGate, float64(s.alone)/1e6, s.aloneBuild.Seconds(), float64(s.ours)/1e6, s.ratio(), s.oursBuild.Seconds(), s.buildRatio())
}

func (s *sizes) failed() error {
	var errs []error
	if s.ratio() > sizeGate {
		errs = append(errs, fmt.Errorf("a user's program is %.3f× the size of one with net/http alone: gate %g", s.ratio(), sizeGate))
	}
	if s.buildRatio() > buildGate {
		errs = append(errs, fmt.Errorf("a user's program takes %.2f× the time to build: gate %g", s.buildRatio(), buildGate))
	}
	return errors.Join(errs...)
}
