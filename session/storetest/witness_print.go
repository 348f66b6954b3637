// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"reflect"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Fingerprint returns a text that identifies an entry by its number and content;
// items count byte for byte, the time does not. It does not depend on the encoding
// of stores.
func Fingerprint(e session.Entry) (string, error) {
	hash := sha256.New()
	p := printer{w: hash}
	p.value(reflect.ValueOf(e.Body))
	return fmt.Sprintf("%d %s %x", e.Seq, session.Kind(e.Body), hash.Sum(nil)[:12]), p.err
}

// printer writes a value in a form of its own. Empty and nil slices are equal,
// because logs do not distinguish them.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) write(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

var itemType = reflect.TypeFor[item.Item]()

func (p *printer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == itemType {
			p.item(v.Interface().(item.Item))
			return
		}
		p.write("%s{", v.Type())
		for i := range v.NumField() {
			p.value(v.Field(i))
		}
		p.write("}")
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			p.write("nil ")
			return
		}
		p.value(v.Elem())
	case reflect.Slice, reflect.Array:
		p.write("[%d:", v.Len())
		for i := range v.Len() {
			p.value(v.Index(i))
		}
	case reflect.String:
		p.write("%q ", v.String())
	case reflect.Map, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		p.err = fmt.Errorf("fingerprint: a %s", v.Type())
	default:
		p.write("%v ", v)
	}
}

func (p *printer) item(it item.Item) {
	whole, err := it.Whole()
	if err != nil && p.err == nil {
		p.err = err
	}
	p.write("item %s ", whole.JSON())
}
