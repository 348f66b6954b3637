// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

func init() {
	for _, v := range values {
		seeds = append(seeds, item.Must(v.value).JSON())
	}
}

// W7 W11: no event makes a panic; what is decoded and encoded once stays as it
// is, byte for byte.
func FuzzEventValue(f *testing.F) {
	for _, s := range []string{
		`{"type":"response.output_text.delta","sequence_number":1,"item_id":"m","output_index":0,"content_index":0,"delta":"d","logprobs":[{"token":"t","logprob":-0.5,"top_logprobs":[]}]}`,
		`{"type":"response.output_text.annotation.added","annotation_index":0,"annotation":{"type":"file_path","file_id":"f","index":1.5}}`,
		`{"type":"response.shell_call_output_content.done","command_index":0,"output":[{"stdout":"","outcome":{"type":"exit","exit_code":0}}]}`,
		`{"type":"response.image_generation_call.partial_image","partial_image_index":2147483648,"partial_image_b64":null}`,
		`{"type":"response.completed","response":{"id":"r","object":null,"output":[{"role":"user","content":5}],"usage":{"input_tokens":null},"tools":5}}`,
		`{"type":"response.output_item.done","output_index":-1,"item":{"type":5}}`,
		`{"type":"response.content_part.done","part":{"type":"text"}}`,
		`{"type":"error","code":429,"message":null,"error":{"code":5,"headers":{"a":"b","a":"c"}},"stream_id":""}`,
		`{"type":"keepalive"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := api.ParseEvent([]byte(s))
		if err != nil {
			return
		}
		v, err := e.Decode()
		if err != nil {
			return
		}
		once, err := api.NewEvent(v)
		if err != nil || once.Type != e.Type {
			t.Fatalf("%v: encoded as %s", err, once.JSON())
		}
		again, err := once.Decode()
		if err != nil {
			t.Fatalf("%v in %s", err, once.JSON())
		}
		if twice, err := api.NewEvent(again); err != nil || twice.JSON() != once.JSON() {
			t.Fatalf("no fixpoint:\n%s\n%s", once.JSON(), twice.JSON())
		}
	})
}

// W7 W11: the same for tools, tool choices, annotations and the other bodies.
func FuzzVocabulary(f *testing.F) {
	for _, tool := range tools {
		b, err := (&api.Request{Tools: []item.Tool{tool}}).AppendJSON(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`)
	f.Add(`{"annotations":` + string(citations) + `,"logprobs":` + string(logprobs) + `}`)
	readers := []func(string) (string, error){reread(api.ParseRequest), reread(api.ParseCompactRequest), reread(api.ParseCompacted),
		reread(api.ParseTokenCountRequest), reread(api.ParseTokenCount), reread(api.ParseConversation), reread(api.ParseCreateConversation),
		reread(api.ParseUpdateConversation), reread(api.ParseAddItems), reread(api.ParseItemPage), reread(api.ParseDeleted),
		reread(api.ParseErrorBody), rereadClientEvent, rereadChoice, rereadLists}
	f.Fuzz(func(t *testing.T, s string) {
		for i, again := range readers {
			once, err := again(s)
			if err != nil || strings.TrimSpace(once) == "" {
				continue
			}
			if twice, err := again(once); err != nil || twice != once {
				t.Fatalf("reader %d: %v, no fixpoint:\n%s\n%s", i, err, once, twice)
			}
		}
	})
}

func rereadChoice(s string) (string, error) {
	c, err := api.ParseToolChoice(item.JSON(s))
	if err != nil {
		return "", err
	}
	j, err := c.JSON()
	return string(j), err
}

// rereadLists reads the text as a list of annotations and as one of log
// probabilities.
func rereadLists(s string) (string, error) {
	p := &item.OutputText{Annotations: item.JSON(s), Logprobs: item.JSON(s)}
	list, err := p.Citations()
	if err != nil {
		return "", err
	}
	probs, err := p.TokenLogprobs()
	if err != nil {
		return "", err
	}
	if _, err := item.LogprobList(probs...); err != nil {
		return "", err
	}
	j, err := item.AnnotationList(list...)
	return string(j), err
}
