// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// ImageRequest asks for new images. Which members are accepted depends on the model. Schema:
// CreateImageRequest.
type ImageRequest struct {
	Prompt string
	Model  string
	N      int64 // number of images; 0 means 1
	// Size is such as "1024x1024" or "auto", Quality such as "high", Background "transparent",
	// "opaque" or "auto".
	Size, Quality, Background string
	// Format is the format of the image, such as "png", and Compression its compression in percent.
	Format      string
	Compression int64
	// As is "b64_json" or "url", for models that let the caller choose.
	As         string
	Moderation string // "low" or "auto"
	Style      string
	// PartialImages is the number of intermediate images of a stream, from 0 to 3. It is an error
	// where the answer is not a stream.
	PartialImages int64
	User          string
	Extra         item.Extra
}

func (v *ImageRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	v.members(c.OptString, func(name string, n *int64) { optInt(c, name, n) })
}

// members names the members, for JSON and for forms.
func (v *ImageRequest) members(text func(string, *string), number func(string, *int64)) {
	text("prompt", &v.Prompt)
	text("model", &v.Model)
	number("n", &v.N)
	text("size", &v.Size)
	text("quality", &v.Quality)
	text("background", &v.Background)
	text("output_format", &v.Format)
	number("output_compression", &v.Compression)
	text("response_format", &v.As)
	text("moderation", &v.Moderation)
	text("style", &v.Style)
	number("partial_images", &v.PartialImages)
	text("user", &v.User)
}

// MarshalJSON returns the request as JSON.
func (v *ImageRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *ImageRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// ImageEdit asks for images made from others. Schema: CreateImageEditRequest.
type ImageEdit struct {
	// ImageRequest says what to make. Members of Extra whose values are not texts are sent as JSON.
	ImageRequest
	// Images are the images to edit, at least one. Mask is an image whose transparent parts are to
	// be changed; nil means none.
	Images []Source
	Mask   *Source
	// Fidelity is how closely the result follows the images: "high" or "low".
	Fidelity string
}

// Images is the answer to an [ImageRequest] or an [ImageEdit]. Schema: ImagesResponse.
type Images struct {
	Created int64 // Unix time in seconds
	Data    []Image
	// The size, quality, background and format of the images, if the endpoint reports them.
	Size, Quality, Background, Format string
	Usage                             *ImageUsage
	Extra                             item.Extra
}

// Image is one image, inline or at a URL. Schema: Image.
type Image struct {
	Base64        string
	URL           string // valid for a limited time
	RevisedPrompt string
	Extra         item.Extra
}

// ImageUsage is what making images has used. Schema: ImageGenUsage.
type ImageUsage struct {
	InputTokens, OutputTokens, TotalTokens int64
	Extra                                  item.Extra
}

func (v *Images) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Number("created", &v.Created)
	record.List(c, "data", &v.Data, (*Image).fields)
	c.OptString("size", &v.Size)
	c.OptString("quality", &v.Quality)
	c.OptString("background", &v.Background)
	c.OptString("output_format", &v.Format)
	record.Opt(c, "usage", &v.Usage, (*ImageUsage).fields)
}

func (v *Image) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("b64_json", &v.Base64)
	c.OptString("url", &v.URL)
	c.OptString("revised_prompt", &v.RevisedPrompt)
}

func (v *ImageUsage) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Number("input_tokens", &v.InputTokens)
	c.Number("output_tokens", &v.OutputTokens)
	c.Number("total_tokens", &v.TotalTokens)
}

// MarshalJSON returns the answer as JSON.
func (v *Images) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the answer from a copy of data.
func (v *Images) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Reader returns a reader of an inline image. An image at a URL gives an error: fetch it yourself.
func (v *Image) Reader() (io.Reader, error) {
	switch {
	case v == nil || v.Base64 == "" && v.URL == "":
		return nil, errors.New("platform: there is no image")
	case v.Base64 == "":
		return nil, errors.New("platform: the image is at a URL; fetch Image.URL, or ask for images as b64_json")
	}
	return imageData{base64.NewDecoder(base64.StdEncoding, strings.NewReader(v.Base64))}, nil
}

// imageData is the content of an inline image.
type imageData struct{ r io.Reader }

func (d imageData) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("platform: the image is not whole base64: %w", err)
	}
	return n, err
}

const noImages = "use the tool image_generation of a model, or another endpoint"

var (
	generatePlace = place{"create images", "/images/generations", noImages}
	editPlace     = place{"edit images", "/images/edits", noImages}
)

// GenerateImages returns new images.
func (c *Client) GenerateImages(ctx context.Context, req *ImageRequest) (*Images, error) {
	a, err := generate(req, false)
	if err != nil {
		return nil, err
	}
	return c.images(ctx, generatePlace.op, a)
}

// EditImages returns images made from others. They are sent while they are read.
func (c *Client) EditImages(ctx context.Context, req *ImageEdit) (*Images, error) {
	a, err := edit(req, false)
	if err != nil {
		return nil, err
	}
	return c.images(ctx, editPlace.op, a)
}

// images returns the images of an answer. An answer without any is an error.
func (c *Client) images(ctx context.Context, op string, a *transport.Ask) (*Images, error) {
	v, err := object[Images](ctx, c, a, "list of images", "data")
	if err == nil && len(v.Data) == 0 {
		return nil, &endpoint.Error{Op: op, Class: endpoint.Protocol, Message: "the answer has no images"}
	}
	return v, err
}

// generate returns the request for new images.
func generate(req *ImageRequest, stream bool) (*transport.Ask, error) {
	if req == nil {
		return nil, errNil
	}
	if req.Prompt == "" {
		return nil, refused("prompt", "it is empty", "describe the image")
	}
	if err := req.check(stream); err != nil {
		return nil, err
	}
	own := *req
	if stream {
		own.Extra = append(item.Extra(nil), req.Extra...)
		own.Extra.Set("stream", "true")
	}
	return post(generatePlace, &own, transport.IfKeyed)
}

// check refuses numbers that cannot be right.
func (v *ImageRequest) check(stream bool) error {
	switch {
	case v.N < 0:
		return refused("n", fmt.Sprintf("it is %d", v.N), "give the number of images, or 0 for one")
	case v.PartialImages != 0 && !stream:
		return refused("partial_images", "the answer is not a stream, so it has no intermediate images", "use StreamImages or StreamEdit, or leave it out")
	}
	return nil
}

// edit returns the request to edit images, as a form.
func edit(req *ImageEdit, stream bool) (*transport.Ask, error) {
	if req == nil {
		return nil, errNil
	}
	if len(req.Images) == 0 {
		return nil, refused("image", "there is no image to edit", "give at least one")
	}
	if err := req.check(stream); err != nil {
		return nil, err
	}
	f := newForm()
	own := req.ImageRequest
	own.members(func(name string, v *string) { f.field(name, *v) }, func(name string, v *int64) {
		if *v != 0 {
			f.field(name, strconv.FormatInt(*v, 10))
		}
	})
	f.field("input_fidelity", req.Fidelity)
	if stream {
		f.field("stream", "true")
	}
	for _, m := range req.Extra {
		text, ok := m.Value.Unquote()
		if !ok {
			text = string(m.Value)
		}
		f.field(m.Name, text)
	}
	name := "image"
	if len(req.Images) > 1 {
		name = "image[]"
	}
	for i := range req.Images {
		f.file(name, &req.Images[i])
	}
	if req.Mask != nil {
		f.file("mask", req.Mask)
	}
	a := editPlace.ask(http.MethodPost)
	a.Repeat = transport.IfKeyed
	var err error
	a.Source, err = f.source()
	return a, err
}

// ImageEvent is an event of a stream of images: an intermediate image, or a final one. Schemas:
// ImageGenPartialImageEvent, ImageGenCompletedEvent, ImageEditPartialImageEvent,
// ImageEditCompletedEvent.
type ImageEvent struct {
	// Type is such as "image_generation.partial_image".
	Type   string
	Base64 string
	// Partial is the number of an intermediate image, from 0; -1 for other events.
	Partial   int
	CreatedAt int64 // Unix time in seconds

	Size, Quality, Background, Format string

	Usage *ImageUsage // of final images
	Extra item.Extra
}

func (v *ImageEvent) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("type", &v.Type)
	c.OptString("b64_json", &v.Base64)
	c.Index("partial_image_index", &v.Partial)
	optInt(c, "created_at", &v.CreatedAt)
	c.OptString("size", &v.Size)
	c.OptString("quality", &v.Quality)
	c.OptString("background", &v.Background)
	c.OptString("output_format", &v.Format)
	record.Opt(c, "usage", &v.Usage, (*ImageUsage).fields)
}

// MarshalJSON returns the event as JSON.
func (v *ImageEvent) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the event from a copy of data.
func (v *ImageEvent) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Final reports whether the event holds a final image.
func (v *ImageEvent) Final() bool { return v != nil && strings.HasSuffix(v.Type, ".completed") }

// Image returns the event's image.
func (v *ImageEvent) Image() *Image {
	if v == nil {
		return nil
	}
	return &Image{Base64: v.Base64}
}

// StreamImages yields intermediate images and the final ones as they are made; see
// [ImageRequest.PartialImages]. A stream that ends before its last final image gives an error of
// the class [endpoint.Truncated]. An endpoint that does not stream gives final images only. An error
// is the last pair yielded; breaking off cancels the request.
func (c *Client) StreamImages(ctx context.Context, req *ImageRequest) iter.Seq2[*ImageEvent, error] {
	return c.streamImages(ctx, func() (*transport.Ask, int64, error) {
		a, err := generate(req, true)
		if err != nil {
			return nil, 0, err
		}
		return a, req.N, nil
	})
}

// StreamEdit is [Client.EditImages] with the events of [Client.StreamImages]. The images can be
// read by one iteration only, unless they can seek.
func (c *Client) StreamEdit(ctx context.Context, req *ImageEdit) iter.Seq2[*ImageEvent, error] {
	return c.streamImages(ctx, func() (*transport.Ask, int64, error) {
		a, err := edit(req, true)
		if err != nil {
			return nil, 0, err
		}
		return a, req.N, nil
	})
}

func (c *Client) streamImages(ctx context.Context, prepare func() (*transport.Ask, int64, error)) iter.Seq2[*ImageEvent, error] {
	return func(yield func(*ImageEvent, error) bool) {
		a, n, err := prepare()
		if c == nil && err == nil {
			err = errNil
		}
		if err != nil {
			yield(nil, err)
			return
		}
		a.Accept = transport.TypeEvents
		x, err := c.link().Fetch(ctx, a)
		if err != nil {
			yield(nil, err)
			return
		}
		defer x.Close()
		r := imageReader{x: x, want: max(n, 1), yield: yield}
		if x.Kind == transport.JSON {
			err = r.whole()
		} else {
			err = r.stream()
		}
		if err != nil && !r.stopped {
			if e, ok := errors.AsType[*endpoint.Error](err); ok {
				e.Sent = r.sent
			}
			yield(nil, err)
		}
	}
}

// imageReader reads an answer to a request for a stream.
type imageReader struct {
	x             *transport.Exchange
	want, final   int64
	yield         func(*ImageEvent, error) bool
	sent, stopped bool
}

// pass yields an event and reports whether to go on.
func (r *imageReader) pass(v *ImageEvent) bool {
	if v.Final() {
		r.final++
	}
	r.sent = true
	r.stopped = !r.yield(v, nil)
	return !r.stopped
}

func (r *imageReader) stream() error {
	events := r.x.Events()
	r.x.Heard()
	for r.final < r.want {
		raw, err := events.Next()
		if err != nil {
			return err
		}
		r.x.Heard()
		if transport.Done(raw.Data) {
			return r.x.Broken(io.EOF)
		}
		if e := endpoint.FromEvent(raw.Data); e != nil {
			return r.x.Fail(e)
		}
		v, err := parse[ImageEvent](bytes.Clone(raw.Data))
		if err != nil {
			return events.Unreadable(raw, err)
		}
		if !r.pass(v) {
			return nil
		}
	}
	r.x.Drain()
	return nil
}

// whole yields the images of an answer that is not a stream.
func (r *imageReader) whole() error {
	text, err := r.x.ReadAll()
	if err != nil {
		return err
	}
	v, err := parse[Images](text)
	if err != nil {
		return r.x.IsNot("list of images", text, err)
	}
	if _, ok := jsonx.MemberOf(jsonx.String(text), "data"); !ok {
		return r.x.IsNot("list of images", text, nil)
	}
	for i, image := range v.Data {
		ev := &ImageEvent{
			Type: "image_generation.completed", Base64: image.Base64, Partial: -1, CreatedAt: v.Created,
			Size: v.Size, Quality: v.Quality, Background: v.Background, Format: v.Format, Extra: image.Extra,
		}
		if i == len(v.Data)-1 {
			ev.Usage = v.Usage
		}
		if image.URL != "" {
			ev.Extra.Set("url", item.Quote(image.URL))
		}
		if !r.pass(ev) {
			return nil
		}
	}
	if r.final < r.want {
		return r.x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: fmt.Sprintf("the answer has %d of %d images", r.final, r.want)})
	}
	return nil
}
