// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// terminalSize says how much is measured.
type terminalSize struct {
	starts        int // of the program, for each figure
	entries, many int // of the conversation in which somebody types, and of a long one
	keys, lines   int
}

// terminalRow measures what a person feels who uses antiphon chat: the program itself in a
// pseudo-terminal, with the rehearsal model.
func terminalRow(size terminalSize) row {
	took := sync.OnceValue(func() terminal { return measureTerminal(size) })
	of := func(figure func(terminal) float64) func(result) float64 {
		return func(result) float64 { return figure(took()) }
	}
	return row{
		name: "antiphon chat in a terminal", unit: "key", units: size.keys, maxAllocs: -1,
		bars: []bar{
			most("ms from the start to the first frame, median", of(func(t terminal) float64 { return t.first }), 40, 25),
			most(fmt.Sprintf("ms from the start to the end of a conversation of %d entries, median", size.many), of(func(t terminal) float64 { return t.open }), 100, 75),
			most(fmt.Sprintf("ms from a key to the screen while a reply arrives in a conversation of %d entries, 99th percentile", size.entries), of(func(t terminal) float64 { return t.key[1] }), 16, 8),
			least("deltas a second meanwhile", of(func(t terminal) float64 { return t.rate }), 400, 450),
			most(fmt.Sprintf("KB of memory that %d more lines take in the terminal", size.lines), of(func(t terminal) float64 { return t.kb }), 256, 64),
		},
		note: func() string {
			t := took()
			text := fmt.Sprintf("Time that passes, but for the last figure. The median of the keys is %.2f ms. The first frame waits for no session and no model. The conversation of %d entries takes %.0f ms, and a new one takes %.1f MB of memory as the system counts it, the long one %.1f MB: a session keeps its entries at hand, and the terminal none of them.",
				t.key[0], size.entries, t.openLess, t.rss[0], t.rss[1])
			if t.err != nil {
				text += " It failed: " + t.err.Error() + "."
			}
			return text
		},
	}
}

// terminal holds the figures of the row: times in milliseconds.
type terminal struct {
	first, open, openLess, rate, kb float64
	key                             [2]float64 // median and 99th percentile
	rss                             [2]float64 // MB of a new conversation and of the long one
	err                             error
}

// measureTerminal measures all figures.
func measureTerminal(size terminalSize) terminal {
	nan := math.NaN()
	t := terminal{first: nan, open: nan, openLess: nan, rate: nan, kb: nan, key: [2]float64{nan, nan}, rss: [2]float64{nan, nan}}
	if t.kb, t.err = linesMemory(size.lines); t.err != nil {
		return t
	}
	c, err := newChats()
	if c != nil {
		defer c.remove()
	}
	if err != nil {
		t.err = err
		return t
	}
	for _, measure := range []func() error{
		func() error { return c.hold("talk-some", size.entries) },
		func() error { return c.hold("talk-many", size.many) },
		func() (err error) { t.first, t.rss[0], err = c.starts("talk-new", size.starts, "›"); return err },
		func() (err error) { t.open, t.rss[1], err = c.starts("talk-many", size.starts, lastWords); return err },
		func() (err error) { t.openLess, _, err = c.starts("talk-some", size.starts, lastWords); return err },
		func() error { return c.types(&t, size.keys) },
	} {
		if t.err = measure(); t.err != nil {
			return t
		}
	}
	return t
}

// linesMemory returns the kilobytes of memory that more lines take in the terminal.
func linesMemory(lines int) (kb float64, err error) {
	p, tty, err := openPane()
	if err != nil {
		return 0, err
	}
	defer p.close()
	defer func() { _ = tty.Close() }()
	t, err := tui.Open(tui.Options{In: tty, Out: tty, Colour: true, Term: "xterm-256color"})
	if err != nil {
		return 0, err
	}
	write := func(n int, last string) error {
		for i := range n {
			if _, err := fmt.Fprintf(t.Text(), "Line %d of **a reply** that goes on.\n", i); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(t.Text(), last)
		if err == nil {
			_, _, err = p.until(last, 0)
		}
		p.forget()
		return err
	}
	// What is made once is made by the first lines.
	err = write(1000, "first")
	before := memoryInUse()
	err = errors.Join(err, write(lines, "last"))
	during := memoryInUse()
	return float64(int64(during-before)) / 1000, errors.Join(err, t.Close())
}

// chats is a folder with an agent, its sessions and the program.
type chats struct {
	dir, program string
}

const (
	lastWords = "the last words"
	// deltaEvery is the pace of the reply: 500 deltas a second.
	deltaEvery = 2 * time.Millisecond
)

func newChats() (*chats, error) {
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		return nil, err
	}
	c := &chats{dir: dir, program: filepath.Join(dir, "antiphon")}
	// Each word of a script's text is a delta.
	words := strings.Repeat("A reply with **strong words** and `code` that goes on and on until nobody types any more.\n    ", 4000)
	return c, errors.Join(
		buildAntiphon(c.program),
		os.WriteFile(filepath.Join(dir, "agent.md"), []byte("<config model=\"rehearsal:agent.script\"/>\n<system>Help.</system>\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "agent.script"), fmt.Appendf(nil, "pace %v\nturn\n  say Hello.\nagain\nturn\n  say\n    %s\n", deltaEvery, words), 0o600))
}

func (c *chats) remove() { _ = os.RemoveAll(c.dir) }

// command returns a command of the program, which knows nothing of the user.
func (c *chats) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.program, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TERM=xterm-256color", "LANG=C.UTF-8"}
	return cmd
}

// chat opens a conversation in a terminal.
func (c *chats) chat(name string) (*pane, error) {
	return startPane(c.command("chat", "agent.md", "--store", "s.db", "--session", name))
}

// hold makes a session of so many entries: messages, calls and replies.
func (c *chats) hold(name string, entries int) (err error) {
	if out, err := c.command("run", "agent.md", "--store", "s.db", "--session", name, "Hello.").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(c.dir, "s.db"), openSQLite, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for info, err := range store.List(ctx, session.Query{Name: name}) {
		if err != nil {
			return err
		}
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			return err
		}
		for n := int(info.Entries); n < entries; {
			var bodies []session.Body
			for range 200 { // exchanges in one write
				bodies = append(bodies, exchange(n+len(bodies))...)
				if n+len(bodies) >= entries {
					break
				}
			}
			if _, err := s.Append(ctx, bodies...); err != nil {
				return err
			}
			n += len(bodies)
		}
		return nil
	}
	return fmt.Errorf("no session %s", name)
}

// exchange returns the entries of a message, a call and a reply.
func exchange(n int) []session.Body {
	id := fmt.Sprintf("call_before_%d", n)
	reply, err := item.ParseString(fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"The file has **%d** lines. These are %s."}]}`, n, n, lastWords))
	if err != nil {
		panic(err)
	}
	return []session.Body{
		session.RunStarted{}, session.InputItem{Item: item.User(fmt.Sprintf("How many lines has the file %d?", n))},
		session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Call(id, "read_file", `{"path":"notes.txt"}`)},
		session.TurnEnded{Turn: 1, ResponseID: "resp_1", Status: item.StatusCompleted},
		session.Approval{CallID: id, Allowed: true}, session.CallStarted{CallID: id},
		session.CallOutput{CallID: id, Item: item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Text(fileText)})},
		session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: reply},
		session.TurnEnded{Turn: 2, ResponseID: "resp_2", Status: item.StatusCompleted},
		session.Stopped{Why: "end_turn"},
	}
}

// starts returns the median of the milliseconds from the start of the program to a text, and
// the megabytes of memory that it takes then.
func (c *chats) starts(name string, n int, text string) (ms, rss float64, err error) {
	var times []time.Duration
	for range n {
		p, err := c.chat(name)
		if err != nil {
			return 0, 0, err
		}
		at, _, err := p.until(text, 0)
		if err == nil {
			_, _, err = p.until(name, 0) // the status line has it when the session is open
		}
		rss = residentMB(p.cmd.Process.Pid)
		p.close()
		if err != nil {
			return 0, 0, err
		}
		times = append(times, at.Sub(p.began))
	}
	return float64(median(times)) / 1e6, rss, nil
}

// residentMB returns the memory of a process as the system counts it, or NaN.
func residentMB(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return math.NaN()
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb := math.NaN()
	_, _ = fmt.Sscan(rest, &kb)
	return kb / 1000
}

// types types while a reply arrives.
func (c *chats) types(t *terminal, keys int) error {
	p, err := c.chat("talk-some")
	if err != nil {
		return err
	}
	defer p.close()
	_, at, err := p.until(lastWords, 0)
	if err == nil {
		_, at, err = p.until("talk-some", at)
	}
	if err == nil {
		_, err = p.keys("go\r")
	}
	if err == nil {
		_, _, err = p.until("strong words", at)
	}
	var times []time.Duration
	chance := rand.New(rand.NewPCG(1, 2))
	began, from := time.Now(), p.place()
	draft := ""
	for n := 0; n < keys && err == nil; n++ {
		time.Sleep(time.Duration(5+chance.IntN(30)) * time.Millisecond) // not in step with frames
		if len(draft) == 40 {
			draft = ""
			_, err = p.keys("\x15") // ctrl+u
			continue
		}
		key := string(rune('a' + (n+n/41)%26))
		draft += key
		place := p.place()
		pressed, failed := p.keys(key)
		seen, _, late := p.until("› "+draft, place)
		times, err = append(times, seen.Sub(pressed)), errors.Join(failed, late)
	}
	if err != nil {
		return err
	}
	// Each sentence of the reply has 17 words.
	p.mu.Lock()
	sentences := bytes.Count(p.shown[from:], []byte("types any more."))
	p.mu.Unlock()
	t.rate = float64(17*sentences) / time.Since(began).Seconds()
	t.key = spread(times)
	return nil
}

// buildAntiphon builds the program.
func buildAntiphon(program string) error {
	cmd := exec.Command("go", "build", "-o", program, "./cmd/antiphon")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
