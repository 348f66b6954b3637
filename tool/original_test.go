// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// J13: what is refused, and what another is sent for, is kept as it was, and the
// place where it is missing says so.
func TestOriginalsAreKept(t *testing.T) {
	png := pixelPNG(t)
	bmp := "BM\x1e\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x18\x00\x01\x02\x03\x00"
	other := append([]byte(nil), append(png, "more"...)...)
	image := func(declared, data string) Result {
		return Result{Text: "see", Parts: []item.Part{&item.InputImage{ImageURL: dataURI(declared, []byte(data))}}}
	}
	for name, c := range map[string]struct {
		images   output.Imager
		res      Result
		original string
		failed   bool
		says     string
	}{
		"damaged":        {imager{err: "its png data cannot be decoded"}, image("image/png", string(png)), string(png), true, "part 1 of the output: the image: its png data cannot be decoded; the original is kept with the id %s"},
		"replaced":       {imager{fit: string(other), note: "[smaller]"}, image("image/png", string(png)), string(png), false, "[smaller; the original is kept with the id %s]"},
		"without note":   {imager{fit: string(other)}, image("image/png", string(png)), string(png), false, "[image sent in another form; the original is kept with the id %s]"},
		"lying":          {nil, image("image/jpeg", string(png)), string(png), true, `declared as "image/jpeg" but its data is image/png; the original is kept with the id %s`},
		"no image":       {nil, image("image/png", "hello"), "hello", true, "not a PNG, JPEG, GIF or WebP image; the original is kept with the id %s"},
		"a BMP":          {nil, image("image/bmp", bmp), bmp, true, "the image is image/bmp, and models take PNG, JPEG, GIF and WebP; the original is kept with the id %s"},
		"a BMP made":     {imager{fit: string(png), note: "[made]"}, image("image/x-ms-bmp", bmp), bmp, false, "[made; the original is kept with the id %s]"},
		"no base64":      {nil, Result{Parts: []item.Part{&item.InputImage{ImageURL: "data:image/png;base64,***"}}}, "data:image/png;base64,***", true, "illegal base64 data at input byte 0; the original is kept with the id %s"},
		"a lying file":   {nil, Result{Parts: []item.Part{&item.InputFile{FileData: dataURI("application/pdf", []byte("no"))}}}, "no", true, "its data is something else; the original is kept with the id %s"},
		"told by a tool": {nil, Result{Text: "see", Unsent: []Unsent{{Problem: "the picture is odd", Data: []byte("odd")}}}, "odd", true, "the picture is odd; the original is kept with the id %s"},
	} {
		spill := new(output.MemoryStore)
		o := invokeResult(output.Policy{Images: c.images}, spill, c.res)
		id := fmt.Sprintf("%x", sha256.Sum256([]byte(c.original)))
		if shown := o.Content.Display(); o.Failed != c.failed || !strings.Contains(shown, fmt.Sprintf(c.says, id)) {
			t.Errorf("%s: failed %v\n%s", name, o.Failed, shown)
		}
		if data, _, err := spill.Get(t.Context(), id, 0, 1<<20); err != nil || string(data) != c.original || len(o.Originals) != 1 || o.Originals[0] != id {
			t.Errorf("%s: %d bytes are kept, %q, %v", name, len(data), o.Originals, err)
		}
		if got := output.StoredIDs(o.Content.Display()); len(got) != 1 || got[0] != id {
			t.Errorf("%s: the text names %q, want %q", name, got, id)
		}
		if o := invokeResult(output.Policy{Images: c.images}, nil, c.res); strings.Contains(o.Content.Display(), "original is kept") || o.Failed != c.failed {
			t.Errorf("%s, without a place to keep it:\n%s", name, o.Content.Display())
		}
		o = invokeResult(output.Policy{Images: c.images}, brokenSpill{}, c.res)
		if !strings.Contains(o.Content.Display(), "; the original is lost, for it could not be kept: disk full") {
			t.Errorf("%s, where it cannot be kept:\n%s", name, o.Content.Display())
		}
	}
}

// What is kept and is not text is not read as text.
func TestReadOutputOfAnImage(t *testing.T) {
	spill := new(output.MemoryStore)
	id, err := spill.Put(t.Context(), pixelPNG(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int{0, 9, 20} {
		o := mustSet(t, ReadOutput(spill)).Invoke(context.Background(), Call{Name: ReadOutputName, Arguments: fmt.Sprintf(`{"id":%q,"offset":%d}`, id, offset)}, output.Policy{})
		if !o.Failed || !strings.Contains(o.Error, "is not text but an image or a file of") {
			t.Errorf("from %d: %+v", offset, o.Content)
		}
	}
}

// T11: two letters of a text make no BMP.
func TestSniffPicture(t *testing.T) {
	for text, want := range map[string]string{
		"BM is short for bitmap, and this is a text": "", "BM": "", "II*\x00\x08\x00\x00\x00": "image/tiff", "MM\x00*\x00\x00\x00\x08": "image/tiff",
		"BM\x1e\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x28\x00\x00\x00": "image/bmp", "GIF89a": "image/gif",
	} {
		if got := output.SniffPicture([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func dataURI(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}
