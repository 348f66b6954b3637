// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import "strings"

// An edition is one rewriting of all schemas. To report unknown members, an
// object must be closed as a whole, while a part of an allOf must stay open:
// each schema is needed in both forms, and references lead from form to form.
type edition string

const (
	plain edition = "plain" // as published, unknown members allowed
	whole edition = "whole" // closed, and so is everything inside
	part  edition = "part"  // open for its siblings in an allOf, closed inside
)

// rewriteAll returns the document that is compiled: the editions, each with
// every schema.
func rewriteAll(schemas map[string]any, r Reading) map[string]any {
	doc := map[string]any{}
	for _, e := range []edition{plain, whole, part} {
		out := make(map[string]any, len(schemas))
		for name, s := range schemas {
			rw := rewriter{name: name, anyOf: r.AnyOf}
			out[name] = rw.schema(s, e)
		}
		doc[string(e)] = out
	}
	return doc
}

type rewriter struct {
	name  string // of the component, for its references to itself
	anyOf bool
}

// inner returns the edition of what stands inside an object, a list or a
// union's branch that is closed on its own.
func (e edition) inner() edition {
	if e == part {
		return whole
	}
	return e
}

// member returns the edition of an element of an allOf.
func (e edition) member() edition {
	if e == whole {
		return part
	}
	return e
}

func (rw rewriter) schema(n any, e edition) any {
	m, ok := n.(map[string]any)
	if !ok {
		return n // true and false are schemas too
	}
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		switch k {
		case "description", "default", "example", "examples", "discriminator", "nullable", "$recursiveAnchor":
			// Annotations of OpenAPI, or handled below.
		case "$ref":
			out[k] = rw.ref(v, e)
		case "$recursiveRef":
			out["$ref"] = "#/" + string(e) + "/" + rw.name
		case "oneOf":
			if rw.anyOf {
				k = "anyOf"
			}
			out[k] = rw.each(v, e)
		case "anyOf":
			out[k] = rw.each(v, e)
		case "allOf":
			out[k] = rw.each(v, e.member())
		case "properties":
			out[k] = rw.members(v, e.inner())
		case "items", "additionalProperties", "propertyNames", "not":
			out[k] = rw.schema(v, e.inner())
		default:
			out[k] = v
		}
	}
	if e == whole && describesObject(m) {
		out["unevaluatedProperties"] = false
	}
	if yes, _ := m["nullable"].(bool); yes {
		return orNull(out)
	}
	return out
}

// describesObject reports whether the schema names an object's members. An
// empty properties is how the document writes a free-form object.
func describesObject(m map[string]any) bool {
	if _, open := m["additionalProperties"]; open {
		return false
	}
	return len(object(m["properties"])) > 0 || len(list(m["allOf"])) > 0
}

func (rw rewriter) ref(v any, e edition) any {
	s, _ := v.(string)
	name, ok := strings.CutPrefix(s, "#/components/schemas/")
	if !ok {
		return v
	}
	return "#/" + string(e) + "/" + name
}

func (rw rewriter) each(v any, e edition) []any {
	var out []any
	for _, n := range list(v) {
		out = append(out, rw.schema(n, e))
	}
	return out
}

func (rw rewriter) members(v any, e edition) map[string]any {
	out := map[string]any{}
	for name, n := range object(v) {
		out[name] = rw.schema(n, e)
	}
	return out
}
