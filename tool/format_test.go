// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

var updateDoc = flag.Bool("update-doc", false, "write the outputs into docs/tool-output-format.md")

// docExample is a block "json tool" of the document.
type docExample struct {
	Name     string    `json:"name"`
	Text     string    `json:"text"`  // {n} is the number of the line
	Lines    int       `json:"lines"` // how often the text is repeated
	Value    item.JSON `json:"value"` // instead of the text
	Error    string    `json:"error"`
	Envelope bool      `json:"envelope"`
	Limit    string    `json:"limit"`
	Store    bool      `json:"store"`
	Page     struct {
		Offset int `json:"offset"`
		Limit  int `json:"limit"`
	} `json:"page"`
}

func (e *docExample) output(t *testing.T) string {
	t.Helper()
	text := e.Text
	if e.Lines > 0 {
		text = ""
		for n := range e.Lines {
			text += strings.ReplaceAll(e.Text, "{n}", fmt.Sprintf("%03d", n+1))
		}
	}
	var tools []Tool
	spill := new(output.MemoryStore)
	call := Call{Name: e.Name, Arguments: "{}"}
	if e.Name == ReadOutputName {
		id, err := spill.Put(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		call.Arguments = fmt.Sprintf(`{"id":%q,"offset":%d,"limit":%d}`, id, e.Page.Offset, e.Page.Limit)
	} else {
		tools = append(tools, Must(e.Name, "", func(context.Context, none) (any, error) {
			var err error
			if e.Error != "" {
				err = errors.New(e.Error)
			}
			if e.Value != "" {
				return e.Value, err
			}
			return text, err
		}))
	}
	if e.Store || e.Name == ReadOutputName {
		tools = append(tools, ReadOutput(spill))
	}
	shape := output.Policy{Envelope: e.Envelope}
	if e.Limit != "" {
		l, err := output.ParseLimit(e.Limit)
		if err != nil {
			t.Fatal(err)
		}
		shape.Limit = &l
	}
	return mustSet(t, tools...).Invoke(t.Context(), call, shape).Content.Text
}

// T1 to T7, T9: the examples of the document are what is sent.
func TestOutputFormatDocument(t *testing.T) {
	const file = "../docs/tool-output-format.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json tool\n(.*?)\n```\n```text output\n(.*?)```\n")
	examples := 0
	changed := block.ReplaceAllStringFunc(string(doc), func(s string) string {
		examples++
		m := block.FindStringSubmatch(s)
		var e docExample
		if err := json.Unmarshal([]byte(m[1]), &e, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		got := e.output(t)
		if want := strings.TrimSuffix(m[2], "\n"); got != want && !*updateDoc {
			t.Errorf("%s\ngives\n%s\nwant\n%s", m[1], got, want)
		}
		return "```json tool\n" + m[1] + "\n```\n```text output\n" + got + "\n```\n"
	})
	if examples < 13 || strings.Count(string(doc), "```json tool") != examples {
		t.Errorf("%d examples were found", examples)
	}
	for _, sentence := range []string{output.NoOutput, output.NoErrorText, Interrupted, NotStarted} {
		if !strings.Contains(changed, "| `"+sentence+"` |") {
			t.Errorf("the document does not have the sentence %q", sentence)
		}
	}
	if *updateDoc {
		if err := os.WriteFile(file, []byte(changed), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
