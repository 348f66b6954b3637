// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// Screen is a terminal with status lines at its bottom that say what the program
// waits for. All output to the terminal goes through the screen, which removes the
// status line first; the line never reaches a pipe or a file. A screen is safe for
// concurrent use. The nil screen does nothing.
type Screen struct {
	mu     sync.Mutex
	to     *os.File // standard error
	size   func() (columns, rows int)
	plain  bool // no cursor moves and no colours: print a new line now and then
	colour bool

	waits []wait
	drawn []int // columns of each of the current status lines
	mid   bool  // the cursor is within a line
	typed bool  // a person types lines at any time: below the status lines, which stay as they are
	stale bool  // the waits differ from those that are drawn
	wrote time.Time
	told  time.Time // time of the last plain line
	quit  chan struct{}
	over  chan struct{}
}

// Waits shows what the program waits for: a [Screen], or the terminal of a conversation.
type Waits interface {
	// Wait adds a wait, which lasts until done is called with its key.
	Wait(key, what string)
	// Done ends a wait.
	Done(key string)
	// Last shows the last line of a wait's output.
	Last(key, text string)
}

// wait is one thing that the program waits for.
type wait struct {
	key, what, last string
	began           time.Time
}

const (
	// The line appears after a short delay, and is redrawn while the wait lasts.
	drawAfter, drawEvery = 250 * time.Millisecond, 250 * time.Millisecond
	// PlainEvery is the interval of plain lines, for users of screen readers.
	PlainEvery = 10 * time.Second
)

// NewScreen returns a screen for the terminal on standard error, and the streams to
// write to from then on. If standard error is not a terminal, it returns nil and the
// given streams.
func NewScreen(out, err io.Writer, env host.Environment, plain bool) (s *Screen, toOut, toErr io.Writer) {
	file, isFile := err.(*os.File)
	if !isFile || !IsTerminal(file) {
		return nil, out, err
	}
	s = &Screen{to: file, plain: plain || env["TERM"] == "dumb", quit: make(chan struct{}), over: make(chan struct{})}
	s.colour = !s.plain && env["NO_COLOR"] == ""
	s.size = func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}
	toOut, toErr = out, &above{s, file}
	if file, ok := out.(*os.File); ok && IsTerminal(file) {
		toOut = &above{s, file}
	}
	go s.run()
	return s, toOut, toErr
}

// Look returns how the screen marks changed words.
func (s *Screen) Look() Look { return LookOf(s.colour, s.plain) }

// TypedBelow is called when a person may type lines at any time. The status lines are then drawn above the
// line on which they type, and again only for other waits: what they type stays readable.
func (s *Screen) TypedBelow() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.typed = true
}

// Entered removes the status lines above a line that was typed below them, and leaves the line.
func (s *Screen) Entered(line string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.drawn) == 0 {
		return
	}
	s.drawn = append(s.drawn, ColumnsOf(line))
	s.erase()
	fmt.Fprintln(s.to, Visible(line))
	s.wrote = time.Now()
}

// Columns returns the width of the screen.
func (s *Screen) Columns() int {
	columns, _ := s.size()
	return columns
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr }) // a file, or a file behind the status line
	return ok && term.IsTerminal(int(f.Fd()))
}

// WidthOf returns the width of the terminal that a stream goes to, or 80.
func WidthOf(w io.Writer) int {
	if file, ok := w.(interface{ Fd() uintptr }); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// above is a stream to the terminal, above the status lines.
type above struct {
	screen *Screen
	file   *os.File
}

// Write removes the status lines first.
func (w *above) Write(b []byte) (int, error) {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if len(b) > 0 {
		s.mid, s.wrote = b[len(b)-1] != '\n', time.Now()
	}
	return w.file.Write(b)
}

// Fd implements the interface that [IsTerminal] needs.
func (w *above) Fd() uintptr { return w.file.Fd() }

func (s *Screen) run() {
	defer close(s.over)
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case now := <-tick.C:
			s.mu.Lock()
			s.draw(now)
			s.mu.Unlock()
		}
	}
}

// Close removes the status lines permanently.
func (s *Screen) Close() {
	if s == nil {
		return
	}
	close(s.quit)
	<-s.over
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = nil
	s.erase()
}

// Wait adds a wait, which lasts until done is called with its key.
func (s *Screen) Wait(key, what string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
	s.waits = append(s.waits, wait{key: key, what: what, began: time.Now()})
	s.stale = true
}

// Done ends a wait.
func (s *Screen) Done(key string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

func (s *Screen) drop(key string) {
	before := len(s.waits)
	s.waits = slices.DeleteFunc(s.waits, func(w wait) bool { return w.key == key })
	s.stale = s.stale || len(s.waits) < before
}

// Last stores the last output line of a wait.
func (s *Screen) Last(key, text string) {
	if s == nil {
		return
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) == "" {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for j := range s.waits {
			if s.waits[j].key == key {
				s.waits[j].last = Shorten(lines[i], 300)
			}
		}
		return
	}
}

// mostWaits is the number of waits that are shown at once, on a screen that is high enough.
const mostWaits = 4

// draw redraws the status lines, one for each wait, the newest last. It does nothing while the cursor is
// within a line.
func (s *Screen) draw(now time.Time) {
	if len(s.waits) == 0 || s.mid {
		s.erase()
		return
	}
	newest := s.waits[len(s.waits)-1]
	if now.Sub(newest.began) < drawAfter || now.Sub(s.wrote) < drawAfter {
		return
	}
	if s.plain {
		if since := now.Sub(laterOf(s.told, newest.began)); since >= PlainEvery {
			s.told = now
			fmt.Fprintf(s.to, "waiting for %s\n", newest.line(now, len(s.waits)-1))
		}
		return
	}
	if s.typed && len(s.drawn) > 0 && !s.stale {
		return
	}
	s.stale = false
	columns, rows := s.size()
	hidden := max(0, len(s.waits)-max(1, min(mostWaits, rows/3)))
	s.erase()
	var text []string
	for i, w := range s.waits[hidden:] {
		more := 0
		if i == 0 {
			more = hidden
		}
		line := "… " + w.line(now, more)
		if s.typed {
			line = "… " + w.since(more)
		}
		line = fitted(line, columns-1)
		s.drawn = append(s.drawn, ColumnsOf(line))
		if s.colour {
			line = "\x1b[2m" + line + "\x1b[0m"
		}
		text = append(text, line)
	}
	if s.typed {
		text = append(text, "") // where the cursor is
	}
	fmt.Fprint(s.to, strings.Join(text, "\n"))
}

// since says what is waited for since when, which stays true.
func (w *wait) since(more int) string {
	line := fmt.Sprintf("%s, since %s", Visible(w.what), w.began.Format(time.TimeOnly))
	if more > 0 {
		line += fmt.Sprintf(" (and %d more)", more)
	}
	return line
}

// line says what is waited for and for how long, and how many others are not shown.
func (w *wait) line(now time.Time, more int) string {
	line := fmt.Sprintf("%s, %s", Visible(w.what), now.Sub(w.began).Truncate(time.Second))
	if more > 0 {
		line += fmt.Sprintf(" (and %d more)", more)
	}
	if w.last != "" {
		line += ": " + Visible(w.last)
	}
	return line
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// erase removes the status lines, which cover several rows each if the terminal has become
// narrower.
func (s *Screen) erase() {
	if len(s.drawn) == 0 {
		return
	}
	columns, _ := s.size()
	rows := -1
	if s.typed {
		rows = 0
	}
	for _, drawn := range s.drawn {
		rows += 1 + max(0, drawn-1)/max(1, columns)
	}
	up := ""
	if rows > 0 {
		up = fmt.Sprintf("\x1b[%dA", rows)
	}
	fmt.Fprint(s.to, up+"\r\x1b[J")
	s.drawn = nil
}

// fitted cuts a text to the given number of columns.
func fitted(s string, columns int) string {
	if ColumnsOf(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		if n += columnsOfRune(r); n > max(0, columns-1) {
			return s[:i] + "…"
		}
	}
	return s
}

// ColumnsOf returns how many columns of a terminal a text takes.
func ColumnsOf(s string) (n int) {
	for _, r := range s {
		n += columnsOfRune(r)
	}
	return n
}

// wide lists the characters that take two columns, including some that take one in
// some terminals: a line that is too short does no harm.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23f3, 1}, {0x2600, 0x27bf, 1}, {0x2b05, 0x2b55, 1}, {0x2e80, 0x303e, 1},
		{0x3041, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f000, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func columnsOfRune(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Visible returns a text with invisible characters as their numbers, see [trust.Visible]. A tab
// counts as four spaces.
func Visible(s string) string { return trust.Visible(strings.ReplaceAll(s, "\t", "    ")) }

// modelKey is the key of the wait for a session's model.
func modelKey(session string) string { return "model " + session }

// CallKey is the key of the wait for a call.
func CallKey(callID string) string { return "call " + callID }

// Asking returns a text that names the model and host of a request.
func Asking(setup *session.Setup) string {
	if setup.Rehearsal {
		return "the rehearsal"
	}
	model := cmp.Or(setup.Model, "the model")
	host := strings.TrimPrefix(strings.TrimPrefix(setup.Endpoint, "https://"), "http://")
	if host, _, _ = strings.Cut(host, "/"); host == "" {
		return model
	}
	return model + " at " + host
}
