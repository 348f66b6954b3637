// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// history is the same conversation in the types of each library.
type history struct {
	ours   *item.List
	theirs oai.ResponseInputParam
}

// add appends the i-th item of a conversation that contains calls.
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

// theirOutput returns the output of a call in the types of openai-go.
func theirOutput(id, text string) oai.ResponseInputItemUnionParam {
	out := oai.ResponseInputItemParamOfFunctionCallOutput(text)
	out.OfFunctionCallOutput.CallID = openai.String(id)
	return out
}

// theirMessage returns a message in the types of openai-go.
func theirMessage(parts ...oai.ResponseInputContentUnionParam) oai.ResponseInputItemUnionParam {
	m := oai.ResponseInputItemParamOfMessage(oai.ResponseInputMessageContentListParam(parts), oai.EasyInputMessageRoleUser)
	m.OfMessage.Type = oai.EasyInputMessageTypeMessage
	return m
}

// conversation returns a history with the given number of items.
func conversation(items int) *history {
	h := &history{ours: new(item.List)}
	for i := range items {
		h.add(i)
	}
	return h
}

// pictures returns a history of n images, each with size bytes of base64.
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

// ourRequest returns the request with the history in Antiphon's types.
func (h *history) ourRequest() *api.Request {
	return &api.Request{Model: "gpt-5.1", Instructions: instructions, Input: h.ours, Tools: []item.Tool{readTool()}, Store: new(false)}
}

// theirParams returns the same request in the types of openai-go.
func (h *history) theirParams() oai.ResponseNewParams {
	return oai.ResponseNewParams{
		Model: "gpt-5.1", Instructions: openai.String(instructions), Store: openai.Bool(false),
		Input: oai.ResponseNewParamsInputUnion{OfInputItemList: h.theirs},
		Tools: []oai.ToolUnionParam{oai.ToolParamOfFunction("read_file", map[string]any{
			"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"}, "additionalProperties": false,
		}, true)},
	}
}

// readTool returns the declaration of the tool in all requests.
func readTool() item.Tool {
	return &item.FunctionTool{
		Name: "read_file", Strict: new(true),
		Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`,
	}
}

// bodyRow creates the body of a request and reads it once. A client does the same
// for each turn: the transport copies the body to the socket in pieces.
func bodyRow(name string, h *history, gate, goal float64) row {
	req, params := h.ourRequest(), h.theirParams()
	body, err := req.MarshalJSON()
	if err != nil {
		panic(err)
	}
	// Every lib returns the number of items, so that measure can compare the
	// results.
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

// copied names the floor of the body rows: sending a body that already exists.
const copied = "a body at hand"

func ourBody(req *api.Request, n int) (int, error) {
	body, err := req.Body()
	if err != nil {
		return 0, err
	}
	return n, send(body.NewReader())
}

func theirBody(params *oai.ResponseNewParams, n int) (int, error) {
	b, err := params.MarshalJSON() // like its client; json.Marshal would parse the result again
	if err != nil {
		return 0, err
	}
	return n, send(bytes.NewReader(b))
}

// createRow sends a request with the given number of items through each library's
// client, and reads a short answer. It uses no socket.
func createRow(items int) row {
	h := conversation(items)
	web := &http.Client{Transport: cannedJSON(`{"id":"resp_1","object":"response","created_at":1751381577,"status":"completed","model":"gpt-5.1","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`)}
	client := &responses.Client{Key: endpoint.NewKey(benchKey), HTTP: web}
	theirs := openai.NewClient(option.WithAPIKey(benchKey), option.WithHTTPClient(web))
	req, params := h.ourRequest(), h.theirParams()
	return row{
		name: fmt.Sprintf("request of %d items, client to client", items), unit: "item", units: items, gate: 150, goal: 400, maxAllocs: -1,
		bars: []bar{most("allocations", func(r result) float64 { return r.ours().allocs }, 60, 30)},
		libs: []lib{
			{"antiphon", func() (int, error) {
				r, err := client.Create(context.Background(), req)
				return lengthOf(r), err
			}},
			{"openai-go", func() (int, error) {
				r, err := theirs.Responses.New(context.Background(), params)
				if err != nil {
					return 0, err
				}
				return len(r.Output), nil
			}},
		},
	}
}

// listRow builds a list from items that the program holds separately, as a server
// does for each request.
func listRow(items int) row {
	h := conversation(items)
	held := make([]item.Item, 0, items)
	for _, it := range h.ours.All() {
		held = append(held, it)
	}
	size := h.ours.Size()
	return row{
		name: fmt.Sprintf("list of %d items", items), unit: "item", units: items, bytes: size, maxAllocs: -1,
		bars: []bar{most("bytes allocated a byte", func(r result) float64 { return r.ours().bytes / float64(size) }, 1.6, 1.1)},
		libs: []lib{{"antiphon", func() (int, error) { return item.NewList(held...).Len(), nil }}},
	}
}

// cannedJSON is a transport that answers every request with the same object, without
// a socket.
type cannedJSON string

func (c cannedJSON) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if err := send(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(c)),
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(string(c))), Request: req,
	}, nil
}

// wholeClientRow reads a response that is not streamed with each library's client.
func wholeClientRow(name string, body []byte, gate, goal float64) row {
	web := &http.Client{Transport: cannedJSON(body)}
	client := &responses.Client{Key: endpoint.NewKey(benchKey), HTTP: web}
	theirs := openai.NewClient(option.WithAPIKey(benchKey), option.WithHTTPClient(web))
	req := &api.Request{Model: "gpt-5.1", Input: item.NewList(item.User("hi"))}
	params := oai.ResponseNewParams{Model: "gpt-5.1", Input: oai.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
	r := row{name: name, unit: "item", bytes: len(body), gate: gate, goal: goal, maxAllocs: -1}
	r.libs = []lib{
		{"antiphon", func() (int, error) {
			r, err := client.Create(context.Background(), req)
			return lengthOf(r), err
		}},
		{"openai-go", func() (int, error) {
			r, err := theirs.Responses.New(context.Background(), params)
			if err != nil {
				return 0, err
			}
			return len(r.Output), nil
		}},
	}
	n, err := r.libs[0].run()
	if err != nil {
		panic(err)
	}
	r.units = n
	return r
}

// outgoing stands for a connection's write buffer. It has the size that net/http
// uses.
var outgoing [32 << 10]byte

// send reads the pieces of a body through outgoing, as the transport does.
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

// runRow creates all request bodies of a run with the given number of turns. Each
// body is one call and its output longer than the one before.
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

// bodyRows returns the rows about request bodies.
func bodyRows() []row {
	return []row{
		bodyRow("request body, 10 items", conversation(10), 0, 0),
		bodyRow("request body, 1 000 items", conversation(1000), 100, 250),
		bodyRow("request body, 10 000 items", conversation(10_000), 0, 0),
		bodyRow("request body, 20 images of 500 KB", pictures(20, 500_000), 80, 110),
		createRow(1000),
		listRow(1000),
		runRow(800),
	}
}
