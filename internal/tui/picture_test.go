// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	uv "github.com/charmbracelet/ultraviolet"
)

// picture adds a picture of so many pixels in each direction, if there is room, and returns its rows.
func (b *bench) picture(t interface{ Fatalf(string, ...any) }, by protocol, pixels int) (rows int) {
	b.t.opts.Pictures = "auto"
	lines, err := b.t.opts.picture(ability{by: by, width: 6, height: cellHeight}, b.vt.width, b.vt.height, func(width, height int) (image.Image, error) {
		img := image.NewRGBA(image.Rect(0, 0, min(pixels, width), min(pixels, height)))
		rows = (img.Rect.Dy() + cellHeight - 1) / cellHeight
		return img, nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	b.t.lines = append(append(b.t.lines, b.t.mark.flush()...), lines...)
	return rows
}

// TestBlocks pins the half blocks of a picture, in both kinds of colours.
func TestBlocks(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 3, 3))
	red, blue := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}
	img.Set(0, 0, red)
	img.Set(0, 1, blue)
	img.Set(1, 0, red)
	img.Set(1, 1, blue)
	img.Set(2, 1, blue)
	img.Set(0, 2, red)
	if got, want := blocks(img, true), []string{
		"\x1b[38;2;255;0;0;48;2;0;0;255m▀▀\x1b[0;38;2;0;0;255m▄\x1b[0m",
		"\x1b[0;38;2;255;0;0m▀\x1b[0m  \x1b[0m",
	}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if got, want := blocks(img, false)[0], "\x1b[38;5;196;48;5;21m▀▀\x1b[0;38;5;21m▄\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAbility proves that a protocol is used only if the terminal has answered that it has it, and the
// best one of several; and that tmux is not asked.
func TestAbility(t *testing.T) {
	ok := func(text string) uv.Event {
		return uv.KittyGraphicsEvent{Options: kitty.Options{ID: kittyQuestion}, Payload: []byte(text)}
	}
	size := uv.CellSizeEvent{Width: 8, Height: 16}
	for _, c := range []struct {
		name   string
		events []uv.Event
		want   protocol
	}{
		{"nothing", []uv.Event{uv.PrimaryDeviceAttributesEvent{62, 22}}, byBlocks},
		{"kitty", []uv.Event{ok("OK"), size, uv.PrimaryDeviceAttributesEvent{62, 4}}, byKitty},
		{"a refusal", []uv.Event{ok("ENOTSUP"), uv.PrimaryDeviceAttributesEvent{62}}, byBlocks},
		{"iterm", []uv.Event{uv.TerminalVersionEvent{Name: "iTerm2 3.5.4"}, size, uv.PrimaryDeviceAttributesEvent{62, 4}}, byITerm},
		{"sixel", []uv.Event{uv.TerminalVersionEvent{Name: "XTerm(390)"}, size, uv.PrimaryDeviceAttributesEvent{63, 4}}, bySixel},
		{"sixel without a size", []uv.Event{uv.PrimaryDeviceAttributesEvent{63, 4}}, byBlocks},
	} {
		b := newBench(t, 80, 24, true)
		b.t.opts.Pictures, b.t.quit = "auto", make(chan struct{})
		found := make(chan ability)
		go func() { found <- b.t.ask() }()
		<-b.t.wake
		b.t.mu.Lock()
		raw := string(b.t.raw)
		b.t.mu.Unlock()
		if raw != questions() {
			t.Errorf("%s: asked %q", c.name, raw)
		}
		for _, ev := range c.events {
			b.t.event(ev)
		}
		if can := <-found; can.by != c.want {
			t.Errorf("%s: got %d, want %d", c.name, can.by, c.want)
		}
	}
	b := newBench(t, 80, 24, true)
	b.t.opts.Pictures, b.t.opts.Term = "auto", "tmux-256color"
	if can := b.t.ask(); can.by != byBlocks || len(b.t.raw) > 0 {
		t.Errorf("tmux: %v, %q", can, b.t.raw)
	}
}

// TestPicture proves that a picture ends the line before it, has its rows, is left out by setting and
// without colours, and that the error of a picture that cannot be read shows nothing.
func TestPicture(t *testing.T) {
	load := func(width, height int) (image.Image, error) {
		return image.NewRGBA(image.Rect(0, 0, min(4, width), min(6, height))), nil
	}
	for setting, rows := range map[string]int{"blocks": 3, "off": 0, "": 0} {
		b := newBench(t, 80, 24, true)
		b.t.opts.Pictures = setting
		b.t.mark.write("before")
		if err := b.t.Picture(load); err != nil {
			t.Fatal(err)
		}
		b.end()
		if got := len(b.vt.lines) - 1; got != max(1, rows+1) {
			t.Errorf("%s: %d lines: %q", setting, got, b.vt.text())
		}
	}
	b := newBench(t, 80, 24, false)
	b.t.opts.Pictures = "blocks"
	if err := b.t.Picture(load); err != nil || len(b.t.lines) > 0 {
		t.Errorf("without colours: %v, %q", err, b.t.lines)
	}
	b.t.opts.Colour = true
	wrong := errors.New("wrong")
	if err := b.t.Picture(func(int, int) (image.Image, error) { return nil, wrong }); err != wrong || len(b.t.lines) > 0 {
		t.Errorf("%v, %q", err, b.t.lines)
	}
	huge := func(width, height int) (image.Image, error) {
		return image.NewRGBA(image.Rect(0, 0, width+1, height)), nil
	}
	if err := b.t.Picture(huge); err == nil {
		t.Error("a picture that is too large is drawn")
	}
}

// TestEncoded pins what the sequences say of the size, and that terminals need not answer.
func TestEncoded(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 20, 30))
	for by, want := range map[protocol][]string{
		byKitty: {"\x1b_G", "f=100", "q=2", "c=3", "r=2", "C=1", "a=T"},
		byITerm: {"\x1b]1337;File=", "width=3", "height=2", "inline=1", "preserveAspectRatio=0"},
		bySixel: {"\x1bP0;1q\"1;1;20;30"},
	} {
		got, err := encoded(img, by, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%d: no %q in %.100q", by, part, got)
			}
		}
		if ansi.Strip(got) != "" {
			t.Errorf("%d: text is left: %.100q", by, ansi.Strip(got))
		}
	}
}

// TestPictureTranscript proves that text, notes and pictures of all protocols stand in the terminal in
// order, each row once, whatever is drawn when.
func TestPictureTranscript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, rapid.IntRange(12, 100).Draw(r, "width"), rapid.IntRange(6, 40).Draw(r, "height"), rapid.Bool().Draw(r, "colour"))
		var said []string
		pictures := 0
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			word := fmt.Sprintf("w%d.", len(said))
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				b.draw(r)
			case 1:
				b.t.notes("\n" + word + " a note\n")
				said = append(said, word)
			case 2:
				b.t.lines = append(b.t.lines, b.t.mark.write(word+" ")...)
				said = append(said, word)
			default:
				by := rapid.SampledFrom([]protocol{bySixel, byITerm, byKitty}).Draw(r, "protocol")
				for i := range b.picture(r, by, rapid.IntRange(1, 300).Draw(r, "pixels")) {
					said = append(said, fmt.Sprintf("p%d.%d.", pictures, i))
				}
				pictures++
			}
		}
		b.end()
		all, at := strings.Join(b.vt.text(), ""), 0
		for _, w := range said {
			i := strings.Index(all[at:], w)
			if strings.Count(all, w) != 1 || i < 0 {
				r.Fatalf("%s is there %d times, in order: %v:\n%s", w, strings.Count(all, w), i >= 0, all)
			}
			at += i
		}
	})
}

// TestGuessed proves that a terminal that is not asked gets what its kind and its program can, and half blocks otherwise.
func TestGuessed(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Term: "xterm-kitty"}, "\x1b_G"},
		{Options{Term: "xterm-256color", Program: "ghostty"}, "\x1b_G"},
		{Options{Term: "xterm-256color", Program: "iTerm.app"}, "\x1b]1337;"},
		{Options{Term: "xterm-256color", Program: "WezTerm"}, "\x1b]1337;"},
		{Options{Term: "xterm-256color"}, "▀"},
		{Options{Term: "foot"}, "▀"}, // its rows cannot be counted
		{Options{Term: "tmux-256color", Program: "iTerm.app"}, "▀"},
		{Options{Term: "xterm-kitty", Pictures: "blocks"}, "▀"},
		{Options{Term: "xterm-kitty", Pictures: "off"}, ""},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if c.o.Out, c.o.Colour = out, true; c.o.Pictures == "" {
			c.o.Pictures = "auto"
		}
		lines, err := c.o.Picture(func(int, int) (image.Image, error) {
			img := image.NewRGBA(image.Rect(0, 0, 2, 2))
			draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
			return img, nil
		})
		if got := strings.Join(lines, "\n"); err != nil || !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q, %v", c.o, got, err)
		}
	}
}
