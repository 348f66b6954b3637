// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// A server that accepts a request need not do what it asks. These probes check the
// effect: the model's text, the token counts, and the members that the answer
// repeats. A small model may fail although the server supports a feature, so a
// result that depends on the model alone is unclear, and not a no.

// errIgnored means that a part of a request was ignored or refused.
type errIgnored string

func (e errIgnored) Error() string { return string(e) }

// errUnclear means that an answer does not show whether a feature works.
type errUnclear string

func (e errUnclear) Error() string { return string(e) }

// refused reports a 4xx about the request, which means no for an optional part of
// the API.
func refused(err error) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusNotImplemented)
}

// asNo turns a refusal into a finding that the endpoint lacks the feature.
func asNo(err error) error {
	if refused(err) {
		return errIgnored("refused: " + brief(err))
	}
	return err
}

// previous asks in the second turn for a word of the first one.
func (p *prober) previous(ctx context.Context) (string, error) {
	const word = "marzipan"
	yes := true
	r := p.request(item.User("The password is " + word + ". Say ok."))
	r.Store = &yes
	c := p.bare()
	first, err := c.Create(ctx, r)
	if err != nil {
		return "", err
	}
	next := p.request(item.User("What is the password?"))
	next.PreviousResponseID = first.ID
	second, err := c.Create(ctx, next)
	if err != nil {
		return "", asNo(err)
	}
	knows := strings.Contains(strings.ToLower(second.Text()), word)
	switch {
	case second.PreviousResponseID != first.ID && !knows:
		return "", errIgnored("accepted and ignored: the answer does not name the response, and the model did not see it")
	case !knows && inputOf(second) > 0 && inputOf(second) <= inputOf(first):
		return "", errIgnored(fmt.Sprintf("accepted and ignored: %d input tokens, after %d for the first turn", inputOf(second), inputOf(first)))
	case !knows && inputOf(second) == 0:
		return "", errUnclear("the answer names the response, but the model did not know its text")
	}
	p.id = first.ID
	if knows {
		return "a word of turn one was known at turn two", nil
	}
	return fmt.Sprintf("%d input tokens, after %d for the first turn; the model did not repeat its word", inputOf(second), inputOf(first)), nil
}

func inputOf(r *api.Response) int64 {
	if r.Usage == nil {
		return 0
	}
	return r.Usage.InputTokens
}

// usage checks whether tokens are counted.
func (p *prober) usage(context.Context) (string, error) {
	switch {
	case p.first == nil:
		return "", errSkip("nothing was answered")
	case p.first.Usage == nil || p.first.Usage.InputTokens+p.first.Usage.OutputTokens == 0:
		return "", errIgnored("the answer has no token counts: limits and costs do not work")
	case p.streamed == nil:
		return "", errIgnored("counted, but not in a stream")
	}
	return fmt.Sprintf("%d in, %d out", p.first.Usage.InputTokens, p.first.Usage.OutputTokens), nil
}

// maxTokens asks for more output than the limit allows.
func (p *prober) maxTokens(ctx context.Context) (string, error) {
	const limit = 16 // the minimum that the API accepts
	r := p.request(item.User("Count from one to two hundred, in words."))
	r.Instructions = "Do what the user asks, in full."
	*r.MaxOutputTokens = limit
	resp, err := p.client().Create(ctx, r)
	if err != nil {
		return "", asNo(err)
	}
	n := int64(0)
	if resp.Usage != nil {
		n = resp.Usage.OutputTokens
	}
	switch {
	case resp.Status == item.StatusIncomplete:
		return "and the reply says that it is incomplete", nil
	case n > limit:
		return "", errIgnored(fmt.Sprintf("ignored: the reply has %d tokens, although the limit was %d", n, limit))
	case n == limit:
		return fmt.Sprintf("but the incomplete reply says %q; the count of its tokens tells", resp.Status), nil
	}
	return "", errUnclear("the model ended its reply before the limit")
}

// schema asks for JSON where the model would otherwise answer with text.
func (p *prober) schema(ctx context.Context) (string, error) {
	text, err := api.TextAsSchema("answer", `{"type":"object","properties":{"colour":{"type":"string","enum":["blue"]}},"required":["colour"],"additionalProperties":false}`, true)
	if err != nil {
		return "", err
	}
	r := p.request(probeQuestion)
	r.Text = text
	resp, err := p.client().Create(ctx, r)
	if err != nil {
		return "", asNo(err)
	}
	var got map[string]string
	switch err := json.Unmarshal([]byte(resp.Text()), &got); {
	case err == nil && len(got) == 1 && got["colour"] == "blue":
		return "the reply obeys its schema", nil
	case resp.Status == item.StatusIncomplete && strings.HasPrefix(strings.TrimSpace(resp.Text()), "{"):
		return "", errUnclear("the reply ended before its JSON did")
	}
	return "", errIgnored(fmt.Sprintf("accepted and ignored:  the reply is %q", p.short(resp.Text())))
}

// forced requires a call where the model would otherwise answer with text: first any
// call, then one of two tools by name.
func (p *prober) forced(ctx context.Context) (string, error) {
	r := p.request(probeQuestion)
	r.Tools, r.ToolChoice = []item.Tool{probeTool}, api.ChoiceRequired
	resp, err := p.client().Create(ctx, r)
	if err != nil {
		return "", asNo(err)
	}
	if len(callsIn(resp)) == 0 {
		return "", errIgnored("accepted and ignored:  the model could answer without a call")
	}
	return "", nil
}

func (p *prober) named(ctx context.Context) (string, error) {
	other := *probeTool
	other.Name = "pong"
	r := p.request(item.User("Call a tool."))
	r.Tools, r.ToolChoice = []item.Tool{probeTool, &other}, api.ChooseFunction(other.Name)
	resp, err := p.client().Create(ctx, r)
	if err != nil {
		return "", asNo(err)
	}
	switch calls := callsIn(resp); {
	case len(calls) == 0:
		return "", errIgnored("accepted and ignored:  the model could answer without a call")
	case slices.Contains(calls, probeTool.Name):
		return "", errIgnored("accepted and ignored:  " + probeTool.Name + " was called, though " + other.Name + " was named")
	}
	return "", nil
}

// callsIn returns the names of the called functions.
func callsIn(r *api.Response) (names []string) {
	for _, it := range r.Output {
		if it.Type() == item.TypeFunctionCall {
			names = append(names, it.Name())
		}
	}
	return names
}

// leastImage is the minimum number of tokens of an image: a square of 256 pixels
// takes 64 or more for every known model. A placeholder takes a few.
const leastImage = 40

const imageQuestion = "What colour is it? Answer with one word."

// picture sends an image in a message and asks about it.
func (p *prober) picture(ctx context.Context) (string, error) {
	c := p.client()
	without, err := c.Create(ctx, p.request(item.User(imageQuestion)))
	if err != nil {
		return "", err
	}
	m, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: imageQuestion}, &item.InputImage{ImageURL: probeImage()})})
	if err != nil {
		return "", err
	}
	with, err := c.Create(ctx, p.request(m))
	if err != nil {
		return "", asNoImage(err)
	}
	return arrived(with, inputOf(with)-inputOf(without))
}

// asNoImage turns the refusal of a request that succeeded without the image into a
// finding. llama-server without --mmproj refuses with status 500.
func asNoImage(err error) error {
	var e *endpoint.Error
	if errors.As(err, &e) && e.Status == http.StatusInternalServerError {
		return errIgnored("refused: " + brief(err))
	}
	return asNo(err)
}

// arrived reports whether an image reached the model, given the number of additional
// tokens.
func arrived(with *api.Response, more int64) (string, error) {
	words := strings.FieldsFunc(strings.ToLower(with.Text()), func(r rune) bool { return !unicode.IsLetter(r) })
	switch {
	case slices.Contains(words, "red"):
		return "the model saw it", nil
	case inputOf(with) == 0:
		return "", errUnclear("accepted, but the model did not say what it shows, and no tokens are counted")
	case more < leastImage:
		return "", errIgnored(fmt.Sprintf("accepted and dropped:  it counts %d tokens, and the model did not say what it shows", max(more, 0)))
	}
	return "", errUnclear(fmt.Sprintf("it counts %d tokens, but the model did not say what it shows", more))
}

// probeImage is a red square as a data URI.
func probeImage() string {
	img := image.NewPaletted(image.Rect(0, 0, 256, 256), color.Palette{color.RGBA{220, 0, 0, 255}})
	var b bytes.Buffer
	_ = png.Encode(&b, img) // into memory
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

// window determines the size of the model's context: from the places that the
// profile names, and for an unknown server from the places that local servers use.
func (p *prober) window(ctx context.Context) (string, error) {
	if n := endpoint.WindowIn(p.listed, p.link.Model); n > 0 {
		return fmt.Sprintf("%d tokens, as the list of models says", n), nil
	}
	paths := p.known.Windows
	if p.known.Name == endpoint.Careful.Name || p.known.Name == "plain" {
		paths = []string{"//props", "//api/ps"}
	}
	for _, path := range paths {
		below, atRoot := strings.CutPrefix(path, "//")
		if !atRoot {
			continue // the list of models was read already
		}
		body, err := p.atRoot(ctx, "/"+below)
		if err != nil {
			continue
		}
		says, n := "", endpoint.WindowIn(body, p.link.Model)
		if below == "api/ps" {
			p.ollama, says = true, "; Ollama silently cuts longer input; set OLLAMA_CONTEXT_LENGTH to increase it"
		}
		if n > 0 {
			return fmt.Sprintf("%d tokens, as /%s says%s", n, below, says), nil
		}
	}
	if m, ok := p.link.Table.Model(p.link.Model); ok && m.ContextWindow > 0 {
		return fmt.Sprintf("%d tokens, as the table of models says", m.ContextWindow), nil
	}
	return "", errIgnored(`not reported; set "context_window" in a file for --profiles, so that histories are compacted in time`)
}

// atRoot reads JSON from a path at the root of the endpoint's host.
func (p *prober) atRoot(ctx context.Context, path string) (jsontext.Value, error) {
	u, err := p.known.URL(cmp.Or(p.link.BaseURL, endpoint.DefaultBaseURL), "/")
	if err != nil {
		return nil, err
	}
	root := *u
	root.Path, root.RawPath, root.RawQuery = path, "", ""
	_, body, err := p.get(ctx, root.String())
	if err == nil && !jsontext.Value(body).IsValid() {
		err = errors.New("the answer is not JSON")
	}
	return body, err
}

// get reads a document at this address only: it does not follow redirects, which
// would forward the key.
func (p *prober) get(ctx context.Context, address string) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	p.known.SetHeader(req.Header, p.link.Key, p.link.Account)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, endpoint.FromTransport(req.Method, req.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, nil, endpoint.FromTransport(req.Method, req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, endpoint.FromResponse(resp, []byte(p.secret(string(body)))) // before the text is shortened
	}
	return resp.Header, body, nil
}
