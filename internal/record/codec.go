// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package record reads and writes JSON objects with known members: the items and
// tools of package item, the requests, responses and events of package api, and the
// entries of package session.
//
// A struct names each of its members once, in an unexported method
//
//	func (v *Reasoning) fields(c *record.Codec)
//
// that serves both directions, so that reading and writing cannot diverge. The
// functions of this package take such a method as a value, so that types of public
// packages need no exported method for it.
package record

import (
	"strconv"
	"sync"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Codec makes one pass over the members of an object. When reading, each call takes
// the named member if the field can hold its value. When writing, each call appends
// the member. Members that no field took go to the list passed to [Keep]. The first
// error is kept; later ones are ignored.
type Codec struct {
	Decoding bool
	Members  jsonx.Members // while decoding: the object's members
	Out      []byte        // while encoding: the text so far

	err     error
	names   []string        // encoding: names of the members written
	extra   *Extra          // the record's Extra, or nil; see Keep
	spelled *Extra          // the record's Spelled, or nil; see Spell
	scratch []byte          // encoding: buffer that is reused, see Text
	written map[string]bool // encoding: empty, see rest; or nil

	apart  bool // encoding: one value is left out, see Around
	gap    int  // offset in Out at which it belongs
	within any  // the value left out
}

// Extra is a list of members like the one in package item, whose values have a type
// of their own.
type Extra []Member

// Member is a name and the text of its value.
type Member struct{ Name, Value string }

// Error reports a value that a record cannot hold, or that cannot be written. Its
// message is that of Err if it is not nil, and Problem otherwise.
type Error struct {
	Path    string // path of the value, such as "output[2].image_url"
	Problem string
	Err     error
}

func (e *Error) Error() string {
	problem := e.Problem
	if e.Err != nil {
		problem = e.Err.Error()
	}
	if e.Path == "" {
		return problem
	}
	return e.Path + ": " + problem
}

func (e *Error) Unwrap() error { return e.Err }

// Codecs are pooled because one is needed for every record, nested ones included.
var codecs = sync.Pool{New: func() any { return new(Codec) }}

// newCodec returns a codec from the pool, with empty lists that keep their memory.
func newCodec(decoding bool) *Codec {
	c := codecs.Get().(*Codec)
	c.Decoding = decoding
	return c
}

// free returns the codec to the pool, without references to the caller's memory.
func (c *Codec) free() {
	c.Members.Reset()
	clear(c.names)
	*c = Codec{Members: c.Members, names: c.names[:0], scratch: c.scratch, written: c.written}
	codecs.Put(c)
}

// Decode reads the JSON object s, which must be valid JSON. The error is an
// [*Error].
func Decode(s string, fields func(*Codec)) error {
	if s == "" || s[0] != '{' {
		return &Error{Problem: "found " + jsonx.KindOf(s) + ", want an object"}
	}
	c := newCodec(true)
	defer c.free()
	jsonx.EachMember(s, c.Members.Add)
	c.Members.DropEarlier()
	fields(c)
	c.rest()
	return c.err
}

// Parse is like [Decode] for text that has not been validated. It validates and
// reads in one pass. The error may be a [*jsonx.SyntaxError].
func Parse(s string, fields func(*Codec)) error {
	if err := jsonx.CheckSize(s); err != nil {
		return err
	}
	sc := jsonx.Scanner{Text: s}
	start := jsonx.SkipSpace(s, 0)
	if start == len(s) || s[start] != '{' {
		// Not an object. Report bad syntax first, and otherwise let Decode report
		// the kind.
		value, err := jsonx.Whole(s)
		if err != nil {
			return err
		}
		return Decode(value, fields)
	}
	c := newCodec(true)
	defer c.free()
	end, err := sc.Object(start, c.Members.Add)
	if err == nil {
		err = sc.End(end)
	}
	if err != nil {
		return err
	}
	c.Members.DropEarlier()
	fields(c)
	c.rest()
	return c.err
}

// With calls read with a codec for reading that has no members. read must add them.
func With(read func(*Codec)) error {
	c := newCodec(true)
	defer c.free()
	read(c)
	c.rest()
	return c.err
}

// Append appends a JSON object. On error it returns dst unchanged.
func Append(dst []byte, fields func(*Codec)) ([]byte, error) {
	c := newCodec(false)
	defer c.free()
	c.Out = append(dst, '{')
	fields(c)
	c.rest()
	if c.err != nil {
		return dst, c.err
	}
	return append(c.Out, '}'), nil
}

// maxScratch is the size in bytes of the largest buffer that a codec keeps for
// reuse.
const maxScratch = 32 << 10

// Text returns a JSON object in a string without spare capacity, unless it is large.
func Text(fields func(*Codec)) (string, error) {
	c := newCodec(false)
	defer c.free()
	c.Out = append(c.scratch[:0], '{')
	fields(c)
	c.rest()
	if c.err != nil {
		return "", c.err
	}
	c.Out = append(c.Out, '}')
	if cap(c.Out) > maxScratch {
		// Too large to keep, so the text may have the buffer instead of a copy.
		return jsonx.String(c.Out), nil
	}
	c.scratch = c.Out
	return string(c.Out), nil
}

// Around returns a JSON object in two halves, between which the value within
// belongs: the value that the fields passed to [Codec.LeaveOut]. If there is none,
// all of the text is in before. A request is sent this way, around its history,
// which need not be copied.
func Around(fields func(*Codec)) (before string, within any, after string, err error) {
	c := newCodec(false)
	defer c.free()
	c.apart = true
	c.Out = append(make([]byte, 0, 1024), '{')
	fields(c)
	c.rest()
	if c.err != nil {
		return "", nil, "", c.err
	}
	text := jsonx.String(append(c.Out, '}'))
	if c.within == nil {
		return text, nil, "", nil
	}
	return text[:c.gap], c.within, text[c.gap:], nil
}

// LeaveOut leaves out the elements of a list and returns true, if [Around] is
// encoding. Otherwise it returns false.
func (c *Codec) LeaveOut(name string, list any) bool {
	if c.apart {
		c.Name(name)
		c.Out = append(c.Out, '[', ']')
		// The value belongs before the closing bracket.
		c.gap, c.within = len(c.Out)-1, list
	}
	return c.apart
}

// Fail records an error about the named member, unless there is an error already.
func (c *Codec) Fail(name string, err error) {
	if err != nil {
		c.fail(name, err)
	}
}

// fail is a separate function, not inlined, because nearly every function that reads
// or writes a member calls Fail.
//
//go:noinline
func (c *Codec) fail(name string, err error) {
	if c.err == nil {
		c.err = in(name, err)
	}
}

// failText is like Fail, for a problem described in words.
func (c *Codec) failText(name, problem string) { c.Fail(name, &Error{Problem: problem}) }

// in returns an error about a larger value that contains err's value at the path
// outer.
func in(outer string, err error) error {
	if e, ok := err.(*Error); ok {
		return &Error{Path: Path(outer, e.Path), Problem: e.Problem, Err: e.Err}
	}
	return &Error{Path: outer, Err: err}
}

// Indexed returns the error as an error about element i of a list.
func Indexed(i int, err error) error { return in("["+strconv.Itoa(i)+"]", err) }

// Path joins two paths.
func Path(outer, inner string) string {
	if inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}

// Find returns the named member if no field has taken it, or nil.
func (c *Codec) Find(name string) *jsonx.Member { return c.Members.Find(name) }

// Name appends the name of a member, after a comma if necessary. It is not inlined: it
// takes a kilobyte wherever it is.
//
//go:noinline
func (c *Codec) Name(name string) {
	if c.Out[len(c.Out)-1] != '{' {
		c.Out = append(c.Out, ',')
	}
	c.Out = append(c.Out, '"')
	c.Out = append(c.Out, name...)
	c.Out = append(c.Out, '"', ':')
	c.names = append(c.names, name)
}

// Took sets the output to out, the result of appending the value of a member, and
// records the error.
func (c *Codec) Took(name string, out []byte, err error) {
	c.Out = out
	c.Fail(name, err)
}
