// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// invoice is the typed result.
type invoice struct {
	Vendor string  `json:"vendor" jsonschema:"who sent it"`
	Total  float64 `json:"total" minimum:"0"`
	State  string  `json:"state" enum:"open,paid"`
	Due    string  `json:"due" format:"date"`
	Lines  []struct {
		What  string  `json:"what"`
		Count int     `json:"count" minimum:"1"`
		Price float64 `json:"price"`
	} `json:"lines" minItems:"1"`
}

// invoiceLines is the number of lines of the answer.
const invoiceLines = 20

// invoiceText is the answer of the typed row.
var invoiceText = sync.OnceValue(func() string {
	var lines []string
	for i := range invoiceLines {
		lines = append(lines, fmt.Sprintf(`{"what":"a box of tea, number %d","count":%d,"price":%d.5}`, i, i+1, i*3))
	}
	return `{"vendor":"Harbour Tea","total":1041.5,"state":"open","due":"2026-12-01","lines":[` + strings.Join(lines, ",") + `]}`
})

// invoiceStream is the answer as the API streams it: a token is about four bytes.
func invoiceStream() []byte {
	var e events
	text := invoiceText()
	e.event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
	e.event("response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	for rest := text; rest != ""; {
		n := min(4, len(rest))
		e.event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":0,"content_index":0,"delta":%q,"logprobs":[]`, rest[:n]))
		rest = rest[n:]
	}
	message := fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}`, text)
	e.event("response.output_item.done", `"output_index":0,"item":`+message)
	e.event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}}`)
	return e.Bytes()
}

// invoice answers with an invoice.
func (*answers) invoice(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(invoiceAnswer())
}

var invoiceAnswer = sync.OnceValue(invoiceStream)

// Names of the libraries of the typed row.
const (
	untyped     = "untyped, decoded by encoding/json"
	untypedText = "untyped, not decoded"
)

// typedRow compares a typed result with an untyped one: the same agent and the same
// answer, with the format set and the text decoded by the program. The server is
// another process.
func typedRow() row {
	connect := sync.OnceValues(plainHTTP.wired)
	with := func(read func(*agent.Agent) (int, error)) func() (int, error) {
		return func() (int, error) {
			w, err := connect()
			if err != nil {
				return 0, err
			}
			return read(&agent.Agent{
				Model:   &responses.Client{BaseURL: w.base + "/typed", Key: endpoint.NewKey(benchKey), HTTP: w.ours},
				Request: api.Request{Model: "gpt-5.1", Instructions: instructions},
			})
		}
	}
	format := sync.OnceValues(func() (item.JSON, error) {
		schema, err := tool.SchemaOf[invoice]()
		if err != nil {
			return "", err
		}
		return api.TextAsSchema("answer", schema, true)
	})
	text := func(a *agent.Agent) (_ string, err error) {
		if a.Request.Text, err = format(); err != nil {
			return "", err
		}
		res, err := a.Run(context.Background(), session.New(), item.User("Read the invoice."))
		return res.Text, err
	}
	return row{
		name: "typed result", unit: "answer", units: 1, bytes: len(invoiceText()), maxAllocs: -1,
		bars: []bar{most("processor time of an untyped result", func(r result) float64 { return 1 / r.of(untyped) }, 1.05, 1)},
		libs: []lib{
			{"antiphon", with(func(a *agent.Agent) (int, error) {
				got, err := agent.RunAs[invoice](context.Background(), a, session.New(), item.User("Read the invoice."))
				return len(got.Value.Lines), err
			})},
			{untyped, with(func(a *agent.Agent) (int, error) {
				said, err := text(a)
				if err != nil {
					return 0, err
				}
				var v invoice
				err = json.Unmarshal([]byte(said), &v)
				return len(v.Lines), err
			})},
			{untypedText, with(func(a *agent.Agent) (int, error) {
				said, err := text(a)
				if err == nil && said != invoiceText() {
					err = errors.New("another text came")
				}
				return invoiceLines, err
			})},
		},
	}
}
