// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Result is what a tool returns. The zero value is a success without output.
type Result struct {
	// Text is the output, or, with an error, the output so far.
	Text string
	// Long, unless nil, is text after Text that may be too long for the memory: it
	// is read once, to its end, and is not closed. Reading must not wait, as for a
	// network: the output is in a file by then. What the model does not get of it is
	// streamed to the [Spill]. Where no limit bounds the output, all is loaded.
	Long io.Reader
	// Parts are images and files, sent after the text.
	Parts []item.Part
	// Error, unless empty, makes the call a failure that the model reads.
	Error string
	// Unsent are what the tool put out and no model can be sent, such as a damaged
	// image: each makes the call a failure, and the [Spill] keeps it.
	Unsent []Unsent
	// Commands are what each command of a shell_call did. They answer it in place
	// of Text, which then is the same in words, unless a limit shortens that.
	Commands []item.ShellOutput
	// Limit bounds this output further than the limits of its tool and of its
	// [Shape] do; nil does not.
	Limit Limiter

	// repairs counts what resultOf had to change to get valid text.
	repairs int
	// list says that parts were returned and at least one can be sent.
	list bool
	// page says that Text is a page of a stored output; nil if it is not.
	page paged
	// long is Text and Long where these are too long for the memory: Text is empty
	// then.
	long *long
}

// Unsent is a part of an output that cannot be sent.
type Unsent struct {
	// Problem says what it is and why it is not sent, for the model.
	Problem string
	Data    []byte
}

// resultOf turns the value of a typed function into a result: T1, T2 and T5.
func resultOf(out any) (Result, error) {
	switch v := out.(type) {
	case nil:
		return Result{}, nil
	case string:
		return Result{Text: v}, nil
	case Result:
		return v, nil
	case *Result:
		if v == nil {
			return Result{}, nil
		}
		return *v, nil
	case item.Content:
		if v.IsText() {
			return Result{Text: v.Text}, nil
		}
		return Result{Parts: v.Parts}, nil
	case []item.Part:
		return Result{Parts: v}, nil
	case []byte:
		return bytesResult(v)
	case item.JSON:
		return jsonResult([]byte(v))
	}
	if p, ok := out.(item.Part); ok {
		return Result{Parts: []item.Part{p}}, nil
	}
	return valueResult(out)
}

// bytesResult takes bytes for what they are: an image, a PDF, or text.
func bytesResult(b []byte) (Result, error) {
	switch {
	case SniffPicture(b) != "":
		return Result{Parts: []item.Part{&item.InputImage{ImageURL: dataURI(SniffPicture(b), b), Detail: item.DetailAuto}}}, nil
	case isPDF(b):
		return Result{Parts: []item.Part{&item.InputFile{Filename: "output.pdf", FileData: dataURI(kindPDF, b)}}}, nil
	case !isText(b):
		return Result{}, fmt.Errorf("the tool returned %d bytes that are neither text, a PDF nor a PNG, JPEG, GIF or WebP image", len(b))
	}
	return Result{Text: string(b)}, nil
}

func valueResult(out any) (Result, error) {
	b, err := json.Marshal(out, jsonOptions)
	repairs := 0
	if err != nil {
		// Text that is not UTF-8 somewhere inside must not cost the output.
		var again error
		if b, again = json.Marshal(out, jsonOptions, jsontext.AllowInvalidUTF8(true)); again != nil {
			return Result{}, fmt.Errorf("the tool's result cannot be written as JSON: %w", err)
		}
		repairs = 1
	}
	res, err := jsonResult(b)
	res.repairs += repairs
	return res, err
}

// jsonResult reads a JSON value as output. Null and the empty object say
// nothing; a string is its text; an object with a string "output" is that
// text; the rest is compact JSON.
func jsonResult(b []byte) (Result, error) {
	v := jsontext.Value(b)
	if len(bytes.TrimSpace(b)) == 0 {
		return Result{}, nil
	}
	if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return Result{}, fmt.Errorf("the tool's result is not valid JSON: %w", err)
	}
	switch v.Kind() {
	case 'n':
		return Result{}, nil
	case '"':
		return textResult(item.JSON(v)), nil
	case '{':
		if string(v) == "{}" {
			return Result{}, nil
		}
		if s := outputMember(v); s != "" {
			return textResult(s), nil
		}
	}
	return Result{Text: string(v)}, nil
}

// textResult is the text of a JSON string.
func textResult(lit item.JSON) Result {
	s, _ := lit.Unquote()
	return Result{Text: s, repairs: loneSurrogates(string(lit))}
}

// outputMember returns the member "output" if it is a string.
func outputMember(v jsontext.Value) item.JSON {
	var members struct {
		Output jsontext.Value `json:"output"`
	}
	err := json.Unmarshal(v, &members, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || members.Output.Kind() != '"' {
		return ""
	}
	return item.JSON(members.Output)
}

// loneSurrogates counts the escapes in a JSON string that stand for no
// character and that decoding replaces.
func loneSurrogates(lit string) int {
	n := 0
	high := -1 // where the last high surrogate ends that waits for its other half
	for i := 0; i+1 < len(lit); i++ {
		if lit[i] != '\\' {
			continue
		}
		i++
		if lit[i] != 'u' || i+4 >= len(lit) {
			continue
		}
		switch lit[i+1 : i+3] {
		case "d8", "d9", "da", "db", "D8", "D9", "Da", "Db", "DA", "DB", "dA", "dB":
			n++
			high = i + 5
		case "dc", "dd", "de", "df", "Dc", "Dd", "De", "Df", "DC", "DD", "DE", "DF", "dC", "dD", "dE", "dF":
			if n++; high == i-1 {
				n -= 2
			}
			high = -1
		}
	}
	return n
}

// settle gives the parts of a result their final form: text first, only kinds
// that an output may hold, valid text throughout, images that fit. An image or
// file that is not what it says makes it a failure.
func (r *Result) settle(images Imager, keep func(original []byte) string) {
	parts := make([]item.Part, 0, len(r.Parts))
	for i, p := range r.Parts {
		var note string
		var original []byte
		p, n, err := settlePart(p)
		r.repairs += n
		if f, ok := p.(*item.InputFile); ok && err != nil {
			original = originalFile(f)
		}
		if img, ok := p.(*item.InputImage); ok && err == nil {
			note, original, err = fitImage(img, images)
		}
		if err != nil {
			r.fail(fmt.Sprintf("part %d of the output: %v%s", i+1, err, keep(original)))
			continue
		}
		if original != nil {
			note = strings.TrimSuffix(cmp.Or(note, "[image sent in another form]"), "]") + keep(original) + "]"
		}
		if note != "" {
			parts = append(parts, &item.InputText{Text: note})
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	for _, u := range r.Unsent {
		r.fail(u.Problem + keep(u.Data))
	}
	r.Unsent = nil
	r.list = len(parts) > 0
	if len(parts) == 0 && len(r.Parts) > 0 && r.Text == "" && r.long == nil && r.Error == "" {
		r.fail("the output is a list of parts that are nil")
	}
	var n int
	r.Text, n = Sanitize(r.Text)
	r.repairs += n
	if r.Text == "" && r.long == nil && len(parts) > 0 {
		if t, ok := parts[0].(*item.InputText); ok && len(t.Extra) == 0 {
			r.Text, parts = t.Text, parts[1:]
		}
	}
	r.Parts = parts
}

func (r *Result) fail(text string) {
	if r.Error != "" {
		text = strings.TrimRight(r.Error, "\n") + "\n" + text
	}
	r.Error = text
}

// settlePart returns a copy of p that can be sent as part of an output, and how
// many repairs that took. A nil part is dropped.
func settlePart(p item.Part) (item.Part, int, error) {
	switch p := p.(type) {
	case *item.InputText:
		if p != nil {
			c := *p
			var n int
			c.Text, n = Sanitize(p.Text)
			return &c, n, cmp.Or(validExtra(p.Extra), validBreakpoint(p.CacheBreakpoint))
		}
	case *item.InputImage:
		if p != nil {
			c := *p
			return &c, 0, cmp.Or(validText(p.ImageURL), validText(p.FileID), validExtra(p.Extra), validBreakpoint(p.CacheBreakpoint))
		}
	case *item.InputFile:
		if p != nil {
			c := *p
			var n int
			c.Filename, n = Sanitize(p.Filename)
			return &c, n, cmp.Or(settleFile(&c), validText(p.FileURL), validText(p.FileID), validExtra(p.Extra), validBreakpoint(p.CacheBreakpoint))
		}
	case *item.UnknownPart:
		if p != nil {
			return p, 0, p.Raw.Valid()
		}
	case *item.OutputText:
		if p != nil {
			return textPart(p.Text)
		}
	case *item.Refusal:
		if p != nil {
			return textPart(p.Refusal)
		}
	case *item.ReasoningText:
		if p != nil {
			return textPart(p.Text)
		}
	case *item.SummaryText:
		if p != nil {
			return textPart(p.Text)
		}
	case *item.PlainText:
		if p != nil {
			return textPart(p.Text)
		}
	case *item.ComputerScreenshot:
		if p != nil { // an output holds pictures as images
			return settlePart(&item.InputImage{ImageURL: p.ImageURL, FileID: p.FileID, Detail: p.Detail, CacheBreakpoint: p.CacheBreakpoint, Extra: p.Extra})
		}
	}
	return nil, 0, nil
}

// textPart makes input text of what a model said: an output holds no other
// kind of text.
func textPart(s string) (item.Part, int, error) {
	s, n := Sanitize(s)
	return &item.InputText{Text: s}, n, nil
}

func validText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("text is not valid UTF-8")
	}
	return nil
}

func validBreakpoint(b *item.CacheBreakpoint) error {
	if b == nil {
		return nil
	}
	return cmp.Or(validText(b.Mode), validExtra(b.Extra))
}

func validExtra(x item.Extra) error {
	for _, m := range x {
		if m.Value == "" {
			continue // says that a member is left out
		}
		if err := cmp.Or(validText(m.Name), m.Value.Valid()); err != nil {
			return err
		}
	}
	return nil
}
