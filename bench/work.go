// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// sum combines the number of events and the bytes of their deltas in one number.
type sum int

func (s *sum) add(length int) { *s += 1<<32 + sum(length) }

// streamRow reads a stream's bytes to its last event. If keep is set, we read events
// as values, in the form that the clients yield; otherwise as views.
func streamRow(name string, stream []byte, gate, goal float64, keep bool) row {
	r := row{
		name: name, unit: "event", bytes: len(stream), gate: gate, goal: goal,
		libs: []lib{{"antiphon", ourEvents(stream, keep)}, {"openai-go", theirEvents(stream, keep)}},
	}
	if !keep && strings.Contains(name, "stream") {
		r.libs = append(r.libs, plainEvents(stream)...)
	}
	if keep {
		r.maxAllocs = 1
	}
	r.units = countEvents(stream)
	return r
}

// mayAllocate allows a row n allocations per unit.
func mayAllocate(r row, n float64) row {
	r.maxAllocs = n
	return r
}

// ourEvents returns the work of a streamRow with Antiphon.
func ourEvents(stream []byte, keep bool) func() (int, error) {
	return func() (int, error) {
		var total sum
		var texts []string
		rd := sse.NewReader(bytes.NewReader(stream), sse.Options{})
		var decoder api.EventDecoder
		for {
			raw, err := rd.Next()
			if err == io.EOF {
				return int(total), nil
			}
			if err != nil {
				return 0, err
			}
			if len(raw.Data) == 0 || raw.Data[0] != '{' {
				continue
			}
			if keep {
				ev, err := decoder.Decode(raw.Data)
				if err != nil {
					return 0, err
				}
				total.add(len(ev.Delta))
				texts = append(texts, ev.Delta)
				continue
			}
			ev, err := decoder.View(raw.Data)
			if err != nil {
				return 0, err
			}
			total.add(len(ev.Delta()))
		}
	}
}

// theirEvents returns the work of a streamRow with openai-go.
func theirEvents(stream []byte, keep bool) func() (int, error) {
	return func() (int, error) {
		var total sum
		var texts []string
		res := &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(bytes.NewReader(stream)),
		}
		events := ssestream.NewStream[oai.ResponseStreamEventUnion](ssestream.NewDecoder(res), nil)
		for events.Next() {
			ev := events.Current()
			total.add(len(ev.Delta))
			if keep {
				texts = append(texts, ev.Delta)
			}
		}
		return int(total), events.Err()
	}
}

// plainEvents decodes each event's data with general JSON libraries, after our own
// framing, into the members that the views provide.
func plainEvents(stream []byte) []lib {
	type event struct {
		Type           string          `json:"type"`
		SequenceNumber int64           `json:"sequence_number"`
		ItemID         string          `json:"item_id"`
		OutputIndex    int             `json:"output_index"`
		ContentIndex   int             `json:"content_index"`
		SummaryIndex   int             `json:"summary_index"`
		Delta          json.RawMessage `json:"delta"`
	}
	with := func(name string, unmarshal func([]byte, any) error) lib {
		return lib{name, func() (int, error) {
			var total sum
			rd := sse.NewReader(bytes.NewReader(stream), sse.Options{})
			for {
				raw, err := rd.Next()
				if err == io.EOF {
					return int(total), nil
				}
				if err != nil {
					return 0, err
				}
				if len(raw.Data) == 0 || raw.Data[0] != '{' {
					continue
				}
				var ev event
				if err := unmarshal(raw.Data, &ev); err != nil {
					return 0, err
				}
				var delta string
				if len(ev.Delta) > 0 && ev.Delta[0] == '"' {
					if err := unmarshal(ev.Delta, &delta); err != nil {
						return 0, err
					}
				}
				total.add(len(delta))
			}
		}}
	}
	return []lib{
		with("encoding/json", json.Unmarshal),
		with("json/v2", func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }),
		with("goccy", func(b []byte, v any) error { return goccy.Unmarshal(b, v) }),
	}
}

// canned is a transport that answers every request with the same stream, without a
// socket.
type canned struct{ body []byte }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"text/event-stream"}},
		Body:    io.NopCloser(bytes.NewReader(c.body)),
		Request: req,
	}, nil
}

// clientRow reads the stream with each library's client, as its users would.
func clientRow(name string, stream []byte) row {
	httpClient := &http.Client{Transport: canned{stream}}
	client := &responses.Client{Key: endpoint.NewKey("sk-bench-0123456789"), HTTP: httpClient}
	req := &api.Request{Model: "gpt-5.1", Input: item.NewList(item.User("hi"))}
	theirs := openai.NewClient(option.WithAPIKey("sk-bench-0123456789"), option.WithHTTPClient(httpClient))
	params := oai.ResponseNewParams{Model: "gpt-5.1", Input: oai.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
	return row{
		name: name, unit: "event", units: countEvents(stream), bytes: len(stream), gate: 40, goal: 80, maxAllocs: 1,
		libs: []lib{
			{"antiphon", func() (int, error) {
				var total sum
				for ev, err := range client.Stream(context.Background(), req) {
					if err != nil {
						return 0, err
					}
					total.add(len(ev.Delta))
				}
				return int(total), nil
			}},
			{"openai-go", func() (int, error) {
				var total sum
				s := theirs.Responses.NewStreaming(context.Background(), params)
				for s.Next() {
					total.add(len(s.Current().Delta))
				}
				return int(total), s.Err()
			}},
		},
	}
}

// wholeRow reads a response from bytes. It counts the items or, if views is set,
// reads each item by its type. The general JSON libraries store each item as text,
// as we do, but do not read its type.
func wholeRow(name string, body []byte, gate, goal float64, views bool) row {
	text := unsafe.String(unsafe.SliceData(body), len(body)) // safe, as for a client that owns the bytes it read
	r := row{name: name, unit: "item", bytes: len(body), gate: gate, goal: goal, maxAllocs: -1}
	r.libs = []lib{
		{"antiphon", func() (int, error) {
			resp, err := api.ParseResponseString(text)
			if err != nil || !views {
				return lengthOf(resp), err
			}
			return ourViews(resp)
		}},
		{"openai-go", func() (int, error) {
			var resp oai.Response
			if err := json.Unmarshal(body, &resp); err != nil || !views {
				return len(resp.Output), err
			}
			return theirViews(&resp)
		}},
	}
	if !views {
		r.libs = append(r.libs,
			lib{"encoding/json", func() (int, error) {
				var p struct{ Output []json.RawMessage }
				err := json.Unmarshal(body, &p)
				return len(p.Output), err
			}},
			lib{"json/v2", func() (int, error) {
				var p struct {
					Output []jsontext.Value `json:"output"`
				}
				err := jsonv2.Unmarshal(body, &p)
				return len(p.Output), err
			}},
			lib{"goccy", func() (int, error) {
				var p struct{ Output []json.RawMessage }
				err := goccy.Unmarshal(body, &p)
				return len(p.Output), err
			}})
	}
	resp, err := api.ParseResponseString(text)
	if err != nil {
		panic(err)
	}
	r.units = len(resp.Output)
	return r
}

// lengthOf returns the number of output items. A nil response has none.
func lengthOf(r *api.Response) int {
	if r == nil {
		return 0
	}
	return len(r.Output)
}

var errKind = errors.New("an item of another kind")

// ourViews reads every item and returns the total length of the texts.
func ourViews(r *api.Response) (n int, err error) {
	for _, it := range r.Output {
		v, err := it.Decode()
		if err != nil {
			return 0, err
		}
		switch v := v.(type) {
		case *item.Message:
			n += len(v.ID) + len(v.Status)
			for _, p := range v.Content.Parts {
				n += len(p.(*item.OutputText).Text)
			}
		case *item.FunctionCall:
			n += len(v.ID) + len(v.CallID) + len(v.Name) + len(v.Arguments)
		case *item.Reasoning:
			n += len(v.ID) + len(v.EncryptedContent)
			for _, p := range v.Summary {
				n += len(p.(*item.SummaryText).Text)
			}
		default:
			return 0, errKind
		}
	}
	return n, nil
}

// theirViews is ourViews for openai-go.
func theirViews(r *oai.Response) (n int, err error) {
	for i := range r.Output {
		switch v := r.Output[i].AsAny().(type) {
		case oai.ResponseOutputMessage:
			n += len(v.ID) + len(v.Status)
			for k := range v.Content {
				n += len(v.Content[k].AsOutputText().Text)
			}
		case oai.ResponseFunctionToolCall:
			n += len(v.ID) + len(v.CallID) + len(v.Name) + len(v.Arguments)
		case oai.ResponseReasoningItem:
			n += len(v.ID) + len(v.EncryptedContent)
			for _, s := range v.Summary {
				n += len(s.Text)
			}
		default:
			return 0, errKind
		}
	}
	return n, nil
}
