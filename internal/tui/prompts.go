// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"io"
	"slices"
	"time"
)

// This file is about what the person says: prompts, the work that they may stop or steer, answers to
// questions, and the approval mode.

// Next waits for the next prompt and shows it in the transcript. It returns [io.EOF] when
// the person leaves. The prompt stays in the file of the draft until [Terminal.Sent] or
// [Terminal.Unsent].
func (t *Terminal) Next(ctx context.Context) (string, error) {
	for {
		t.mu.Lock()
		if t.leaving {
			t.mu.Unlock()
			return "", io.EOF
		}
		if len(t.queue) > 0 {
			text := t.queue[0]
			t.queue = t.queue[1:]
			t.taken = append(t.taken, text)
			t.say("› ", text)
			t.mu.Unlock()
			return text, nil
		}
		t.mu.Unlock()
		select {
		case <-t.ready:
		case <-t.left:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// Suggest shows what the person may want to say next, while the draft is empty and nothing works. Tab takes it into the
// draft. "" takes it back.
func (t *Terminal) Suggest(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suggest = text
	t.changed()
}

// suggested returns what Tab takes into the draft, or "".
func (t *Terminal) suggested() string {
	if t.compose.text != "" || t.asking || t.pending || t.stop != nil || t.find.on || t.line != nil || len(t.queue) > 0 {
		return ""
	}
	return t.suggest
}

// Sent says that a prompt of [Terminal.Next] is kept elsewhere, or needs not be kept. A text that
// is none changes nothing.
func (t *Terminal) Sent(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forget(text) {
		t.keep()
	}
}

// Unsent puts a prompt of [Terminal.Next] back into the draft, before what is there.
func (t *Terminal) Unsent(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(text)
	t.put(text)
	t.changed()
}

func (t *Terminal) forget(text string) bool {
	i := slices.Index(t.taken, text)
	if i >= 0 {
		t.taken = slices.Delete(t.taken, i, i+1)
	}
	return i >= 0
}

// Working says that the program works until end is called: stop ends the work, and steer
// says something to it.
func (t *Terminal) Working(stop func(), steer func(string) error) (end func()) {
	return t.work(stop, steer, false)
}

// Watching is like Working, for the work of another program: it does not end when the person
// leaves.
func (t *Terminal) Watching(stop func(), steer func(string) error) (end func()) {
	return t.work(stop, steer, true)
}

func (t *Terminal) work(stop func(), steer func(string) error, others bool) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.steer, t.others, t.worked = stop, steer, others, time.Now()
	if t.leaving && !t.lost && !others {
		stop()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stop, t.steer, t.waits = nil, nil, nil
		if took := time.Since(t.worked); took > longWork {
			t.ring("the work has ended after " + took.Truncate(time.Second).String())
		}
		t.changed()
	}
}

// Ask says that the next line is the answer to a question, until end is called. What was
// written before stays a draft. So does what is typed in the first moment: see grace. Commands are no answers and are
// queued; words says that any text may be the answer, so that only /fullscreen and /quit are commands.
func (t *Terminal) Ask(words bool) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asking && !t.pending {
		t.pending, t.quiet = true, time.Time{}
		t.ring("a question waits for you")
	}
	t.words = words
	t.changed()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asking {
			t.compose.resume(t.stashed)
			t.stashed = composer{}
		}
		t.asking, t.pending = false, false
		t.changed()
	}
}

// grace is how long a question must have been on the screen, without a key, before keys are its answer:
// somebody who types when it comes has not read it. Until then keys mean the draft, and nothing is sent.
const grace = 300 * time.Millisecond

// takeUp gives the keys to the question that waits, if it has been shown long enough.
func (t *Terminal) takeUp(now time.Time) {
	if !t.pending || t.quiet.IsZero() || now.Sub(t.quiet) < grace {
		return
	}
	t.endFind()
	if t.first.name != "" { // it was for the draft
		t.first, t.hint = viKey{}, ""
	}
	t.pending, t.asking, t.stashed = false, true, t.compose
	t.compose.resume(composer{})
}

// calm notes that the question is shown, or that a key was pressed.
func (t *Terminal) calm(now time.Time) {
	t.quiet = now
	time.AfterFunc(grace, t.changed)
}

// longWork is the time after which the end of work is worth a notice.
const longWork = 10 * time.Second

// Mode returns which of the Modes the person has chosen, or "" if there are none.
func (t *Terminal) Mode() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.opts.Modes) == 0 {
		return ""
	}
	return t.opts.Modes[t.mode]
}

// SetMode chooses one of the Modes. Others change nothing.
func (t *Terminal) SetMode(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.opts.Modes, name); i >= 0 {
		t.mode = i
	}
	t.changed()
}

// ModeApplies says whether the mode has an effect: it has none on what another program does.
func (t *Terminal) ModeApplies(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modeOff = !yes
	t.changed()
}

// Lines returns the answers to questions as lines.
func (t *Terminal) Lines() io.Reader { return &answers{t: t} }

type answers struct {
	t    *Terminal
	rest string
}

func (a *answers) Read(b []byte) (int, error) {
	if a.rest == "" {
		select {
		case line := <-a.t.answer:
			a.rest = line + "\n"
		case <-a.t.left:
			return 0, io.EOF
		case <-a.t.quit:
			return 0, io.EOF
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
