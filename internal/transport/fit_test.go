// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

func ptr[T any](v T) *T { return &v }

func profile(t *testing.T, name string) *endpoint.Profile {
	t.Helper()
	p, err := endpoint.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func fit(t *testing.T, r *api.Request, p *endpoint.Profile) (string, error) {
	t.Helper()
	out, err := (&Config{}).Fit(r, p)
	if err != nil {
		var refused *endpoint.RefusedError
		if !errors.As(err, &refused) || refused.Param == "" {
			t.Errorf("the error %v names no member", err)
		}
		return "", err
	}
	body, err := out.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

func hi() *item.List { return item.NewList(item.User("hi")) }

// B7: what is given is in the body unchanged, what is not is absent.
func TestNoHiddenDefaults(t *testing.T) {
	for _, name := range []string{"openai", "careful", "azure", "vllm"} {
		body, err := fit(t, &api.Request{Model: "m", Input: hi()}, profile(t, name))
		if want := `{"model":"m","input":[` + item.User("hi").JSON() + `]}`; err != nil || body != want {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
	full := &api.Request{
		Model: "gpt-4.1", Input: hi(), Temperature: ptr(0.5), TopP: ptr(0.9), MaxOutputTokens: ptr(int64(99)),
		Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: `{"type":"object"}`, Strict: ptr(false)}},
	}
	want, _ := full.MarshalJSON()
	if body, err := fit(t, full, profile(t, "openai")); err != nil || body != string(want) {
		t.Errorf("%s, %v, want %s", body, err, want)
	}
}

// B2: Codex wants its own form, and is refused locally without instructions.
func TestCodex(t *testing.T) {
	p := profile(t, "codex")
	input := item.NewList(item.System("one"), item.Developer("two"), item.User("hi"), item.System("later"))
	body, err := fit(t, &api.Request{Model: "gpt-5-codex", Input: input, Temperature: ptr(1.0), MaxOutputTokens: ptr(int64(64)), Store: ptr(true)}, p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := api.ParseRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Instructions != "one\n\ntwo" || r.Input.Len() != 2 || r.Input.At(0) != item.User("hi") || r.Input.At(1).Role() != item.RoleDeveloper {
		t.Errorf("instructions %q, input %v", r.Instructions, r.Input)
	}
	if r.Store == nil || *r.Store || r.Stream == nil || !*r.Stream || r.Temperature != nil || r.MaxOutputTokens != nil {
		t.Errorf("body %s", body)
	}
	if len(r.Include) != 1 || r.Include[0] != api.IncludeEncryptedReasoning {
		t.Errorf("include %v", r.Include) // R3
	}
	if input.Len() != 4 {
		t.Error("the caller's list has changed")
	}
	if _, err := fit(t, &api.Request{Model: "gpt-5-codex", Input: hi()}, p); err == nil || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("without instructions: %v", err)
	}
}

// B3, B4, R5, G8: what is not taken is refused with its name, before anything is
// sent.
func TestRefusals(t *testing.T) {
	own := &endpoint.Profile{Name: "own", Refuse: []string{"truncation", "x_own"}, Conversations: endpoint.No, PreviousResponse: endpoint.No, Background: endpoint.No}
	for name, tt := range map[string]struct {
		p     *endpoint.Profile
		r     api.Request
		param string
	}{
		"member":       {own, api.Request{Truncation: "auto"}, "truncation"},
		"extra member": {own, api.Request{Extra: item.Extra{{Name: "x_own", Value: "1"}}}, "x_own"},
		"conversation": {own, api.Request{Conversation: api.ConversationByID("conv_1")}, "conversation"},
		"previous":     {own, api.Request{PreviousResponseID: "resp_1"}, "previous_response_id"},
		"background":   {own, api.Request{Background: ptr(true)}, "background"},
		"few tokens":   {profile(t, "openai"), api.Request{MaxOutputTokens: ptr(int64(15))}, "max_output_tokens"},
		"temperature":  {profile(t, "openai"), api.Request{Model: "o3", Temperature: ptr(0.1)}, "temperature"},
		"top_p":        {profile(t, "openai"), api.Request{Model: "gpt-5-2025-08-07", TopP: ptr(0.1)}, "top_p"},
		"bare word":    {own, api.Request{ToolChoice: "required"}, "tool_choice"},
		"no label":     {own, api.Request{Tools: []item.Tool{&item.WebSearchTool{}, &item.MCPTool{}}}, "tools[1]"},
		"effort":       {profile(t, "openai"), api.Request{Model: "gpt-4o", Reasoning: &api.ReasoningConfig{Effort: "high"}}, "reasoning.effort"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fit(t, &tt.r, tt.p)
			var refused *endpoint.RefusedError
			if !errors.As(err, &refused) || refused.Param != tt.param {
				t.Errorf("%v, want %s refused", err, tt.param)
			}
		})
	}
	for _, model := range []string{"my-gpt-5-clone", "llama3", ""} { // not by a part of its name
		if _, err := fit(t, &api.Request{Model: model, Temperature: ptr(0.1)}, profile(t, "openai")); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
	long := strings.Repeat("k", 65)
	a, _ := (&Config{}).Fit(&api.Request{PromptCacheKey: long}, profile(t, "openai"))
	b, _ := (&Config{}).Fit(&api.Request{PromptCacheKey: long + "x"}, profile(t, "openai"))
	if n := len(a.PromptCacheKey); n == 0 || n > 64 || a.PromptCacheKey == b.PromptCacheKey {
		t.Errorf("cache keys %q and %q", a.PromptCacheKey, b.PromptCacheKey)
	}
}

// R3: a model that reasons hands its reasoning out where nothing is stored.
func TestIncludeReasoning(t *testing.T) {
	for _, tt := range []struct {
		r    api.Request
		want int
	}{
		{api.Request{Model: "o3", Store: ptr(false)}, 1},
		{api.Request{Model: "o3", Store: ptr(false), Include: []string{"message.output_text.logprobs"}}, 2},
		{api.Request{Model: "o3", Store: ptr(false), Include: []string{api.IncludeEncryptedReasoning}}, 1},
		{api.Request{Model: "own", Store: ptr(false), Reasoning: &api.ReasoningConfig{Effort: "low"}}, 1},
		{api.Request{Model: "o3"}, 0},
		{api.Request{Model: "o3", Store: ptr(true)}, 0},
		{api.Request{Model: "gpt-4.1", Store: ptr(false)}, 0},
	} {
		out, err := (&Config{}).Fit(&tt.r, profile(t, "openai"))
		if err != nil || len(out.Include) != tt.want {
			t.Errorf("%+v: include %v, %v", tt.r, out, err)
		}
	}
}

func output(callID string, parts ...item.Part) item.Item {
	it, err := item.Output(callID, item.Parts(parts...))
	if err != nil {
		panic(err)
	}
	return it
}

const pixel = "data:image/png;base64,iVBORw0KGgo="

// T10: an image in an output becomes text and one message behind the batch.
func TestStringOutputs(t *testing.T) {
	p := &endpoint.Profile{Name: "own", Outputs: endpoint.OutputString}
	image := &item.InputImage{ImageURL: pixel}
	list := item.NewList(
		item.User("look"),
		item.Call("a", "shot", "{}"), item.Call("b", "shot", "{}"),
		output("a", &item.InputText{Text: "here"}, image), output("b", image),
		item.Assistant("I see"),
	)
	out, err := (&Config{}).Fit(&api.Request{Input: list}, p)
	if err != nil {
		t.Fatal(err)
	}
	got := out.Input
	if got.Len() != 7 || got.At(5).Role() != item.RoleUser || got.At(6) != item.Assistant("I see") {
		t.Fatalf("%d items: %v", got.Len(), got)
	}
	for i, id := range map[int]string{3: "a", 4: "b"} {
		o, err := item.As[item.FunctionCallOutput](got.At(i))
		if err != nil || !o.Output.IsText() || o.Output.Text == "" || o.CallID != id {
			t.Errorf("output %d: %s, %v", i, got.At(i).JSON(), err)
		}
	}
	m, _ := item.As[item.Message](got.At(5))
	images := 0
	for _, part := range m.Content.Parts {
		if im, ok := part.(*item.InputImage); ok && im.ImageURL == pixel {
			images++
		}
	}
	if images != 2 {
		t.Errorf("the message holds %d images", images)
	}
}

// I10: a call that the endpoint would refuse becomes text with its output.
func TestNamesToText(t *testing.T) {
	list := item.NewList(item.User("go"), item.Call("a", "bad name!", `{"x":1}`), item.Call("b", "good", `{}`),
		output("a", &item.InputText{Text: "out a"}), output("b", &item.InputText{Text: "out b"}))
	out, err := (&Config{}).Fit(&api.Request{Input: list}, profile(t, "openai"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(must(out.Input.MarshalJSON()))
	if n := strings.Count(text, `"call_id"`); n != 2 || !strings.Contains(text, "out a") || !strings.Contains(text, `{\"x\":1}`) || !strings.Contains(text, "bad name!") {
		t.Errorf("input %s", text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A list that needs no change is sent as it is: the same memory.
func TestUnchangedListIsShared(t *testing.T) {
	list := item.NewList(item.User("a"), item.Call("c", "f", "{}"), output("c", &item.InputText{Text: "x"}))
	out, err := (&Config{}).Fit(&api.Request{Input: list}, profile(t, "openai"))
	if err != nil || out.Input != list {
		t.Errorf("%p, want %p, %v", out.Input, list, err)
	}
}

// history is a random one, in batches at whose ends a request is possible.
func history(rt *rapid.T) [][]item.Item {
	names := rapid.SampledFrom([]string{"good", "bad name", "x.y", "_"})
	args := rapid.SampledFrom([]string{`{}`, `{"a":1}`, `[1]`, `nonsense`, ``})
	text := rapid.SampledFrom([]string{"hi", "", "a\nb", "ä"})
	parts := func() []item.Part {
		var list []item.Part
		for range rapid.IntRange(1, 3).Draw(rt, "parts") { // a message says something
			switch rapid.IntRange(0, 3).Draw(rt, "part") {
			case 0:
				list = append(list, &item.InputImage{ImageURL: pixel})
			case 1:
				list = append(list, &item.InputImage{ImageURL: "https://example.com/a.png"})
			case 2:
				list = append(list, &item.InputFile{FileID: "file_1"})
			default:
				list = append(list, &item.InputText{Text: text.Draw(rt, "text")})
			}
		}
		return list
	}
	lead := []item.Item{item.System("s"), item.Developer("d")}[:rapid.IntRange(0, 2).Draw(rt, "lead")]
	batches := [][]item.Item{append(lead[:len(lead):len(lead)], item.User("go"))}
	for n := range rapid.IntRange(0, 6).Draw(rt, "turns") {
		var batch, outputs []item.Item
		if rapid.Bool().Draw(rt, "reasons") {
			batch = append(batch, item.Must(&item.Reasoning{ID: "rs", Summary: []item.Part{}, EncryptedContent: "x"}))
		}
		for c := range rapid.IntRange(0, 3).Draw(rt, "calls") {
			id := string(rune('a'+n)) + string(rune('0'+c))
			batch = append(batch, item.Call(id, names.Draw(rt, "name"), args.Draw(rt, "args")))
			outputs = append(outputs, output(id, parts()...))
		}
		batch = append(batch, outputs...)
		if len(outputs) == 0 {
			batch = append(batch, item.Assistant(text.Draw(rt, "said")), must(item.UserParts(parts()...)))
		}
		batches = append(batches, batch)
	}
	return batches
}

// I12, L9, P1, B6: whatever the profile, a history that grows is rewritten such
// that each input begins with the one before, is what a rewrite of the whole
// gives, and stays paired and valid.
func TestRewriteProperty(t *testing.T) {
	spec := apispec.Load(t)
	var profiles []*endpoint.Profile
	for _, name := range (*endpoint.Table)(nil).Names() {
		profiles = append(profiles, profile(t, name))
	}
	profiles = append(profiles,
		&endpoint.Profile{Name: "strings", Outputs: endpoint.OutputString, StrictNames: true, ObjectArguments: true, TypedMessages: true},
		&endpoint.Profile{Name: "poor", Items: []string{"message"}, OtherItems: endpoint.ToText, Images: endpoint.NoneOfThem, Files: endpoint.NoneOfThem, Reasoning: endpoint.ReasoningNone},
		&endpoint.Profile{Name: "data", Images: endpoint.DataOnly, Files: endpoint.URLOrData, Roles: map[string]string{"developer": "system"}, OmitInItems: []string{"id", "status"}},
	)
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(profiles).Draw(rt, "profile")
		grown := new(item.List)
		before := ""
		for _, batch := range history(rt) {
			grown.Append(batch...)
			got, err := (&Config{}).Fit(&api.Request{Model: "m", Instructions: "i", Input: grown.Clone()}, p)
			if err != nil {
				rt.Fatal(err)
			}
			fresh := new(item.List)
			for _, it := range grown.All() {
				fresh.Append(it)
			}
			whole, err := (&Config{}).Fit(&api.Request{Model: "m", Instructions: "i", Input: fresh}, p)
			if err != nil {
				rt.Fatal(err)
			}
			a, b := string(must(got.Input.MarshalJSON())), string(must(whole.Input.MarshalJSON()))
			if a != b {
				rt.Fatalf("%s: grown to\n%s\nbut in one\n%s", p.Name, a, b)
			}
			if open := strings.TrimSuffix(a, "]"); !strings.HasPrefix(open, before) {
				rt.Fatalf("%s: the input\n%s\ndoes not begin with\n%s", p.Name, open, before)
			} else if before = open; p.Outputs == endpoint.OutputString && strings.Contains(open, `"output":[`) {
				rt.Fatalf("%s: %s", p.Name, open)
			}
			paired(rt, got.Input)
			spec.Check(t, "CreateResponse", must(got.MarshalJSON()))
		}
	})
}

func paired(rt *rapid.T, list *item.List) {
	open := map[string]int{}
	outputs := false // those of the calls before have begun
	for i, it := range list.All() {
		if it.Type() == item.TypeMessage && outputs && i+1 < list.Len() && list.At(i+1).IsOutput() {
			rt.Fatalf("the message %d stands among outputs: %s", i, must(list.MarshalJSON()))
		}
		outputs = it.IsOutput() || it.IsCall()
		switch {
		case it.IsCall():
			open[it.CallID()]++
		case it.IsOutput():
			open[it.CallID()]--
		}
	}
	for id, n := range open {
		if n != 0 {
			rt.Fatalf("call %s has %d outputs too few", id, n)
		}
	}
}

// W8, W9: what the API writes into an item and refuses in a request stays behind
// with the openai profile; all other bytes are as they came.
func TestOutputOnlyMembers(t *testing.T) {
	const drawn = `{"id":"ig_1", "type":"image_generation_call","status":"completed","action":"generate","result":"aGk=","size":"1024x1024","tomorrow":1}`
	it, err := item.ParseString(drawn)
	if err != nil {
		t.Fatal(err)
	}
	history := func() *item.List { return item.NewList(item.User("draw"), it, item.User("and?")) }
	for name, want := range map[string]string{
		"openai":  `{"id":"ig_1","type":"image_generation_call","status":"completed","result":"aGk=","tomorrow":1}`,
		"careful": drawn,
	} {
		body, err := fit(t, &api.Request{Model: "m", Input: history()}, profile(t, name))
		if err != nil || !strings.Contains(body, want) {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
}
