// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import "github.com/antiphon-go/antiphon/item"

// readAnnotations reads the annotations of a message. Chat Completions puts each in a member with
// the name of its type; items have them flat. It returns "" if there are none.
func readAnnotations(o *object) item.JSON {
	v := o.take("annotations")
	if blank(v) || v[0] != '[' {
		return ""
	}
	w := appendTo(nil)
	w.open('[')
	eachElement(v, func(_ int, a item.JSON) { w.raw("", flatAnnotation(a)) })
	w.close(']')
	return item.JSON(w.buf)
}

func flatAnnotation(a item.JSON) item.JSON {
	typ, _ := member(a, "type").Unquote()
	inner := member(a, typ)
	if typ == "" || inner == "" || inner[0] != '{' {
		return a
	}
	w := appendTo(nil)
	w.open('{')
	w.text("type", typ)
	eachMember(inner, func(name string, v item.JSON) { w.extra(item.Extra{{Name: name, Value: v}}) })
	w.close('}')
	return item.JSON(w.buf)
}

// writeAnnotations returns the list with each annotation in the member of its type.
func writeAnnotations(list item.JSON) item.JSON {
	w := appendTo(nil)
	w.open('[')
	eachElement(list, func(_ int, a item.JSON) {
		typ, _ := member(a, "type").Unquote()
		if typ == "" {
			w.raw("", a)
			return
		}
		w.open('{')
		w.text("type", typ)
		w.raw("", item.Quote(typ)+":")
		w.open('{')
		eachMember(a, func(name string, v item.JSON) {
			if name != "type" {
				w.extra(item.Extra{{Name: name, Value: v}})
			}
		})
		w.close('}')
		w.close('}')
	})
	w.close(']')
	return item.JSON(w.buf)
}
