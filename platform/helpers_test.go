// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"reflect"
	"testing"
)

// sameJSON compares values, with numbers as they are spelled.
func sameJSON(a, b []byte) bool {
	read := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return new(int)
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}

// form reads a multipart body with one file at its end.
func form(t *testing.T, body []byte, boundary string) (fields []string, file string) {
	t.Helper()
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := r.NextPart()
		if err == io.EOF {
			return fields, file
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		if part.FileName() != "" {
			file = string(content)
			continue
		}
		fields = append(fields, part.FormName()+"="+string(content))
	}
}
