// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Packagemap draws the packages of docs/architecture.md as a picture: one row for
// each level, the width of a box after the package's lines of Go without tests. Run
// it at the root of the repository; `make picture` does.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row matches a line of the table of packages: its level and its package.
var row = regexp.MustCompile("(?m)^\\| (-?\\d+) \\| `([^`]+)` \\|")

type box struct {
	level, lines int
	name         string
}

func main() {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		log.Fatal(err)
	}
	var boxes []box
	for _, m := range row.FindAllSubmatch(page, -1) {
		level, _ := strconv.Atoi(string(m[1]))
		boxes = append(boxes, box{level: level, name: string(m[2]), lines: linesOf(string(m[2]))})
	}
	slices.SortStableFunc(boxes, func(a, b box) int {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(b.lines, a.lines))
	})
	if err := os.WriteFile("docs/packages.svg", draw(boxes), 0o644); err != nil {
		log.Fatal(err)
	}
}

// linesOf counts the lines of a package without its tests.
func linesOf(dir string) (n int) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		n += bytes.Count(text, []byte("\n"))
	}
	return n
}

const (
	margin, gap = 60, 8
	right       = 1160
	height      = 40
	perLine     = 0.045 // pixels
)

// draw places the boxes of a level beside each other, and goes on in a new row where
// they do not fit.
func draw(boxes []box) []byte {
	var out bytes.Buffer
	x, y, level := float64(margin), 10.0, boxes[0].level
	fmt.Fprintf(&out, `<text class="l" x="10" y="%.0f">%d</text>`+"\n", y+25, level)
	for _, b := range boxes {
		width := max(float64(b.lines)*perLine, 7.4*float64(max(len(b.name), 6))+12)
		switch {
		case b.level != level:
			x, y, level = margin, y+height+3*gap, b.level
			fmt.Fprintf(&out, `<text class="l" x="10" y="%.0f">%d</text>`+"\n", y+25, level)
		case x+width > right:
			x, y = margin, y+height+gap
		}
		fmt.Fprintf(&out, `<rect x="%.0f" y="%.0f" width="%.0f" height="%d" rx="4"/>`+"\n", x, y, width, height)
		fmt.Fprintf(&out, `<text x="%.0f" y="%.0f">%s</text><text class="n" x="%.0f" y="%.0f">%.1fk</text>`+"\n", x+6, y+17, b.name, x+6, y+33, float64(b.lines)/1000)
		x += width + gap
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" role="img" aria-label="The packages of Antiphon by level, with their sizes">
<style>text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b2333}.n{fill:#66708a}.l{font-weight:bold;fill:#66708a}rect{fill:#e6ebf5;stroke:#9aa7c2}</style>
<rect x="0" y="0" width="%d" height="%.0f" style="fill:#fbfcff;stroke:none"/>
`, right+40, y+height+10, right+40, y+height+10)
	return append(append([]byte(head), out.Bytes()...), "</svg>\n"...)
}
