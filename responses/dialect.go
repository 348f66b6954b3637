// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Dialect is the Responses API as a [dialect.Dialect]. A [dialect.Client] with this Dialect creates
// responses. [Client] also has the rest of the API, and checks each stream for consistency.
type Dialect struct{}

func init() { dialect.Register(Dialect{}) }

const (
	opCreate      = "create response"
	responsesPath = "/responses"
)

// Info describes the Responses API.
func (Dialect) Info() dialect.Info {
	return dialect.Info{
		Name: endpoint.APIResponses, Title: "the Responses API", Op: opCreate, Path: responsesPath,
		Continue: true, WebSocket: true, Background: true, Stored: true, Conversations: true, Compaction: true, TokenCounts: true, OwnTools: true,
	}
}

// Open returns a [*Client].
func (Dialect) Open(c *dialect.Config) dialect.Model { return (*Client)(c) }

// Encode returns the body of a request. It changes only the member stream.
func (Dialect) Encode(out dialect.Outgoing) (*dialect.Message, error) {
	if out.Request == nil || out.Profile == nil {
		return nil, errors.New("responses: encoding needs the Request and the Profile of a dialect.Outgoing")
	}
	if err := transport.Nothing(out.Request, out.Profile); err != nil {
		return nil, err
	}
	body, err := encode(out.Request, out.Stream || streams(out.Profile))
	return &dialect.Message{Path: out.Profile.ResponsesPath, Body: body}, err
}

// streams reports whether the endpoint always answers with a stream.
func streams(p *endpoint.Profile) bool { return p.Set["stream"] == "true" }

// encode returns the body of a request and changes r: it sets or removes stream.
func encode(r *api.Request, stream bool) (item.Body, error) {
	r.Extra = slices.Clone(r.Extra)
	r.Extra.Delete("stream")
	if stream {
		r.Stream = &stream
	} else if r.Stream != nil && *r.Stream {
		r.Stream = nil
	}
	body, err := r.Body()
	if err == nil {
		err = body.Check()
	}
	return body, err
}

// NewDecoder returns a decoder for one response.
func (Dialect) NewDecoder() dialect.Decoder { return new(decoder) }

// decoder reads one answer. The events of the API are passed on unchanged.
type decoder struct {
	events api.EventDecoder
	over   bool
}

// Decode reads one event.
func (d *decoder) Decode(name, data []byte, yield func(api.Event) bool) error {
	ev, err := d.events.Decode(data)
	if err != nil {
		if skippable(name, data) {
			return dialect.ErrNotEvent
		}
		return err
	}
	if ev.Type == "" {
		ev.Type = api.EventType(name)
	}
	d.over = ev.Terminal()
	yield(ev)
	return nil
}

// skippable reports whether unreadable data in a stream can be ignored: it is not an object, or its
// event name does not belong to the API, such as the pings of proxies. A damaged object may have
// been part of the reply.
func skippable(name, data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) == 0 || data[0] != '{' || !ofAPI(string(name))
}

// ofAPI reports whether an event of the API may have this name.
func ofAPI(name string) bool {
	return name == "" || name == "message" || name == string(api.EventError) || strings.HasPrefix(name, "response.")
}

// State returns Over after the last event.
func (d *decoder) State() dialect.State {
	if d.over {
		return dialect.Over
	}
	return dialect.Unfinished
}

// Finish returns ErrTruncated if the stream had no last event.
func (d *decoder) Finish(bool, func(api.Event) bool) error {
	if d.over {
		return nil
	}
	return dialect.ErrTruncated
}

var errNoResponse = errors.New("the response has neither output nor id")

// Response parses a whole response.
func (d *decoder) Response(text []byte) (*api.Response, error) {
	r, err := api.ParseResponseString(jsonx.String(text))
	if err == nil && r.Output == nil && (r.ID == "" || cmp.Or(r.Status, item.StatusCompleted) == item.StatusCompleted) {
		err = errNoResponse
	}
	return r, err
}

// Losses always returns nil.
func (d *decoder) Losses() []dialect.Loss { return nil }
