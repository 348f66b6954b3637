// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package compliance

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// picture is an image of one pixel.
const picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const weather = `"input":[{"type":"message","role":"user","content":"What is the weather in San Francisco?"}],
	"tools":[{"type":"function","name":"get_weather","description":"Tells the current weather at a place.",
		"parameters":{"type":"object","properties":{"location":{"type":"string","description":"A city."}},"required":["location"]}}]`

const agreed = `[{"type":"message","role":"user","content":"We launch on Tuesday, and tell the support team before."},
	{"type":"message","role":"assistant","content":"The launch is on Tuesday; support hears of it first."}]`

// accepted are the inputs that must give a complete response.
var accepted = map[string]string{
	"basic text":     `"input":[{"type":"message","role":"user","content":"Say hello in three words."}]`,
	"system message": `"input":[{"type":"message","role":"system","content":"You are a pirate, and speak like one."},{"type":"message","role":"user","content":"Say hello."}]`,
	"phase in input": `"input":[{"type":"message","role":"assistant","phase":"commentary","content":"I should say the number."},
		{"type":"message","role":"assistant","phase":"final_answer","content":"It is four."},{"type":"message","role":"user","content":"Say only the number."}]`,
	"image": `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is in this image?"},{"type":"input_image","image_url":"` + picture + `"}]}]`,
	"several turns": `"input":[{"type":"message","role":"user","content":"My name is Alice."},{"type":"message","role":"assistant","content":"Hello Alice!"},
		{"type":"message","role":"user","content":"What is my name?"}]`,
}

// Run makes the seventeen checks, side by side, of the server at a base URL that ends in
// /v1. The model must be one that calls a function which is declared and fits the
// question, and otherwise answers.
func Run(t *testing.T, base, model string) {
	t.Helper()
	check := func(name string, f func(c *client)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(newClient(t, base, model))
		})
	}
	for name, members := range accepted {
		check(name, func(c *client) { c.create(members) })
	}
	check("phase in output", func(c *client) {
		text := item.JSON("")
		for _, it := range c.create(accepted["basic text"]).Output {
			if phase, ok := it.Member("phase"); ok && it.Type() == item.TypeMessage {
				text = phase
			}
		}
		if text != `"commentary"` && text != `"final_answer"` && text != "" {
			c.t.Errorf("a message has the phase %s", text)
		}
		c.open.Check(c.t, "ResponseResource", []byte(phases))
	})
	check("stream", func(c *client) { c.stream(accepted["basic text"]) })
	check("function call", func(c *client) {
		r := c.create(weather)
		if !calls(r) {
			c.t.Errorf("no call of get_weather: %s", encoded(c.t, r))
		}
		if !strings.Contains(string(r.Tools), `"get_weather"`) || !strings.Contains(string(r.Tools), `"strict":`) {
			c.t.Errorf("the response repeats the tools as %s", r.Tools)
		}
		types := map[api.EventType]bool{}
		events := c.stream(weather)
		for _, ev := range events {
			types[ev.Type] = true
		}
		if !calls(c.last(events)) || !types[api.EventArgumentsDelta] || !types[api.EventArgumentsDone] {
			c.t.Errorf("no streamed call: %v", types)
		}
	})
	check("compaction", func(c *client) {
		packed := c.compact(`,"prompt_cache_key":"compliance","input":` + agreed)
		if !strings.Contains(packed, `"compaction"`) {
			c.t.Errorf("no compaction in %s", packed)
		}
	})
	check("compaction without a model", func(c *client) {
		if status, _, body := c.post("/responses/compact", `{"input":`+agreed+`}`); status != 400 && status != 422 {
			c.t.Errorf("status %d: %s", status, body)
		} else {
			c.refusal(body)
		}
	})
	sockets(check)
}

// sockets makes the checks over WebSockets.
func sockets(check func(string, func(*client))) {
	say := func(rest string) string { return `"store":false,"input":"` + rest + `"` }
	after := func(id, rest string) string { return say(rest) + `,"previous_response_id":"` + id + `"` }
	check("WebSocket", func(c *client) {
		c.dial().respond(`"input":[{"type":"message","role":"user","content":"Count to three."}]`)
	})
	check("WebSocket, one after the other", func(c *client) {
		s := c.dial()
		if a, b := s.respond(say("Say: first")), s.respond(say("Say: second")); a.ID == b.ID {
			c.t.Errorf("two responses are %s", a.ID)
		}
	})
	check("WebSocket, a continuation", func(c *client) {
		s := c.dial()
		first := s.respond(say("The word is cobalt. Say OK."))
		if r := s.respond(after(first.ID, "What is the word?")); r.PreviousResponseID != first.ID {
			c.t.Errorf("it continues %q, not %s", r.PreviousResponseID, first.ID)
		}
	})
	check("WebSocket, a reconnect", func(c *client) {
		first := c.dial().respond(say("The word is copper. Say OK."))
		s := c.dial()
		s.refused(after(first.ID, "What is the word?"), "previous_response_not_found")
		s.respond(say("Say: recovered"))
	})
	check("WebSocket, an unknown response", func(c *client) {
		c.dial().refused(after("resp_that_is_missing", "x"), "previous_response_not_found")
	})
	check("WebSocket, a failure evicts", func(c *client) {
		s := c.dial()
		first := s.respond(say("The word is ember. Say OK."))
		s.refused(`"store":false,"previous_response_id":"`+first.ID+`","input":[{"type":"function_call_output","call_id":"call_that_is_missing","output":"x"}]`, "")
		s.refused(after(first.ID, "What is the word?"), "previous_response_not_found")
	})
	check("WebSocket, a new chain from a compaction", func(c *client) {
		packed := c.compact(`,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"The word is slate."}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"OK."}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Compact this, to go on later."}]}]`)
		c.dial().respond(`"store":false,"tools":[],"input":` + strings.TrimSuffix(packed, "]") + `,{"type":"message","role":"user","content":"Go on."}]`)
	})
}

// calls reports whether a response calls get_weather.
func calls(r *api.Response) bool {
	for _, it := range r.Output {
		if it.Type() == item.TypeFunctionCall && it.Name() == "get_weather" {
			return true
		}
	}
	return false
}

// phases is a response with messages of both phases, which the specification must accept.
const phases = `{"id":"resp_1","object":"response","created_at":1,"completed_at":2,"status":"completed","incomplete_details":null,"model":"m",
	"previous_response_id":null,"instructions":null,"output":[
		{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},
		{"id":"msg_2","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]}],
	"error":null,"tools":[],"tool_choice":"auto","truncation":"disabled","parallel_tool_calls":true,"text":{"format":{"type":"text"}},"top_p":1,
	"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"temperature":1,"reasoning":{"effort":null,"summary":null},
	"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}},
	"max_output_tokens":null,"max_tool_calls":null,"store":true,"background":false,"service_tier":"default","metadata":{},"safety_identifier":null,"prompt_cache_key":null}`
