// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// OpenDocument is the place of the Open Responses specification below the
// folder of shared data.
const OpenDocument = "spec/open-responses.openapi.json"

// OpenEvent is the name under which [LoadOpen] has one schema for all stream
// events; the document lists them in its paths alone.
const OpenEvent = "StreamingEvent"

// LoadOpen returns the Open Responses specification, which requires members that
// OpenAI's document leaves optional. Items, tools and events of types that it
// does not name are extensions and are not checked. It skips the test where the
// document is missing.
func LoadOpen(t testing.TB) *Spec {
	t.Helper()
	s, err := open(filepath.Join(Shared(t, "spec"), filepath.Base(OpenDocument)))
	if err != nil {
		t.Fatalf("Open Responses document: %v", err)
	}
	return s
}

var opened struct {
	sync.Mutex
	spec *Spec
}

func open(path string) (*Spec, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.spec != nil {
		return opened.spec, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	opened.spec, err = newSpec(extended(object(object(object(doc)["components"])["schemas"])), Reading{AnyOf: true})
	return opened.spec, err
}

// extended adds what the document says in prose: the union of the events, and
// that unions of items, tools and events are open to other types.
func extended(schemas map[string]any) map[string]any {
	var events []any
	for name := range schemas {
		if strings.HasSuffix(name, "StreamingEvent") {
			events = append(events, map[string]any{"$ref": "#/components/schemas/" + name})
		}
	}
	if len(events) == 0 {
		return nil // not the document that is meant
	}
	schemas[OpenEvent] = map[string]any{"oneOf": events}
	for _, name := range []string{OpenEvent, "ItemField", "Tool"} {
		union := object(schemas[name])
		var known []any
		for _, branch := range list(union["oneOf"]) {
			ref, _ := object(branch)["$ref"].(string)
			named := object(schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
			known = append(known, list(object(object(named["properties"])["type"])["enum"])...)
		}
		union["oneOf"] = append(slices.Clone(list(union["oneOf"])), map[string]any{
			"type": "object", "required": []any{"type"},
			"properties": map[string]any{"type": map[string]any{"type": "string", "not": map[string]any{"enum": known}}},
		})
	}
	// The document has no schema for a schema: its one branch is null.
	object(object(schemas["JsonSchemaResponseFormat"])["properties"])["schema"] = map[string]any{}
	return schemas
}
