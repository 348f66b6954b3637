// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
)

// pictureTime is how long decoding a picture may take before it is left out.
const pictureTime = 5 * time.Second

// Depict tells of an image, given its data URI, and has it drawn. It is decoded in a process of its own, as it may be a
// stranger's. An image that has another URI is not fetched.
func (p *Printer) Depict(ctx context.Context, name, uri string, draw func(load func(width, height int) (image.Image, error)) error) {
	kind, payload, isData := item.CutDataURI(uri)
	if !isData {
		p.Tell(Dim, "   image %s, %s, not fetched", Visible(name), Visible(Shorten(uri, 200)))
		return
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		p.Tell(Dim, "   image %s, not shown: its base64 is damaged", Visible(name))
		return
	}
	p.Tell(Dim, "   image %s, %s, %s", Visible(name), Visible(kind), BytesInWords(len(data)))
	ctx, stop := context.WithTimeoutCause(ctx, pictureTime, errors.New("it takes too long to decode"))
	defer stop()
	err = draw(func(width, height int) (image.Image, error) {
		return decode.Images{}.Pixels(ctx, data, width, height)
	})
	if err != nil {
		p.Tell(Dim, "   not shown: %s", Shorten(err.Error(), 200))
	}
}

// DepictOn has the images of tools and of the model drawn on a screen, below their rows. The terminal is not asked what
// it can, because others may read it.
func (p *Printer) DepictOn(ctx context.Context, s *Screen, env host.Environment) {
	if s == nil || s.plain {
		return
	}
	on := pictureOptions(env)
	on.Out, on.Colour = s.to, p.Colour
	p.Picture = func(name, uri string) {
		p.Depict(ctx, name, uri, func(load func(width, height int) (image.Image, error)) error {
			lines, err := on.Picture(load)
			for _, line := range lines {
				p.line(line)
			}
			return err
		})
	}
}

// pictureOptions returns what the environment says of pictures on a terminal.
func pictureOptions(env host.Environment) tui.Options {
	how, _ := PictureWay(env) // the run has begun, so it is right
	return tui.Options{
		Pictures: how, Term: env["TERM"], Program: env["TERM_PROGRAM"],
		TrueColour: env["COLORTERM"] == "truecolor" || env["COLORTERM"] == "24bit",
	}
}

// BytesInWords returns a size as people say it.
func BytesInWords(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return Plural(n, "byte")
}

// PicturesIn calls show for each image of a content.
func PicturesIn(parts []item.Part, show func(uri string)) {
	for _, part := range parts {
		if p, ok := part.(*item.InputImage); ok && p.ImageURL != "" {
			show(p.ImageURL)
		}
	}
}

// generated returns the data URI of an image that the endpoint made, or "".
func generated(it item.Item) string {
	if it.Type() != item.TypeImageGenerationCall {
		return ""
	}
	call, err := item.As[item.ImageGenerationCall](it)
	if err != nil || call.Result == "" {
		return ""
	}
	kind := "image/png"
	if strings.HasPrefix(call.Result, "/9j/") {
		kind = "image/jpeg"
	}
	return "data:" + kind + ";base64," + call.Result
}

// PictureWay returns how a terminal shows pictures. A multiplexer does not know what the terminal
// around it can.
func PictureWay(env host.Environment) (how string, err error) {
	how = cmp.Or(env["ANTIPHON_IMAGES"], tui.Pictures[0])
	if !slices.Contains(tui.Pictures, how) {
		return "", fmt.Errorf("ANTIPHON_IMAGES is %q; it is one of %s", how, strings.Join(tui.Pictures, ", "))
	}
	if how == tui.Pictures[0] && (env["TMUX"] != "" || env["STY"] != "" || env["ZELLIJ"] != "") {
		return "blocks", nil
	}
	return how, nil
}
