// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// normal returns a JSON text in a normal form: no white space, sorted members,
// numbers unchanged. Other text stays unchanged.
func normal(body []byte) jsontext.Value {
	v := jsontext.Value(bytes.Clone(body))
	if v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return body
	}
	return v
}

// sameBody reports whether two bodies are the same JSON, or the same bytes.
func sameBody(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(normal(a), normal(b))
}

// lines is a body as text to compare.
func lines(body []byte) []string {
	v := normal(body)
	if v.IsValid() {
		_ = v.Indent(jsontext.WithIndent("  "))
	}
	return strings.Split(strings.TrimSuffix(string(v), "\n"), "\n")
}

// closest describes a request and its difference to the most similar record. It
// prefers unused records.
func (t *Tape) closest(got Request) string {
	what := got.Method + " " + got.target()
	best, least := -1, 0
	for i, p := range t.list {
		distance := 0
		if p.used {
			distance++
		}
		if p.request.Method != got.Method || p.request.target() != got.target() {
			distance += 1 << 20
		}
		distance += 2 * len(diffLines(lines(p.request.Body), lines(got.Body)))
		if best < 0 || distance < least {
			best, least = i, distance
		}
	}
	if best < 0 {
		return what + ": the recording is empty"
	}
	p := t.list[best]
	switch {
	case p.used && t.matches(p.request, got):
		return fmt.Sprintf("%s once more: record %d did, and there is no other", what, best)
	case p.request.Method != got.Method || p.request.target() != got.target():
		return fmt.Sprintf("%s; the closest is record %d, %s %s", what, best, p.request.Method, p.request.target())
	}
	return fmt.Sprintf("%s; the closest is record %d (-recorded +got):\n%s", what, best, diffBodies(p.request.Body, got.Body))
}

func (r Request) target() string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}

const (
	maxDiffLines = 60   // that are shown
	maxDiffWidth = 300  // bytes of a line
	maxCompared  = 1500 // maximum lines per side for a comparison
)

// diffBodies shows where two bodies differ.
func diffBodies(recorded, got []byte) string {
	diff := diffLines(lines(recorded), lines(got))
	var b strings.Builder
	for i, line := range diff {
		if i == maxDiffLines {
			fmt.Fprintf(&b, "… and %d lines more\n", len(diff)-i)
			break
		}
		if len(line) > maxDiffWidth {
			line = strings.ToValidUTF8(line[:maxDiffWidth], "") + "…"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// diffLines returns the lines that only one side has, in order, prefixed with - and
// +.
func diffLines(a, b []string) (diff []string) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > maxCompared || len(b) > maxCompared {
		return append(signed("-", a), signed("+", b)...)
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	common[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		common[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			diff = append(diff, "- "+a[i])
			i++
		default:
			diff = append(diff, "+ "+b[j])
			j++
		}
	}
	return append(append(diff, signed("-", a[i:])...), signed("+", b[j:])...)
}

func signed(sign string, lines []string) []string {
	list := make([]string, len(lines))
	for i, line := range lines {
		list[i] = sign + " " + line
	}
	return list
}
