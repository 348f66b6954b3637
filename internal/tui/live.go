// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"
)

// redraw draws what changed.
func (t *Terminal) redraw() {
	t.mu.Lock()
	width, height := t.size()
	if err := t.switchFull(width, height); err != nil {
		t.fail(err)
	}
	t.restores()
	if t.full.on {
		b := t.paint(width, height, t.clock())
		t.mu.Unlock()
		if b != nil {
			_, err := t.screen.out.Write(b)
			t.drew(err)
		}
		return
	}
	next := t.inline(width, height, t.clock())
	lines, raw := t.themed(t.lines), t.raw
	t.pass(t.lines)
	t.lines, t.raw = nil, nil
	t.mu.Unlock()
	if len(lines) == 0 && len(raw) == 0 && width == t.screen.width && t.screen.same(next) {
		return
	}
	t.screen.raw = raw
	t.drew(t.screen.draw(width, lines, next))
}

// drew notes whether the terminal could be written to.
func (t *Terminal) drew(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	t.fail(err)
	t.mu.Unlock()
	t.gone()
}

// inline returns the live part below the transcript, with a drawn cursor.
func (t *Terminal) inline(width, height int, now time.Time) frame {
	f := t.live(width, height, now)
	f.rows[f.row] = withCursor(f.rows[f.row], f.col)
	f.rows = t.themed(f.rows)
	return f
}

// mostRows returns how many rows the live part may take: a third of the screen, but room for
// a line of the draft and the status.
func mostRows(height int) int { return max(2, height/3) }

// live returns the live part. Lines of the text that do not fit leave it.
func (t *Terminal) live(width, height int, now time.Time) (f frame) {
	width = max(2, width-1) // a row that fills the screen would wrap
	left := mostRows(height)

	if t.pending && t.quiet.IsZero() {
		t.calm(now)
	}
	t.takeUp(now)
	prompt := "› "
	if t.asking {
		prompt = "? "
	}
	if width < 8 {
		prompt = ""
	}
	draft, row, col := t.compose.rows(prompt, width, max(1, left-1))
	if len(t.note) > 0 || len(t.waits) > 0 { // others need room too
		draft, row, col = t.compose.rows(prompt, width, max(1, left/2))
	}
	left -= len(draft)
	if text := t.suggested(); text != "" && len(draft) == 1 {
		row := "Tab: " + strings.ReplaceAll(Shown(text), "\n", " ") // behind the cursor
		draft[0] = prompt + " " + t.styled(fitted(row, max(1, width-columns(prompt)-1)), dim)
	}

	var below []string
	if hint := t.below(now); hint != "" && left > min(1, len(t.note)) { // a question comes before it
		below = append(below, t.styled(fitted(hint, width), dim))
		left--
	}
	var above []string
	if t.note != "" {
		rows := wrapped(t.note, width)
		above = rows[max(0, len(rows)-max(1, left)):]
		left -= len(above)
	}
	queued := t.queued(width, min(2, max(0, left-1)))
	left -= len(queued)
	works := t.works(width, max(0, left-1), now)
	left -= len(works)
	finished, tail := t.mark.shown(width, left)
	t.lines = append(t.lines, finished...)
	if t.opts.Still {
		tail = nil
	}

	f.rows = append(f.rows, tail...)
	f.rows = append(f.rows, works...)
	f.rows = append(f.rows, above...)
	f.rows = append(f.rows, queued...)
	f.row, f.col = len(f.rows)+row, col
	f.rows = append(append(f.rows, draft...), below...)
	return f
}

// below returns the line below the draft.
func (t *Terminal) below(now time.Time) string {
	if t.find.on {
		return "search in what you said: " + t.find.query + " (Ctrl-R: older, Esc: back)"
	}
	if t.line != nil && !t.asking {
		return t.lineMark + *t.line
	}
	if t.hint != "" {
		return t.hint
	}
	if found := t.matching(); found != "" && t.shut != t.compose.text {
		return found
	}
	status := t.status
	if t.mode > 0 && !t.modeOff {
		status = strings.TrimSuffix("mode "+t.opts.Modes[t.mode]+" · "+status, " · ")
	}
	name := t.vi.name(t.drafted())
	if t.full.selects {
		name = "VISUAL LINE"
	}
	if name != "" {
		status = strings.TrimSuffix(name+" · "+status, " · ")
	}
	if t.full.held {
		status = strings.TrimSuffix("scrolled, Ctrl-End: to the end · "+status, " · ")
	}
	if t.stop != nil && !t.asking {
		stops := "Esc stops"
		if took := t.passed(t.worked, now); took >= time.Second {
			stops += ", " + took.String()
		}
		status = strings.TrimSuffix(stops+" · "+status, " · ")
	}
	return status
}

// passed returns the time since a moment, as it is shown.
func (t *Terminal) passed(since, now time.Time) time.Duration {
	step := time.Second
	if t.opts.Still {
		step = 10 * time.Second
	}
	return now.Sub(since).Truncate(step)
}

// queued returns rows of the prompts that wait.
func (t *Terminal) queued(width, most int) (rows []string) {
	if len(t.queue) == 0 || most == 0 {
		return nil
	}
	for i, text := range t.queue {
		if i == most-1 && len(t.queue) > most {
			return append(rows, t.styled(fitted(fmt.Sprintf("  and %d more queued", len(t.queue)-i), width), dim))
		}
		rows = append(rows, t.styled(fitted("  queued: "+strings.ReplaceAll(Shown(text), "\n", " "), width), dim))
	}
	return rows
}

// works returns rows of what the program waits for, oldest first.
func (t *Terminal) works(width, most int, now time.Time) (rows []string) {
	if len(t.waits) == 0 || most == 0 {
		return nil
	}
	for i, w := range t.waits {
		if i == most-1 && len(t.waits) > most {
			return append(rows, t.styled(fitted(fmt.Sprintf("· and %d more", len(t.waits)-i), width), dim))
		}
		line := fmt.Sprintf("· %s, %s", w.what, t.passed(w.began, now))
		if w.last != "" {
			line += ": " + w.last
		}
		rows = append(rows, t.styled(fitted(line, width), dim))
	}
	return rows
}
