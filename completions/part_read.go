// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// content is the content of a message: text or parts.
type content struct {
	item.Content
	// thoughts are reasoning among the parts, in Mistral's form.
	thoughts []string
	given    bool // it is not absent, null, "" or []
}

// readContent reads the content of a message: a text, a list of parts, or nothing. Model is set for
// messages of the model.
func (p place) readContent(v item.JSON, model bool) (content, error) {
	switch {
	case blank(v):
		return content{}, nil
	case v[0] == '"':
		s, _ := v.Unquote()
		return content{Content: item.Text(s), given: true}, nil
	case v[0] == '{' && model: // from servers that parse requested JSON output
		p.move("an object: becomes its JSON text")
		return content{Content: item.Text(string(v)), given: true}, nil
	case v[0] != '[':
		return content{}, shapeError(p.path, "found "+kindOf(v)+", want a string or a list of parts")
	}
	c := content{Content: item.Parts(), given: true}
	var err error
	eachElement(v, func(i int, part item.JSON) {
		if err == nil {
			err = p.index(i).readPart(&c, part, model)
		}
	})
	return c, err
}

func (p place) readPart(c *content, v item.JSON, model bool) error {
	if v[0] != '{' {
		return shapeError(p.path, "found "+kindOf(v)+", want a part")
	}
	o := p.open(v)
	var part item.Part
	switch o.text("type") {
	case "text", "input_text", "output_text", "":
		if part = o.textPart(model); part == nil {
			part = &item.UnknownPart{Raw: v} // a part without a type that is not text
			o.members.Reset()
		}
	case "refusal":
		part = &item.Refusal{Refusal: o.text("refusal")}
	case "image_url":
		part = o.imagePart()
	case "file":
		part = o.filePart()
	case "thinking":
		c.thoughts = append(c.thoughts, o.thinking())
		o.rest()
		return nil
	default:
		c.Parts = append(c.Parts, &item.UnknownPart{Raw: v}) // sound, video, or a later type
		return nil
	}
	c.Parts = append(c.Parts, part)
	o.rest()
	return nil
}

func (o *object) textPart(model bool) item.Part {
	if m := o.members.Find("text"); m == nil || m.Value[0] != '"' {
		return nil
	}
	s := o.text("text")
	if model {
		return &item.OutputText{Text: s, Annotations: "[]"}
	}
	return &item.InputText{Text: s}
}

// imagePart reads an image_url that is a string or an object.
func (o *object) imagePart() item.Part {
	img := &item.InputImage{ImageURL: o.text("image_url"), Detail: item.Detail(o.text("detail"))}
	if v := o.take("image_url"); v != "" {
		nested := o.at("image_url").open(v)
		img.ImageURL = nested.text("url")
		if d := nested.text("detail"); d != "" {
			img.Detail = item.Detail(d)
		}
		nested.rest()
	}
	if img.Detail == "" {
		img.Detail = item.DetailAuto // the default of both APIs
	}
	return img
}

func (o *object) filePart() item.Part {
	nested := o.at("file").open(o.take("file"))
	f := &item.InputFile{FileID: nested.text("file_id"), Filename: nested.text("filename"), FileData: nested.text("file_data")}
	if strings.HasPrefix(f.FileData, "https://") || strings.HasPrefix(f.FileData, "http://") {
		f.FileData, f.FileURL = "", f.FileData // some servers accept a URL here
	}
	nested.rest()
	return f
}

// thinking reads the text of a thinking part.
func (o *object) thinking() string {
	v := o.take("thinking")
	if s, ok := v.Unquote(); ok {
		return s
	}
	var b strings.Builder
	eachElement(v, func(_ int, e item.JSON) {
		s, _ := member(e, "text").Unquote()
		b.WriteString(s)
	})
	return b.String()
}
