// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// Respond plays the next turn. It implements [server.Backend].
func (s *Server) Respond(ctx context.Context, r *server.Request, w *server.Writer) error {
	if err := check(r); err != nil {
		return err
	}
	if w == nil {
		return errors.New("rehearsal: there is no Writer to answer with")
	}
	a, err := s.answer(r)
	if err != nil {
		return err
	}
	return a.write(ctx, w)
}

// CountTokens returns the input tokens that the usage of a response would report. It
// implements [server.TokenCounter].
func (s *Server) CountTokens(_ context.Context, r *server.Request) (int64, error) {
	if err := check(r); err != nil {
		return 0, err
	}
	return countInput(r), nil
}

// CheckChat implements [server.ChatChecker]. Members that change how a model chooses its words,
// such as seed, have no effect on a script, as temperature has none.
func (s *Server) CheckChat(r *server.Request) error {
	if err := check(r); err != nil {
		return err
	}
	for _, m := range r.Chat {
		if m.Name == "modalities" || m.Name == "audio" {
			return server.Invalid("unsupported_parameter", m.Name, "Unsupported parameter: '%s': the rehearsal model only writes.", m.Name)
		}
	}
	return nil
}

// check returns an error for a request that a server did not make.
func check(r *server.Request) error {
	if r == nil || r.Request == nil {
		return server.Invalid("", "", "there is no request")
	}
	if i := slices.IndexFunc(r.Tools, func(t item.Tool) bool { return nils.Is(t) }); i >= 0 {
		return server.Invalid("", fmt.Sprintf("tools[%d]", i), "the tool is nil")
	}
	return server.CheckToolChoice(r)
}

// answer is one response. It is complete before its first byte is sent.
type answer struct {
	id      string
	in      intake
	pace    time.Duration
	outputs []output
	tail    time.Duration // delay before the end
}

// answer makes the response to a request.
func (s *Server) answer(r *server.Request) (*answer, error) {
	items, err := s.unpacked(r.Items)
	if err != nil {
		return nil, err
	}
	if err = s.overflow(countInput(r)); err != nil {
		return nil, err
	}
	f, err := factsOf(r.Request, items)
	if err != nil {
		return nil, server.Invalid("", "", "%v", err)
	}
	var steps []step
	if !r.WarmUp {
		if steps, err = s.steps(f); err != nil {
			return nil, err
		}
	}
	in := s.seen.take(r)
	a := &answer{id: "resp" + idMark + in.hash, in: in, pace: s.pace()}
	if r.WarmUp {
		a.id += "_warm"
	}
	a.outputs, a.tail = build(steps, naming{in.hash, f.at.total + 1}, r.Request)
	return a, nil
}

// overflow returns an error if the input is longer than the context.
func (s *Server) overflow(tokens int64) error {
	window := s.Window
	if window == 0 && s.Script != nil {
		window = s.Script.window
	}
	if window <= 0 || tokens <= window {
		return nil
	}
	return server.Invalid("context_length_exceeded", "input",
		"Your input exceeds the context window of this model: it has %d tokens, of %d. Please adjust your input and try again.", tokens, window)
}

func (s *Server) pace() time.Duration {
	if s.Pace == 0 && s.Script != nil {
		return s.Script.pace
	}
	return s.Pace
}

// write sends the answer, with the delay of each piece of text.
func (a *answer) write(ctx context.Context, w *server.Writer) error {
	_ = w.Begin(a.id) // later calls return its error again
	for i := range a.outputs {
		o := &a.outputs[i]
		if err := sleep(ctx, o.wait); err != nil {
			return err
		}
		_ = w.Open(o.begin)
		for _, p := range o.pieces {
			if err := a.say(ctx, w, p); err != nil {
				return err
			}
		}
		_ = w.Close()
	}
	if err := sleep(ctx, a.tail); err != nil {
		return err
	}
	w.Usage(usageOf(a.in, w.Response().Output))
	return nil
}

// say sends a piece of text word by word.
func (a *answer) say(ctx context.Context, w *server.Writer, p piece) error {
	if err := sleep(ctx, p.wait); err != nil {
		return err
	}
	for _, word := range words(p.text) {
		if err := sleep(ctx, a.pace); err != nil {
			return err
		}
		if err := w.Delta(word); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// maxWord is the length in bytes at which text without spaces is split.
const maxWord = 24

// words splits a text after white space. The joined words are the text, and no rune
// is split.
func words(text string) []string {
	var list []string
	begin, space := 0, false
	for i, r := range text {
		if isSpace := unicode.IsSpace(r); space && !isSpace || i-begin+utf8.RuneLen(r) > maxWord && !isSpace {
			list = append(list, text[begin:i])
			begin = i
		}
		space = unicode.IsSpace(r)
	}
	if begin < len(text) {
		list = append(list, text[begin:])
	}
	return list
}
