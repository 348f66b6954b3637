// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program shows a model a picture and a PDF, and gives it a tool that returns a
// picture. Start it with
//
//	go run ./examples/go/pictures
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// script is what the mock model says: it repeats facts of the pictures that it gets.
const script = `
turn
  say You sent me an {{(user_image 1).MediaType}}.
  call draw {"colour": "red"}
turn
  say You drew an {{(image "draw" 1).MediaType}} of {{(image "draw" 1).Size}} bytes.
`

// paper is a PDF of one empty page. A program would read a file.
const paper = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj " +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"

type brush struct {
	Colour string `json:"colour" enum:"red,blue"`
}

// draw returns a picture. Bytes that are an image become an image for the model, which
// is scaled down if it is too large.
func draw(_ context.Context, b brush) ([]byte, error) {
	if b.Colour == "red" {
		return square(color.RGBA{R: 255, A: 255})
	}
	return square(color.RGBA{B: 255, A: 255})
}

func square(c color.Color) ([]byte, error) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for i := range 64 * 48 {
		img.Set(i%64, i/64, c)
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("pictures.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{tool.Must("draw", "Draws a square.", draw, tool.ReadOnly())},
	}
	picture, err := square(color.White)
	if err != nil {
		return err
	}
	question, err := item.UserParts(
		&item.InputText{Text: "What is in the picture, and what in the paper?"},
		&item.InputImage{ImageURL: dataURI("image/png", picture)},
		&item.InputFile{Filename: "paper.pdf", FileData: dataURI("application/pdf", []byte(paper))},
	)
	if err != nil {
		return err
	}
	s := session.New()
	res, err := a.Run(ctx, s, question)
	if err != nil {
		return err
	}
	for e := range s.Entries() {
		if by, text := session.SearchText(e.Body); by == "assistant" {
			fmt.Fprintln(out, text)
		}
	}
	_, err = fmt.Fprintf(out, "%s after %d turns\n", res.Why, res.Turns)
	return err
}

func dataURI(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}
