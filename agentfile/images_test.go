// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	pngs "image/png"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/trust"
)

// T10: BMP and TIFF in a message become a PNG of the same pixels, whose place is told;
// what is not an image, or another than it says, is an error at its place.
func TestImagesInMessages(t *testing.T) {
	dir := t.TempDir()
	img := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	img.Set(1, 1, color.NRGBA{200, 100, 50, 255})
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	var asPNG, asBMP, asTIFF bytes.Buffer
	for _, err := range []error{pngs.Encode(&asPNG, img), bmp.Encode(&asBMP, img), tiff.Encode(&asTIFF, img, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, asBMP.String(), dir, "a.bmp")
	write(t, asBMP.String(), dir, "lying.png")
	write(t, asTIFF.String(), dir, "a.tiff")
	write(t, asBMP.String()[:asBMP.Len()/2], dir, "cut.bmp")
	write(t, "BM is a text", dir, "text.bmp")
	data := func(mediaType string, b []byte) string {
		return `<img src="data:` + mediaType + ";base64," + base64.StdEncoding.EncodeToString(b) + `"/>`
	}
	for _, c := range []struct{ name, img, warns, err string }{
		{"a PNG", data("image/png", asPNG.Bytes()), "", ""},
		{"a BMP", `<img src="a.bmp" local/>`, "f.md:2:7: <img>: image made of a BMP, sent as image/png; the original stays where it is [warning]", ""},
		{"a BMP by another name", `<img src="lying.png" local/>`, "image made of a BMP", ""},
		{"a TIFF", `<img src="a.tiff" local/>`, "image made of a TIFF", ""},
		{"a BMP as data", data("image/bmp", asBMP.Bytes()), "image made of a BMP", ""},
		{"a BMP that is cut off", `<img src="cut.bmp" local/>`, "", "f.md:2:7: <img> cannot be read: begins as image/bmp but is incomplete or damaged"},
		{"a text", `<img src="text.bmp" local/>`, "", "f.md:2:7: <img> is not an image: text.bmp: its data is "},
		{"a lying type", data("image/jpeg", asPNG.Bytes()), "", "it is declared as image/jpeg and its data is image/png"},
		{"a lying BMP", data("image/png", asBMP.Bytes()), "", "its data is image/bmp"},
		{"not base64", `<img src="data:image/png;base64,iVBOR*w0KGgo="/>`, "", "f.md:2:7: <img> is not an image: data:image/png"},
		{"not base64 at all", `<img src="data:image/svg+xml,%3Csvg/%3E"/>`, "", "its data is not base64"},
		{"padding", `<img src="data:image/png;base64,iVBORw0KGgpyZX"/>`, "", "its data is not base64: illegal base64 data"},
		{"no data", `<img src="data:image/png;base64,"/>`, "", "its data is text/plain"},
	} {
		path := write(t, "<config model=\"m\"/>\n<user>"+c.img+"</user>\n", dir, "f.md")
		file, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
		if c.err != "" {
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir+"/", ""), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			if file, err = agentfile.Load(t.Context(), path, agentfile.Options{Salvage: true}); err != nil || len(file.Left) != 1 {
				t.Errorf("%s, salvaged: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		m, err := item.As[item.Message](file.Items[0])
		if err != nil {
			t.Fatal(err)
		}
		payload, found := strings.CutPrefix(m.Content.Parts[0].(*item.InputImage).ImageURL, "data:image/png;base64,")
		raw, err := base64.StdEncoding.DecodeString(payload)
		if got, bad := pngs.Decode(bytes.NewReader(raw)); !found || err != nil || bad != nil || got.At(1, 1) != got.ColorModel().Convert(img.At(1, 1)) {
			t.Errorf("%s: %.60s, %v, %v", c.name, payload, err, bad)
		}
		var warned strings.Builder
		for _, w := range file.Warnings {
			warned.WriteString(strings.ReplaceAll(w.Error(), dir+"/", ""))
		}
		if !strings.Contains(warned.String(), c.warns) || c.warns == "" && warned.Len() > 0 {
			t.Errorf("%s: %s", c.name, warned.String())
		}
	}
}

// T8: what a tool put out stands in a transcript as it was, whatever it is.
func TestImagesOfToolsStay(t *testing.T) {
	path := write(t, `<config model="m"/>
<user>q</user>
<tool_call tool_call_id="c" function_name="f">{}</tool_call>
<tool_response tool_call_id="c"><img src="data:image/png;base64,AAAA"/></tool_response>
`, t.TempDir(), "f.md")
	if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err != nil {
		t.Error(err)
	}
}
