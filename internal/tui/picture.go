// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/iterm2"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/charmbracelet/x/ansi/sixel"
)

// Pictures are the ways to show pictures: as well as the terminal says that it can, by blocks of two
// pixels, or not at all.
var Pictures = []string{"auto", "blocks", "off"}

// protocol is how a terminal draws pictures.
type protocol int

const (
	byBlocks protocol = iota
	bySixel
	byITerm
	byKitty
)

// ability is what a terminal has said about pictures.
type ability struct {
	by            protocol
	width, height int           // of a character, in pixels; 0 means not known
	asked         bool          // the questions are sent
	told          chan struct{} // closed when the answers are here
}

const (
	// kittyQuestion is the number of the question whether the terminal knows the protocol of kitty.
	kittyQuestion = 31
	// answerTime is how long the first picture waits for the terminal's answers. Over a slow line
	// it is shown by blocks, and the next ones as the answer says.
	answerTime = time.Second
	// mostPictureRows and mostPictureColumns limit a picture, so that it does not cover what was said.
	mostPictureRows, mostPictureColumns = 20, 80
	// mostOfCell is more pixels than the side of a character has: a terminal that says so is not believed.
	mostOfCell = 1000
)

// questions ask for the protocol of kitty, the name of the terminal, the size of a character, and
// last for what all terminals tell of themselves, so that its answer ends the others.
func questions() string {
	return fmt.Sprintf("\x1b_Gi=%d,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", kittyQuestion) + "\x1b[>q\x1b[16t\x1b[c"
}

// multiplexed reports whether a terminal is a multiplexer such as tmux. It does not know the protocols
// of the terminal around it, and would show its own text over their pictures.
func multiplexed(term string) bool {
	return strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen")
}

// answered notes what the terminal says about pictures.
func (t *Terminal) answered(ev uv.Event) {
	can := &t.can
	better := func(by protocol) { can.by = max(can.by, by) }
	switch ev := ev.(type) {
	case uv.KittyGraphicsEvent:
		if ev.Options.ID == kittyQuestion && string(ev.Payload) == "OK" {
			better(byKitty)
		}
	case uv.TerminalVersionEvent:
		if strings.HasPrefix(ev.Name, "iTerm2") || strings.HasPrefix(ev.Name, "WezTerm") {
			better(byITerm)
		}
	case uv.CellSizeEvent:
		if ev.Width > 0 && ev.Height > 0 && ev.Width < mostOfCell && ev.Height < mostOfCell {
			can.width, can.height = ev.Width, ev.Height
		}
	case uv.PrimaryDeviceAttributesEvent:
		if !can.asked {
			return
		}
		if slices.Contains(ev, 4) && can.height > 0 { // without the size its rows cannot be counted
			better(bySixel)
		}
		select {
		case <-can.told:
		default:
			close(can.told)
		}
	}
}

// ask asks the terminal once what it can, and returns what is known of it after the answers, or
// without them after a while.
func (t *Terminal) ask() ability {
	t.mu.Lock()
	can := &t.can
	if t.opts.Pictures != Pictures[0] || multiplexed(t.opts.Term) {
		defer t.mu.Unlock()
		return ability{}
	}
	if !can.asked {
		can.asked, can.told = true, make(chan struct{})
		can.width, can.height = cellSize(t.opts.Out) // xterm does not answer the question about it
		t.raw = append(t.raw, questions()...)
		t.changed()
	}
	told := can.told
	t.mu.Unlock()
	wait := time.NewTimer(answerTime)
	defer wait.Stop()
	select {
	case <-told:
	case <-wait.C:
	case <-t.left:
	case <-t.quit:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.can
}

// Picture adds a picture to the transcript. It is called with the size that it may have in pixels, and
// is at most that large. It is drawn once, and takes exactly its rows. Picture shows nothing if
// the options say so, or if the terminal has neither pictures nor colours.
func (t *Terminal) Picture(load func(width, height int) (image.Image, error)) error {
	width, height := t.size()
	lines, err := t.opts.picture(t.ask(), width, height, load)
	if err != nil || lines == nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, t.mark.flush()...)
	if t.note != "" {
		t.notes("\n")
	}
	t.lines = append(t.lines, lines...)
	t.changed()
	return nil
}

// Picture returns the lines that draw a picture on a terminal that is not taken over, and that other programs may read: it is
// not asked what it can. The kind and the program of the terminal tell. Picture returns nothing if the options
// say so, or if the terminal has neither pictures nor colours. It needs the fields Out, Colour, Term, Program, Pictures and
// TrueColour.
func (o *Options) Picture(load func(width, height int) (image.Image, error)) ([]string, error) {
	width, height := sizeOf(o.Out)
	return o.picture(o.guessed(), width, height, load)
}

// guessed returns what the kind of terminal and its program tell of its abilities.
func (o *Options) guessed() (can ability) {
	if o.Pictures != Pictures[0] || multiplexed(o.Term) {
		return can
	}
	can.width, can.height = cellSize(o.Out)
	switch {
	case o.Term == "xterm-kitty", o.Term == "xterm-ghostty", o.Program == "ghostty":
		can.by = byKitty
	case o.Program == "iTerm.app", o.Program == "WezTerm":
		can.by = byITerm
	case (o.Term == "foot" || strings.HasPrefix(o.Term, "foot-") || strings.HasPrefix(o.Term, "mlterm")) && can.height > 0:
		can.by = bySixel
	}
	return can
}

// picture returns the lines that draw a picture, or nil if it is not shown.
func (o *Options) picture(can ability, width, height int, load func(width, height int) (image.Image, error)) ([]string, error) {
	columns, rows := min(width-2, mostPictureColumns), min(height/2, mostPictureRows)
	if o.Pictures == "" || o.Pictures == "off" || can.by == byBlocks && !o.Colour || columns < 2 || rows < 1 {
		return nil, nil
	}
	wide, high := 1, 2
	if can.by != byBlocks {
		wide, high = 10, 20
		if can.height > 0 {
			wide, high = can.width, can.height
		}
	}
	img, err := load(columns*wide, rows*high)
	if err != nil {
		return nil, err
	}
	size := img.Bounds().Size()
	if size.X < 1 || size.Y < 1 || size.X > columns*wide || size.Y > rows*high {
		return nil, fmt.Errorf("it has %dx%d pixels, more than there is room for", size.X, size.Y)
	}
	if can.by == byBlocks {
		return blocks(img, o.TrueColour), nil
	}
	columns, rows = (size.X+wide-1)/wide, (size.Y+high-1)/high
	payload, err := encoded(img, can.by, columns, rows)
	return []string{placed(payload, rows)}, err
}

// placed returns a line that draws a picture in so many rows. The rows are made first, so that the
// picture cannot move the screen, and the cursor comes back to its beginning wherever the terminal
// leaves it. The line end that follows goes to the row below the picture.
func placed(payload string, rows int) string {
	line := strings.Repeat("\r\n", rows) + string(move(nil, rows, 'A')) + "\x1b7" + payload + "\x1b8"
	return line + string(move(nil, rows-1, 'B'))
}

// isPlaced reports whether a line draws a picture: no other line has a line end.
func isPlaced(line string) bool { return strings.HasPrefix(line, "\r\n") }

// encoded returns the sequence that draws a picture at the cursor.
func encoded(img image.Image, by protocol, columns, rows int) (string, error) {
	var b bytes.Buffer
	switch by {
	case byKitty:
		err := kitty.EncodeGraphics(&b, img, &kitty.Options{Action: kitty.TransmitAndPut, Transmission: kitty.Direct, Format: kitty.PNG, Quiet: 2, Columns: columns, Rows: rows, DoNotMoveCursor: true, Chunk: true})
		return b.String(), err
	case byITerm:
		if err := png.Encode(&b, img); err != nil {
			return "", err
		}
		return ansi.ITerm2(iterm2.File{
			Size: int64(b.Len()), Inline: true, DoNotMoveCursor: true, IgnoreAspectRatio: true,
			Width: iterm2.Cells(columns), Height: iterm2.Cells(rows), Content: []byte(base64.StdEncoding.EncodeToString(b.Bytes())),
		}), nil
	default:
		err := new(sixel.Encoder).Encode(&b, img)
		return ansi.SixelGraphics(0, 1, 0, b.Bytes()), err
	}
}

// blocks returns a picture as rows of half blocks, each of which shows two pixels. The lower half of
// the last row may be empty.
func blocks(img image.Image, trueColour bool) (lines []string) {
	area := img.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y += 2 {
		var b strings.Builder
		last := ""
		for x := area.Min.X; x < area.Max.X; x++ {
			style, block := "\x1b[0m", " "
			upper, seen := solid(img.At(x, y))
			lower, alsoSeen := color.NRGBA{}, false
			if y+1 < area.Max.Y {
				lower, alsoSeen = solid(img.At(x, y+1))
			}
			switch {
			case seen && alsoSeen:
				style, block = "\x1b["+sgr(38, upper, trueColour)+";"+sgr(48, lower, trueColour)+"m", "▀"
			case seen:
				style, block = "\x1b[0;"+sgr(38, upper, trueColour)+"m", "▀"
			case alsoSeen:
				style, block = "\x1b[0;"+sgr(38, lower, trueColour)+"m", "▄"
			}
			if style != last {
				b.WriteString(style)
				last = style
			}
			b.WriteString(block)
		}
		lines = append(lines, b.String()+reset)
	}
	return lines
}

// solid returns a colour without its transparency, and whether it is seen.
func solid(c color.Color) (color.NRGBA, bool) {
	n, _ := color.NRGBAModel.Convert(c).(color.NRGBA)
	return color.NRGBA{n.R, n.G, n.B, 255}, n.A >= 128
}

// sgr returns the parameters of a colour: of 16 million, or of the 256 that most terminals have.
func sgr(what int, c color.NRGBA, trueColour bool) string {
	if trueColour {
		return fmt.Sprintf("%d;2;%d;%d;%d", what, c.R, c.G, c.B)
	}
	return fmt.Sprintf("%d;5;%d", what, ansi.Convert256(c))
}
