// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Client is a client of one Chat Completions endpoint with the interface of the Responses API. Its
// fields are those of [dialect.Config], which documents them:
//
//	c := &completions.Client{BaseURL: "http://localhost:11434"}
//
// The zero value uses api.openai.com, without a key. BaseURL is the URL before /chat/completions;
// the full URL of chat completions, or of responses, also works. Messages are written with
// [OptionsFor] the endpoint's profile. For other [Options] use a [dialect.Client] with a [Dialect].
//
// A Client is safe for concurrent use while its fields do not change, and must not be copied after
// its first use. For a request that was sent, every error is or wraps an [*endpoint.Error].
type Client dialect.Config

func (c *Client) speaks() dialect.Client {
	return dialect.Client{Config: (*dialect.Config)(c), Dialect: Dialect{}}
}

// Stream yields the answer as events of the Responses API; see [dialect.Client.Stream]. A stream
// that ends before its choice has a finish_reason is Truncated, unless it ended with its usage and
// [DONE].
func (c *Client) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return c.speaks().Stream(ctx, req)
}

// Create sends the request without streaming and returns the whole response; see
// [dialect.Client.Create].
func (c *Client) Create(ctx context.Context, req *api.Request) (*api.Response, error) {
	return c.speaks().Create(ctx, req)
}

// RetryPolicy returns Retry. A run of package agent uses it, so that the client
// and the loop share one budget.
func (c *Client) RetryPolicy() endpoint.Retry { return c.speaks().RetryPolicy() }

// Window returns the size of the model's context window in tokens, as the endpoint reports it, or
// 0. Few endpoints report it. Only these are asked, once for each model, and for at most a second.
func (c *Client) Window(ctx context.Context, model string) int64 {
	return c.speaks().Window(ctx, model)
}

// About says where requests go.
func (c *Client) About() endpoint.About { return c.speaks().About() }

// Recall gives the client an earlier result of [Client.About] for this endpoint; see
// [dialect.Client.Recall].
func (c *Client) Recall(before endpoint.About) { c.speaks().Recall(before) }

// Dialect is Chat Completions as a [dialect.Dialect]. The zero value writes messages as the
// endpoint's profile requires.
type Dialect struct {
	// Options control how messages are written. Nil means [OptionsFor] the profile.
	Options *Options
}

func init() { dialect.Register(Dialect{}) }

const chatPath = "/chat/completions"

// Info describes Chat Completions.
func (Dialect) Info() dialect.Info {
	return dialect.Info{Name: endpoint.APIChat, Title: "Chat Completions", Op: "create chat completion", Path: chatPath}
}

// Encode returns the body of a request. The messages are kept with the history, so that each item
// is converted only once.
func (d Dialect) Encode(out dialect.Outgoing) (*dialect.Message, error) {
	if out.Request == nil || out.Given == nil || out.Profile == nil {
		return nil, &item.ShapeError{Problem: "there is no request, or no profile"}
	}
	r, profile := out.Request, out.Profile
	if len(profile.APIs) > 0 && !slices.Contains(profile.APIs, endpoint.APIChat) {
		return nil, &endpoint.RefusedError{By: profile.Name, Problem: "this endpoint has no Chat Completions", Hint: "use its Responses API"}
	}
	r.Include = out.Given.Include // values added to it are for the Responses API
	r.Stream = nil
	r.Extra = slices.Clone(r.Extra)
	r.Extra.Delete("stream")
	if out.Stream {
		r.Stream = &out.Stream
	}
	o := d.options(r.Model, profile, out.Table)
	m := &dialect.Message{Path: profile.Chat.Path}
	at := place{to: &m.Losses}
	messages, err := inputOf(r).Derive(o.key(), func(dst, src *item.List, from int) error {
		if err := o.write(dst, src, from, at.at("input")); err != nil {
			return err
		}
		return refuse(m.Losses, profile)
	})
	if err != nil {
		return nil, err
	}
	head, tail, err := o.around(r, messages.Len(), at)
	if err != nil {
		return nil, err
	}
	m.Body = item.ListBody(string(head), messages, string(tail))
	m.Item = func(param string) (int, bool) { return o.itemOf(r, param) }
	return m, m.Body.Check()
}

// options returns the caller's options or those of the profile. A gateway passes the output limit
// on to its model, and models that reason accept only the newer member for it.
func (d Dialect) options(model string, profile *endpoint.Profile, table *endpoint.Table) Options {
	if d.Options != nil {
		return *d.Options
	}
	o := OptionsFor(profile)
	if m, _ := table.Model(model); m.Reasoning == endpoint.Yes && (profile.Name == endpoint.Careful.Name || profile.Name == endpoint.Careful.Fallback) {
		o.MaxTokens = ""
	}
	return o
}

// refuse returns an error if content for the model would be lost.
func refuse(losses []Loss, profile *endpoint.Profile) error {
	for _, l := range losses {
		if l.Kind == LostContent {
			return &endpoint.RefusedError{By: profile.Name, Param: l.Path, Problem: l.What}
		}
	}
	return nil
}

// NewDecoder returns a decoder for one completion.
func (Dialect) NewDecoder() dialect.Decoder { return new(answerDecoder) }

// answerDecoder reads one answer of a server, streamed or not.
type answerDecoder struct {
	stream Decoder
	whole  []Loss // losses of an answer that is a single object
}

// Decode decodes a chunk, or an error that a server sends as an event of that name.
func (d *answerDecoder) Decode(name, data []byte, yield func(api.Event) bool) error {
	if text := bytes.TrimSpace(data); len(text) == 0 || text[0] != '{' {
		return dialect.ErrNotEvent
	}
	if string(name) == "error" && item.JSON(data).Valid() == nil && member(trim(item.JSON(data)), "error") == "" {
		data = []byte(`{"error":` + string(data) + `}`)
	}
	return d.stream.Decode(data, yield)
}

// State returns Settled when the choice has ended, since the usage may follow.
func (d *answerDecoder) State() dialect.State {
	if d.stream.Reason() != "" {
		return dialect.Settled
	}
	return dialect.Unfinished
}

// Finish ends the reply.
func (d *answerDecoder) Finish(done bool, yield func(api.Event) bool) error {
	if done {
		d.stream.Done()
	}
	return d.stream.Finish(yield)
}

// Response decodes a completion that is a single object.
func (d *answerDecoder) Response(text []byte) (*api.Response, error) {
	r, losses, err := ParseResponse(text)
	d.whole = losses
	return r, err
}

// Losses returns the parts of the answer that a response cannot hold.
func (d *answerDecoder) Losses() []Loss { return append(d.whole, d.stream.Losses()...) }
