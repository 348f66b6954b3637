// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ErrorBody is the body of an HTTP answer that is an error, as the API words
// it. Servers word theirs in other ways too; package endpoint reads those.
// Schema: ErrorResponse.
type ErrorBody struct {
	Error *APIError
	Extra Extra
}

func (v *ErrorBody) fields(c *codec) {
	optRecord(c, "error", &v.Error)
	c.rest(&v.Extra)
}

// ParseErrorBody reads the body from a copy of data.
func ParseErrorBody(data []byte) (*ErrorBody, error) { return parseBody[ErrorBody](data) }

// AppendJSON appends the body. A null for an empty code or param, which the
// schema wants, goes into the error's Extra.
func (v *ErrorBody) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }
