// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
)

// plainFace shows a conversation as lines, without redrawing anything, for screen readers
// and terminals that cannot move the cursor.
type plainFace struct {
	std   Streams
	once  sync.Once
	input chan typedLine
	ahead *typedLine    // a line that was read and is of the next prompt
	over  chan struct{} // closed at the end of the input
	ended sync.Once

	mu    sync.Mutex
	asks  bool // a question waits for a line
	reply chan string

	chosen string // the approval mode
}

func newPlainFace(std Streams) *plainFace {
	return &plainFace{std: std, input: make(chan typedLine, 64), over: make(chan struct{}), reply: make(chan string, 64)}
}

// read reads the lines of the person: answers while a question is asked, prompts otherwise.
func (f *plainFace) read() {
	defer f.ended.Do(func() { close(f.over) })
	for in := bufio.NewReader(f.std.In); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		f.mu.Lock()
		asks := f.asks
		f.mu.Unlock()
		if asks {
			f.reply <- line
		} else {
			f.input <- typedLine{line, time.Now()}
		}
	}
}

// typedLine is a line, and when it was read.
type typedLine struct {
	line string
	at   time.Time
}

// more returns a prompt that begins with a line: with those that follow at once, because they were pasted,
// and those behind a backslash at the end of a line, which a shell line keeps. It reports false if the prompt has
// no end: at the end of the input it is none, and when the context ends it waits for the next call of next.
func (f *plainFace) more(ctx context.Context, first typedLine) (text string, ok bool) {
	text = show.WithoutLineEnd(first.line)
	if strings.HasPrefix(text, "/") {
		return text, true
	}
	for last := first.at; ; {
		before, goesOn := strings.CutSuffix(text, "\\")
		wait := time.After(person.Settle)
		if goesOn {
			wait = nil
		}
		next, ok := f.following(ctx, wait)
		switch {
		case !ok && ctx.Err() != nil:
			f.ahead = &typedLine{text, last}
			return "", false
		case !ok && goesOn:
			f.unsent(text)
			return "", false
		case !ok:
			return text, true
		case !goesOn && next.at.Sub(last) > person.Settle:
			f.ahead = &next
			return text, true
		case goesOn && !strings.HasPrefix(text, "!"):
			text = before
		}
		last = next.at
		text += "\n" + show.WithoutLineEnd(next.line)
	}
}

// following returns the next line, also one that came just before the wait or the input was over.
func (f *plainFace) following(ctx context.Context, wait <-chan time.Time) (next typedLine, ok bool) {
	select {
	case next := <-f.input:
		return next, true
	case <-ctx.Done():
		return next, false
	case <-wait:
	case <-f.over:
	}
	select {
	case next := <-f.input:
		return next, true
	default:
		return next, false
	}
}

func (f *plainFace) start() { f.once.Do(func() { go f.read() }) }

func (f *plainFace) Wait(_, what string) {
	fmt.Fprintf(f.std.Err, "waiting for %s\n", show.Visible(what))
}
func (f *plainFace) Done(string)               {}
func (f *plainFace) Last(_, _ string)          {}
func (f *plainFace) text() io.Writer           { return f.std.Out }
func (f *plainFace) notes() io.Writer          { return f.std.Err }
func (f *plainFace) width() int                { return show.WidthOf(f.std.Out) }
func (f *plainFace) endText()                  {}
func (f *plainFace) status(string)             {}
func (f *plainFace) said(text string)          { fmt.Fprintln(f.std.Err, quotedRows(text)) }
func (f *plainFace) put(text string)           { fmt.Fprintf(f.std.Err, "it was:\n%s\n", show.Printable(text)) }
func (f *plainFace) suggest(string)            {} // nobody asks for one
func (f *plainFace) sent(string)               {}
func (f *plainFace) unsent(string)             { fmt.Fprintln(f.std.Err, "(the message was not sent)") }
func (f *plainFace) remember([]string, string) {}
func (f *plainFace) mode() string              { return cmp.Or(f.chosen, modeAsk) }
func (f *plainFace) setMode(name string)       { f.chosen = name }
func (f *plainFace) modeApplies(bool)          {}
func (f *plainFace) close() error              { return nil }

// quotedRows marks each row of what somebody said, so that none looks like one of the program.
func quotedRows(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(show.Printable(text), "\n"), "\n", "\n> ")
}

func (f *plainFace) copy(string) error {
	return errors.New("a plain terminal has no clipboard that could be reached")
}

func (f *plainFace) complete(func(command, begin string) []string) {}

func (f *plainFace) pasting(func() (string, error)) {}
func (f *plainFace) allKeys() bool                  { return false }
func (f *plainFace) browse(tui.Outline)             {}

// edit fails: the program waits for lines of the terminal, which an editor would need.
func (f *plainFace) edit(string, string) (string, error) { return "", tui.ErrNoEditor }

func (f *plainFace) theme(string) error { return errors.New("a plain terminal has no colours") }

func (f *plainFace) lines() io.Reader { return &plainAnswers{f: f} }

type plainAnswers struct {
	f    *plainFace
	rest string
}

func (a *plainAnswers) Read(b []byte) (int, error) {
	a.f.start()
	if a.rest == "" {
		select {
		case a.rest = <-a.f.reply:
		case <-a.f.over:
			return 0, io.EOF
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (f *plainFace) asking(bool) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asks = false
	}
}

func (f *plainFace) next(ctx context.Context) (string, error) {
	f.start()
	for {
		fmt.Fprint(f.std.Err, "> ")
		first := f.ahead
		if f.ahead = nil; first == nil {
			if line, ok := f.following(ctx, nil); ok {
				first = &line
			}
		}
		if first != nil {
			if text, ok := f.more(ctx, *first); ok && strings.TrimSpace(text) != "" {
				return text, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(f.std.Err)
			return "", context.Cause(ctx)
		case first == nil:
			fmt.Fprintln(f.std.Err)
			return "", io.EOF
		}
	}
}

// watching is working for what another program does.
func (f *plainFace) watching(stop func(), steer func(string) error) (end func()) {
	return f.working(stop, steer)
}

// working says every ten seconds that the work goes on. U4
func (f *plainFace) working(stop func(), _ func(string) error) (end func()) {
	over := make(chan struct{})
	began := time.Now()
	go func() {
		tick := time.NewTicker(show.PlainEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				f.goesOn(time.Since(began))
			}
		}
	}()
	return func() { close(over) }
}

// goesOn says that the work goes on, unless it waits for the person's answer.
func (f *plainFace) goesOn(since time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asks {
		fmt.Fprintf(f.std.Err, "still working, %s\n", since.Truncate(time.Second))
	}
}
