// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp has regular expressions that are compiled when they are first used.
// Those of package-level variables would otherwise be compiled at each start of each
// program that links them, before it shows anything.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression. It is safe for concurrent use.
type Regexp struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns a regular expression. Its first use panics if the text is not a regular expression; in
// the binary of a test New itself does, so that no mistake waits for a rare use.
func New(text string) *Regexp {
	p := &Regexp{text: text}
	if len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		p.get()
	}
	return p
}

func (p *Regexp) get() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// String returns the text of the regular expression.
func (p *Regexp) String() string { return p.text }

// MatchString is [regexp.Regexp.MatchString].
func (p *Regexp) MatchString(s string) bool {
	return p.get().MatchString(s)
}

// Match is [regexp.Regexp.Match].
func (p *Regexp) Match(b []byte) bool {
	return p.get().Match(b)
}

// FindString is [regexp.Regexp.FindString].
func (p *Regexp) FindString(s string) string {
	return p.get().FindString(s)
}

// FindStringIndex is [regexp.Regexp.FindStringIndex].
func (p *Regexp) FindStringIndex(s string) []int {
	return p.get().FindStringIndex(s)
}

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (p *Regexp) FindStringSubmatch(s string) []string {
	return p.get().FindStringSubmatch(s)
}

// FindAllString is [regexp.Regexp.FindAllString].
func (p *Regexp) FindAllString(s string, n int) []string {
	return p.get().FindAllString(s, n)
}

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (p *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return p.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is [regexp.Regexp.FindAllStringSubmatchIndex].
func (p *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.get().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (p *Regexp) ReplaceAllString(s, with string) string {
	return p.get().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (p *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.get().ReplaceAllStringFunc(s, with)
}
