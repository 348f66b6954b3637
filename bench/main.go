// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Bench compares Antiphon with the libraries that a user might choose instead, in
// one run, and writes a report. It is a separate module, so that the dependencies of
// these libraries are not dependencies of Antiphon.
//
//	make bench             # from the root: all rows, RESULTS.md
//	go run . -run stream   # the rows with stream in their name
//	go test -bench .       # the same work as Go benchmarks
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	serveWhenAsked()
	out := flag.String("o", "", "write the results to `FILE` as well")
	only := flag.String("run", "", "measure only rows with `TEXT` in their name")
	rounds := flag.Int("rounds", 7, "measure each row in `N` rounds")
	flag.Parse()
	if err := run(*out, *only, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the rows and writes the report. It returns an error if a gate does
// not hold.
func run(out, only string, rounds int) error {
	var report report
	for _, row := range rows(servedRuns) {
		if !strings.Contains(row.name, only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", row.name)
		result, err := measure(row, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		report.add(result)
	}
	if strings.Contains("program size", only) {
		fmt.Fprintln(os.Stderr, "program size …")
		size, err := measureSize()
		if err != nil {
			return err
		}
		report.size = size
	}
	text := report.markdown(cmp.Or(only, "all rows"), rounds)
	fmt.Print(text)
	if out != "" {
		if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return report.failed()
}
