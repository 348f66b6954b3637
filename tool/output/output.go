// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package output turns the output of a tool into the text that a model reads.
//
// [Policy.Write] does this in the following order: it makes text valid, verifies
// images and files, removes secrets, and applies limits. The [Store] keeps the whole
// of every text that a limit shortens. A mark in the text tells the model how much
// is missing and how to read it. [Policy.FitTurn] divides the limit of a turn among
// the outputs of its calls. docs/tool-output-format.md describes what the model
// sees.
package output

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// The sentences for outputs without content. The words never change, so that a model
// learns them and equal histories stay equal.
const (
	// NoOutput is the output of a success that returned nothing.
	NoOutput = "The tool ran successfully and returned no output."
	// NoErrorText is the error of a failure without a reason.
	NoErrorText = "The tool failed and gave no reason."
)

// ReadToolName is the name of the tool that reads stored outputs. The marks in
// shortened outputs mention it. Package tool provides the tool.
const ReadToolName = "read_output"

// Result is what a tool returns. The zero value is a success without output.
type Result struct {
	// Text is the output or, with an error, the output so far.
	Text string
	// Long, if not nil, is text that follows Text and may be too long for memory. It
	// is read once, to its end, and is not closed. Reading must not block, for
	// example on a network: the output must already be in a file. The part that the
	// model does not get is streamed to the [Store]. Without a limit, the whole text
	// is loaded.
	Long io.Reader
	// Parts are images and files, sent after the text.
	Parts []item.Part
	// Error, if not empty, makes the call a failure with this error for the model.
	Error string
	// Unsent are outputs of the tool that cannot be sent to a model, such as a
	// damaged image. Each makes the call a failure, and the [Store] keeps it.
	Unsent []Unsent
	// Commands are the results of the commands of a shell_call. They are sent
	// instead of Text, unless a limit shortens Text, which has the same content as
	// text.
	Commands []item.ShellOutput
	// Found are the definitions that a search for tools found. They are sent instead of Text,
	// which says the same for people and hooks. The limit for the text is one for their JSON
	// too: the first ones that fit are sent.
	Found []item.Tool
	// Limit bounds this output in addition to the limits of its tool and of the
	// [Policy]; nil adds no bound.
	Limit *Limit
	// Page marks Text as a page of a stored output, which is not stored again. It is
	// set by the tool that reads stored outputs.
	Page *Page
	// Repairs counts the changes already made to get valid text; [Output.Repairs]
	// includes them.
	Repairs int

	// list reports that the tool returned parts and at least one can be sent.
	list bool
	// long holds Text and Long if they are too long for memory; Text is then empty.
	long *long
}

// Unsent is a part of an output that cannot be sent.
type Unsent struct {
	// Problem says what the part is and why it is not sent, for the model.
	Problem string
	Data    []byte
}

// Fail adds a line to the error of a result.
func (r *Result) Fail(text string) {
	if r.Error != "" {
		text = strings.TrimRight(r.Error, "\n") + "\n" + text
	}
	r.Error = text
}

// Output is the output of one call, ready to send.
type Output struct {
	// Content is the output as the model sees it, never empty.
	Content item.Content
	// Failed reports whether the call failed.
	Failed bool
	// Error is the text of a failure without the envelope.
	Error string
	// Repairs counts the changes that made the output valid text. See [Sanitize].
	Repairs int
	// LeftOut counts the bytes of text missing from Content. Marks in the text show
	// where.
	LeftOut int
	// Stored are the ids under which the whole of shortened texts is stored.
	Stored []string
	// Originals are the ids under which images and files are stored that were
	// refused or replaced.
	Originals []string
	// Commands are the Commands of the [Result], for the answer to a shell_call.
	// They are empty if Content is shorter than the tool's output.
	Commands []item.ShellOutput
	// Found are those Found of the [Result] that the limit allows, for the answer to a
	// tool_search_call. FoundLeftOut counts the others; Content says how many they are.
	Found        []item.Tool
	FoundLeftOut int
	// StoreError is the error of storing the omitted text. The marks then say that
	// the text is lost.
	StoreError error

	whole *whole // needed by FitTurn
}

// Policy configures how outputs are written. The zero value writes them unchanged.
type Policy struct {
	// Envelope wraps successes too. Failures are always wrapped. See [Envelope].
	Envelope bool
	// Limit bounds the text of each output, unless its tool has its own limit: see
	// [Source.Limit]. Nil leaves the choice to Usual; &Limit{} means no bound.
	Limit *Limit
	// PerTurn bounds the texts of all outputs of a turn together, but never reduces
	// an output below [MinBytes] or [MinTokens]. The caller that runs the turn
	// applies it with [Policy.FitTurn]. Its mode is ignored.
	PerTurn *Limit
	// Usual bounds the text of each output if neither its tool nor Limit is set.
	// Package agent sets it; set Limit to &Limit{} for no bound.
	Usual *Limit
	// Tokens counts tokens; nil means [EstimateTokens].
	Tokens Counter
	// Secrets are texts that no model may see, such as the endpoint's key.
	// [Redacted] replaces them wherever they occur in the texts of an output, also
	// escaped or inside base64: see [endpoint.Key.Hide]. Secrets shorter than 8 bytes
	// are ignored. A longer secret comes before one that it contains.
	Secrets []string
	// Images adapts images. If nil, images that look complete and have at most
	// [MaxImageBytes] are sent unchanged. See package picture.
	Images Imager
}

// Source describes the tool whose output is written.
type Source struct {
	// Name is the tool's name, for the envelope.
	Name string
	// Limit bounds the output instead of [Policy.Limit]; Usual applies if neither is
	// set. Fields that they leave unset are taken from the Policy.
	Limit, Usual *Limit
	// Store keeps the omitted text; if nil, it is lost.
	Store Store
}

// Write turns a result into the output to send. The output is a failure if failed is
// set, or if the result has an Error or contains something that cannot be sent. The
// context is for the [Store]; Write stores even if it is cancelled.
func (p Policy) Write(ctx context.Context, from Source, res Result, failed bool) Output {
	t := &target{policy: p, Source: from}
	res.settleLong(p.Secrets)
	var originals []string
	res.settle(p.Images, func(data []byte) string {
		id, said := t.keepOriginal(ctx, data)
		if id != "" {
			originals = append(originals, id)
		}
		return said
	})
	if len(res.Commands) > 0 {
		res.settleCommands()
	}
	res.redact(p.Secrets)
	begin := res.Text
	if res.long != nil {
		begin = res.long.Slice(0, pieceSize)
	}
	if posesAsEnvelope(begin) {
		t.policy.Envelope = true
	}
	if res.Page == nil {
		res.Text = disown(res.Text)
	}
	o := Output{Failed: failed || res.Error != "", Repairs: res.Repairs, Commands: res.Commands, Found: res.Found, Originals: originals}
	if o.Failed {
		var n int
		o.Error, n = Sanitize(res.Error)
		o.Error = redacted(o.Error, p.Secrets)
		o.Repairs += n
		if strings.TrimSpace(o.Error) == "" {
			o.Error = NoErrorText
		}
	}
	own := firstOf(from.Limit, p.Limit, from.Usual, p.Usual)
	bounded := res.Page != nil || res.Limit != nil || own != nil || p.PerTurn != nil
	if res.long != nil && !bounded {
		res.Text, res.long = res.long.whole(), nil
	}
	if res.long == nil {
		o.Content = t.content(o.Failed, res.list, o.Error, res.Text, res.Parts)
	}
	if bounded {
		t.applyLimits(ctx, &o, res, own != nil)
	}
	return o
}

// target is the policy and the source of an output.
type target struct {
	policy Policy
	Source
}

// whole is a complete output, before limits.
type whole struct {
	target
	failed bool
	err    string
	text   string
	long   *long       // used instead of text if the text is too long for memory
	parts  []item.Part // sent after the text
	list   bool        // the content is a list, even with a single text
	page   *Page       // set if the text is a page
	limit  Limit       // the output's own limit
}

// applyLimits shortens the output to its own limits, and keeps the whole for the
// limit of the turn.
func (t *target) applyLimits(ctx context.Context, o *Output, res Result, own bool) {
	w := &whole{target: *t, failed: o.Failed, err: o.Error, text: res.Text, long: res.long, parts: res.Parts, list: res.list, page: res.Page}
	o.whole = w
	if !own && res.Limit == nil && w.page == nil {
		if w.long != nil { // the limit of the turn needs the whole text
			w.text, w.long = w.long.whole(), nil
			o.Content = w.content(w.failed, w.list, w.err, w.text, w.parts)
		}
		return
	}
	first := t.Source.Limit
	if !own {
		first = res.Limit
	}
	l := value(first).or(value(firstOf(t.policy.Limit, t.Usual, t.policy.Usual))).floor()
	if res.Limit != nil {
		l = l.within(res.Limit.floor())
	}
	w.limit = t.policy.unit(l)
	w.fitFound(o)
	w.write(ctx, o, w.limit)
}

// fitFound keeps the first definitions that fit into the limit, and says so in the text. It
// is a failure if there are none.
func (w *whole) fitFound(o *Output) {
	total := len(o.Found)
	size := Limit{}
	for i, def := range o.Found {
		sent, err := item.New(&item.ToolSearchOutput{Tools: []item.Tool{def}})
		if err == nil {
			text, _ := sent.Member("tools")
			more := w.policy.measure(item.Text(string(text)), w.limit)
			size.Bytes, size.Tokens = size.Bytes+more.Bytes, size.Tokens+more.Tokens
		}
		if err != nil || !w.limit.allow(size) {
			o.Found, o.FoundLeftOut = o.Found[:i:i], total-i
			break
		}
	}
	if o.FoundLeftOut == 0 {
		return
	}
	note := fmt.Sprintf("Only the first %d of the %d definitions are sent: all of them are longer than an output may be. Search for something narrower.", len(o.Found), total)
	if len(o.Found) > 0 {
		w.text = strings.TrimLeft(w.text+"\n\n"+note, "\n")
		return
	}
	o.Found = nil
	o.Failed, w.failed = true, true
	o.Error = strings.TrimLeft(o.Error+"\n"+fmt.Sprintf("None of the %d definitions are sent: the first one is longer than an output may be. Search for something narrower.", total), "\n")
	w.err = o.Error
}

// firstOf returns the first limit that is not nil, or nil.
func firstOf(limits ...*Limit) *Limit { return cmp.Or(limits...) }

func value(l *Limit) Limit {
	if l == nil {
		return Limit{}
	}
	return *l
}

// content joins texts and parts: T3 to T5. A list stays a list, even if it consists
// of one text.
func (t *target) content(failed, list bool, errText, text string, parts []item.Part) item.Content {
	switch {
	case failed || t.policy.Envelope:
		text = Envelope(failed, t.Name, errText, text)
	case text == "" && len(parts) == 0:
		return item.Text(NoOutput)
	}
	if !list {
		return item.Text(text)
	}
	if text != "" {
		parts = append([]item.Part{&item.InputText{Text: text}}, parts...)
	}
	return item.Parts(parts...)
}

// keepOriginal stores data that the model does not get. It returns the id and a
// phrase about it for the end of a sentence. Both are empty without a store.
func (t *target) keepOriginal(ctx context.Context, data []byte) (id, said string) {
	if t.Store == nil || len(data) == 0 {
		return "", ""
	}
	id, err := putChecked(ctx, t.Store, data)
	if err != nil {
		return "", "; the original is lost, for it could not be kept: " + Clip(err.Error(), maxProblemText)
	}
	return id, "; the original is " + storedOriginal + id
}

// settle puts the parts of a result into their final form: text first, only kinds
// that an output may contain, valid text throughout, adapted images. An image or
// file that does not match its declared type makes the result a failure.
func (r *Result) settle(images Imager, keep func(original []byte) string) {
	parts := make([]item.Part, 0, len(r.Parts))
	for i, p := range r.Parts {
		var note string
		var original []byte
		p, n, err := settlePart(p)
		r.Repairs += n
		if f, ok := p.(*item.InputFile); ok && err != nil {
			original = originalFile(f)
		}
		if img, ok := p.(*item.InputImage); ok && err == nil {
			note, original, err = fitImage(img, images)
		}
		if err != nil {
			r.Fail(fmt.Sprintf("part %d of the output: %v%s", i+1, err, keep(original)))
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
		r.Fail(u.Problem + keep(u.Data))
	}
	r.Unsent = nil
	r.list = len(parts) > 0
	if len(parts) == 0 && len(r.Parts) > 0 && r.Text == "" && r.long == nil && r.Error == "" {
		r.Fail("the output is a list of parts that are nil")
	}
	var n int
	r.Text, n = Sanitize(r.Text)
	r.Repairs += n
	if r.Text == "" && r.long == nil && len(parts) > 0 {
		if t, ok := parts[0].(*item.InputText); ok && len(t.Extra) == 0 && t.CacheBreakpoint == nil {
			r.Text, parts = t.Text, parts[1:]
		}
	}
	r.Parts = parts
}

// settlePart returns a copy of p that can be sent as part of an output, and the
// number of repairs. It drops a nil part.
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
		if p != nil { // pictures become images in an output
			return settlePart(&item.InputImage{ImageURL: p.ImageURL, FileID: p.FileID, Detail: p.Detail, CacheBreakpoint: p.CacheBreakpoint, Extra: p.Extra})
		}
	}
	return nil, 0, nil
}

// textPart converts a model's text to input text, the only kind of text in an
// output.
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
			continue // the member is absent
		}
		if err := cmp.Or(validText(m.Name), m.Value.Valid()); err != nil {
			return err
		}
	}
	return nil
}
