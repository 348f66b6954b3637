// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report collects the results of all rows.
type report struct {
	results []result
	size    *sizes
}

// add adds the result of a row. It asks for the figures of bars and notes, which are measured
// when they are first asked for: what later rows leave behind, such as thousands of idle
// connections, would change them.
func (r *report) add(res result) {
	for _, b := range res.bars {
		b.got(res)
	}
	if res.note != nil {
		res.note()
	}
	r.results = append(r.results, res)
}

// ours and theirs return the figures of a row's first two libraries.
func (r result) ours() figure   { return r.figures[0] }
func (r result) theirs() figure { return r.figures[1] }

// of returns a library's time divided by ours.
func (r result) of(lib string) float64 {
	for _, f := range r.figures {
		if f.lib == lib {
			return f.ratio
		}
	}
	return math.NaN()
}

// verdict compares a figure with its bar. A missing figure (NaN) misses the bar,
// which is why the conditions are negated.
func (b bar) verdict(r result) (got float64, verdict string) {
	got = b.got(r)
	switch {
	case b.atLeast && !(got >= b.gate), !b.atLeast && !(got <= b.gate):
		return got, "**missed**"
	case b.atLeast && got < b.goal, !b.atLeast && got > b.goal:
		return got, "gate holds"
	}
	return got, "goal reached"
}

// allocsPerUnit returns our allocations per unit of work.
func (r result) allocsPerUnit() float64 { return r.ours().allocs / float64(r.units) }

// verdict compares a row with its gate and goal.
func (r result) verdict() string {
	if r.gate == 0 {
		return ""
	}
	switch got := r.theirs().ratio; {
	case got < r.gate:
		return "**missed**"
	case r.maxAllocs >= 0 && r.allocsPerUnit() > r.maxAllocs+0.1:
		return "**too many allocations**"
	case got < r.goal:
		return "gate holds"
	}
	return "goal reached"
}

// markdown returns the report as a page of Markdown.
func (r *report) markdown(what string, rounds int) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Results\n\nTaken on %s by `make bench` (%s, %d rounds).\n", time.Now().UTC().Format("2006-01-02"), what, rounds)
	fmt.Fprintf(&b, "Machine: %s, %d processors, %s, %s/%s; libraries: %s.\n\n", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, libraries())
	b.WriteString("Times are processor time of the whole process, garbage collection included, for the row's work once: medians of the\n" +
		"rounds. \"× ours\" is the median over the rounds of a library's time by Antiphon's in the same round. The libraries of a row\n" +
		"take turns within a round, and must come to the same sum. Machines are noisy: read ratios.\n")
	for _, res := range r.results {
		fmt.Fprintf(&b, "\n## %s\n\n%d %ss", title(res.name), res.units, res.unit)
		if res.bytes > 0 {
			fmt.Fprintf(&b, ", %.0f KB", float64(res.bytes)/1000)
		}
		b.WriteString(".")
		if res.gate > 0 {
			fmt.Fprintf(&b, " Against openai-go: gate %g×, goal %g×, measured **%.1f×**: %s.", res.gate, res.goal, res.theirs().ratio, strings.Trim(res.verdict(), "*"))
		}
		for _, bar := range res.bars {
			got, verdict := bar.verdict(res)
			fmt.Fprintf(&b, " %s: gate %g, goal %g, measured **%.3g**: %s.", title(bar.what), bar.gate, bar.goal, got, strings.Trim(verdict, "*"))
		}
		if res.note != nil {
			b.WriteString(" " + res.note())
		}
		if len(res.figures) == 0 {
			b.WriteString("\n")
			continue
		}
		fmt.Fprintf(&b, "\n\n| library | time | a %s | throughput | × ours | allocations | bytes allocated |\n|---|---|---|---|---|---|---|\n", res.unit)
		for _, f := range res.figures {
			allocs := fmt.Sprintf("%.0f | %.0f KB", f.allocs, f.bytes/1000)
			if math.IsNaN(f.allocs) {
				allocs = "– | –" // not known for a separate process
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.0f MB/s | %.2f | %s |\n", f.lib, short(f.cpu), short(f.cpu/time.Duration(res.units)),
				float64(res.bytes)/f.cpu.Seconds()/1e6, f.ratio, allocs)
		}
	}
	if r.size != nil {
		b.WriteString(r.size.markdown())
	}
	return b.String()
}

// failed returns an error that lists the gates that do not hold.
func (r *report) failed() error {
	var errs []error
	for _, res := range r.results {
		if v := res.verdict(); strings.HasPrefix(v, "**") {
			errs = append(errs, fmt.Errorf("%s: %.1f× of openai-go, gate %g×, %.2f allocations a %s: %s", res.name, res.theirs().ratio, res.gate, res.allocsPerUnit(), res.unit, strings.Trim(v, "*")))
		}
	}
	for _, res := range r.results {
		for _, bar := range res.bars {
			if got, v := bar.verdict(res); strings.HasPrefix(v, "**") {
				errs = append(errs, fmt.Errorf("%s: %s: %.3g, gate %g", res.name, bar.what, got, bar.gate))
			}
		}
	}
	if r.size != nil {
		errs = append(errs, r.size.failed())
	}
	return errors.Join(errs...)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// short formats a duration with few digits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f µs", float64(d.Nanoseconds())/1e3)
	}
	return fmt.Sprintf("%.1f ms", float64(d.Nanoseconds())/1e6)
}

// processor returns the name of the machine's processor, if it is known.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// libraries lists the versions of the measured libraries.
func libraries() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var list []string
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/openai/openai-go/v3", "github.com/go-json-experiment/json", "github.com/goccy/go-json", "charm.land/glamour/v2":
			list = append(list, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return strings.Join(list, ", ")
}
