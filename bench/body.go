// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/openai/openai-go/v3"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/item"
)

// history is a conversation as each library holds it.
type history struct {
	ours   *item.List
	theirs oai.ResponseInputParam
}

// add appends the i-th item of a conversation with calls.
func (h *history) add(i int) {
	text := fmt.Sprintf("%d: %s", i, strings.Repeat("A line of words, as \"models\" write them.\n", 12))
	id := fmt.Sprintf("call_%d", i-i%2)
	switch {
	case i%20 == 0:
		h.ours.Append(item.User(text))
		h.theirs = append(h.theirs, theirMessage(oai.ResponseInputContentParamOfInputText(text)))
	case i%20 == 1:
		h.ours.Append(item.Assistant(text))
		said := oai.ResponseInputItemParamOfMessage(text, oai.EasyInputMessageRoleAssistant)
		said.OfMessage.Type = oai.EasyInputMessageTypeMessage
		h.theirs = append(h.theirs, said)
	case i%2 == 0:
		arguments := fmt.Sprintf(`{"path":"dir/notes-%d.txt","offset":1,"limit":200}`, i)
		h.ours.Append(item.Call(id, "read_file", arguments))
		h.theirs = append(h.theirs, oai.ResponseInputItemParamOfFunctionCall(arguments, id, "read_file"))
	default:
		h.ours.Append(item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Text(text)}))
		h.theirs = append(h.theirs, theirOutput(id, text))
	}
}

func theirOutput(id, text string) oai.ResponseInputItemUnionParam {
	out := oai.ResponseInputItemParamOfFunctionCallOutput(text)
	out.OfFunctionCallOutput.CallID = openai.String(id)
	return out
}

func theirMessage(parts ...oai.ResponseInputContentUnionParam) oai.ResponseInputItemUnionParam {
	m := oai.ResponseInputItemParamOfMessage(oai.ResponseInputMessageContentListParam(parts), oai.EasyInputMessageRoleUser)
	m.OfMessage.Type = oai.EasyInputMessageTypeMessage
	return m
}

func conversation(items int) *history {
	h := &history{ours: new(item.List)}
	for i := range items {
		h.add(i)
	}
	return h
}

// pictures is a history of n images, each of size bytes of base64.
func pictures(n, size int) *history {
	h := &history{ours: new(item.List)}
	url := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo/", size/12)
	for i := range n {
		text := fmt.Sprintf("Picture %d", i)
		h.ours.Append(item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: text}, &item.InputImage{ImageURL: url, Detail: item.DetailAuto})}))
		image := oai.ResponseInputContentParamOfInputImage(oai.ResponseInputImageDetailAuto)
		image.OfInputImage.ImageURL = openai.String(url)
		h.theirs = append(h.theirs, theirMessage(oai.ResponseInputContentParamOfInputText(text), image))
	}
	return h
}

const instructions = "You are terse. Read what you need, then answer."

func (h *history) ourRequest() *item.Request {
	return &item.Request{Model: "gpt-5.1", Instructions: instructions, Input: h.ours, Tools: []item.Tool{readTool()}, Store: new(false)}
}

func (h *history) theirParams() oai.ResponseNewParams {
	return oai.ResponseNewParams{
		Model: "gpt-5.1", Instructions: openai.String(instructions), Store: openai.Bool(false),
		Input: oai.ResponseNewParamsInputUnion{OfInputItemList: h.theirs},
		Tools: []oai.ToolUnionParam{oai.ToolParamOfFunction("read_file", map[string]any{
			"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"}, "additionalProperties": false,
		}, true)},
	}
}

func readTool() item.Tool {
	return &item.FunctionTool{
		Name: "read_file", Strict: new(true),
		Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`,
	}
}

// bodyRow makes the request's body and reads it once, as a client does for each
// turn: the transport copies it to the socket piece by piece.
func bodyRow(name string, h *history, gate, goal float64) row {
	req, params := h.ourRequest(), h.theirParams()
	body, err := req.MarshalJSON()
	if err != nil {
		panic(err)
	}
	n := h.ours.Len()
	bars := []bar{most("allocations", func(r result) float64 { return r.ours().allocs }, 30, 10)}
	if gate > 0 {
		bars = append(bars, most("ours of a plain copy", func(r result) float64 { return 1 / r.of(copied) }, 1.5, 1.1))
	}
	return row{
		name: name, unit: "item", units: n, bytes: len(body), gate: gate, goal: goal, maxAllocs: -1, bars: bars,
		libs: []lib{
			{"antiphon", func() (int, error) { return ourBody(req, n) }},
			{"openai-go", func() (int, error) { return theirBody(&params, n) }},
			{copied, func() (int, error) { return n, send(bytes.NewReader(body)) }},
			{"antiphon, in one buffer", func() (int, error) {
				b, err := req.MarshalJSON()
				if err != nil {
					return 0, err
				}
				return n, send(bytes.NewReader(b))
			}},
		},
	}
}

// copied is the least that can be done with a body that is there already.
const copied = "a body at hand"

func ourBody(req *item.Request, n int) (int, error) {
	body, err := req.Body()
	if err != nil {
		return 0, err
	}
	return n, send(body.NewReader())
}

func theirBody(params *oai.ResponseNewParams, n int) (int, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return 0, err
	}
	return n, send(bytes.NewReader(b))
}

// outgoing is a connection's buffer, as large as net/http's.
var outgoing [32 << 10]byte

func send(pieces ...io.Reader) error {
	for _, p := range pieces {
		for {
			if _, err := p.Read(outgoing[:]); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// runRow makes all bodies of a run with that many turns, each a call and its
// output longer than the one before.
func runRow(turns int) row {
	h := conversation(2 * turns)
	items := h.ourRequest().InputItems()
	size := 0
	ours := func() (int, error) {
		req := h.ourRequest()
		req.Input = new(item.List)
		size = 0
		for i := range turns {
			req.Input.Append(items[2*i], items[2*i+1])
			size += req.Input.Size()
			if _, err := ourBody(req, 0); err != nil {
				return 0, err
			}
		}
		return turns, nil
	}
	r := row{
		name: fmt.Sprintf("run of %d turns, bodies only", turns), unit: "turn", units: turns, gate: 150, goal: 200, maxAllocs: -1, rounds: 3,
		libs: []lib{
			{"antiphon", ours},
			{"openai-go", func() (int, error) {
				params := h.theirParams()
				params.Input.OfInputItemList = nil
				for i := range turns {
					params.Input.OfInputItemList = append(params.Input.OfInputItemList, h.theirs[2*i:2*i+2]...)
					if _, err := theirBody(&params, 0); err != nil {
						return 0, err
					}
				}
				return turns, nil
			}},
		},
	}
	if _, err := ours(); err != nil {
		panic(err)
	}
	r.bytes = size
	return r
}

// bodyRows are the rows about what is sent.
func bodyRows() []row {
	return []row{
		bodyRow("request body, 10 items", conversation(10), 0, 0),
		bodyRow("request body, 1 000 items", conversation(1000), 100, 250),
		bodyRow("request body, 10 000 items", conversation(10_000), 0, 0),
		bodyRow("request body, 20 images of 500 KB", pictures(20, 500_000), 80, 110),
		runRow(800),
	}
}
