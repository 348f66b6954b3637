// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// codec is a [record.Codec] with fields for the values of a log. A field leaves out a
// zero value. It never puts a value aside that it cannot hold, as the Opt… fields of
// package record do: such a value is an error, and so is a member without a field.
type codec struct {
	*record.Codec
	split *Split    // may be nil
	last  item.Item // reading: the entry's item, if it comes last
}

func (c codec) failf(name, format string, args ...any) { c.Fail(name, fmt.Errorf(format, args...)) }

func (c codec) add(name, value string) {
	if name == `""` {
		c.failf("", "a member without a name")
	}
	c.Members.Add(name, value)
}

// close reports an error for a member that no field took: an unknown one, or one that
// occurs a second time.
func (c codec) close(what string) {
	for i := range c.Members.List {
		if m := &c.Members.List[i]; !m.Taken {
			c.failf("", "%w: member %q of kind %q", ErrNewer, m.Name, what)
		}
	}
}

var (
	textValues  = record.Values[string]{Read: readText, Append: appendText}
	boolValues  = record.Values[bool]{Read: readBool, Append: appendBool}
	intValues   = record.Values[int64]{Read: readInt, Append: appendInt}
	floatValues = record.Values[float64]{Read: readFloat, Append: appendFloat}
	timeValues  = record.Values[time.Time]{Read: readTime, Append: appendTime}
	hashValues  = record.Values[[32]byte]{Read: readHash, Append: appendHash}
	usageValues = record.Values[*api.Usage]{Read: readUsage, Append: appendUsage}
	jsonValues  = record.Values[item.JSON]{Read: readJSON, Append: appendJSON}
)

func (c codec) text(name string, v *string)      { textValues.Need(c.Codec, name, v, *v != "") }
func (c codec) texts(name string, v *[]string)   { textValues.NeedList(c.Codec, name, v) }
func (c codec) bool(name string, v *bool)        { boolValues.Need(c.Codec, name, v, *v) }
func (c codec) int64(name string, v *int64)      { intValues.Need(c.Codec, name, v, *v != 0) }
func (c codec) int64s(name string, v *[]int64)   { intValues.NeedList(c.Codec, name, v) }
func (c codec) time(name string, v *time.Time)   { timeValues.Need(c.Codec, name, v, !v.IsZero()) }
func (c codec) usage(name string, v **api.Usage) { usageValues.Need(c.Codec, name, v, *v != nil) }
func (c codec) json(name string, v *item.JSON)   { jsonValues.Need(c.Codec, name, v, *v != "") }

func (c codec) int(name string, v *int) {
	n := int64(*v)
	c.int64(name, &n)
	// An int may have 32 bits.
	if *v = int(n); int64(*v) != n {
		c.failf(name, "%d is too large here", n)
	}
}

func (c codec) float(name string, v *float64) {
	floatValues.Need(c.Codec, name, v, *v != 0 || math.Signbit(*v))
}

// hash is always written, and must be there.
func (c codec) hash(name string, v *[32]byte) {
	if c.Decoding && c.Find(name) == nil {
		c.Fail(name, errNoHash)
	}
	hashValues.Need(c.Codec, name, v, true)
}

// appendText writes a text as a JSON string, or as an object with its base64 if it is
// not UTF-8.
func appendText(dst []byte, s string) ([]byte, error) {
	if out, err := jsonx.AppendQuoted(dst, s); err == nil {
		return out, nil
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
	return append(dst, `"}`...), nil
}

func readText(value string) (string, error) {
	if s, ok := unquoted(value); ok {
		return s, nil
	}
	var s string
	ok := false
	err := readObject(value, func(c codec) {
		if m := c.Find("base64"); m != nil {
			s, ok = unquoted(m.Value)
		}
	})
	b, problem := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil || problem != nil {
		return "", errors.New("neither a text nor an object with valid base64 in its member base64")
	}
	return string(b), nil
}

var errNoHash = errors.New("no hash")

// unquoted returns the value of a string member.
func unquoted(value string) (string, bool) { return item.JSON(value).Unquote() }

func appendBool(dst []byte, v bool) ([]byte, error) { return strconv.AppendBool(dst, v), nil }

func readBool(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, errors.New("neither true nor false")
	}
	return value == "true", nil
}

func appendInt(dst []byte, n int64) ([]byte, error) { return strconv.AppendInt(dst, n, 10), nil }

// readInt reads an integer in the form in which it is written. Other spellings of
// the same number would change the bytes when written again.
func readInt(value string) (int64, error) {
	if n, length := jsonx.ShortNumber(value); length == len(value) {
		return n, nil // nearly all numbers
	}
	n, err := strconv.ParseInt(value, 10, 64)
	var room [20]byte
	if err != nil || string(strconv.AppendInt(room[:0], n, 10)) != value {
		return 0, errors.New("no whole number")
	}
	return n, nil
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	// JSON has no form for these values.
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v cannot be written", f)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64), nil
}

func readFloat(value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, errors.New("no number")
	}
	return f, nil
}

// appendTime writes a time in the form of RFC 3339, in UTC.
func appendTime(dst []byte, t time.Time) ([]byte, error) {
	return append(t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"'), nil
}

func readTime(value string) (time.Time, error) {
	s, _ := unquoted(value)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, errors.New("no time")
	}
	return t.UTC(), nil
}

func appendHash(dst []byte, h [32]byte) ([]byte, error) {
	return append(hex.AppendEncode(append(dst, '"'), h[:]), '"'), nil
}

func readHash(value string) (h [32]byte, err error) {
	s, _ := unquoted(value)
	if b, err := hex.DecodeString(s); err != nil || copy(h[:], b) != len(h) || len(b) != len(h) {
		return h, errNoHash
	}
	return h, nil
}

func appendUsage(dst []byte, u *api.Usage) ([]byte, error) {
	b, err := u.MarshalJSON()
	return append(dst, b...), err
}

func readUsage(value string) (*api.Usage, error) { return api.ParseUsage(item.JSON(value)) }

// appendJSON writes a JSON text on one line. Valid JSON contains line ends only
// between tokens.
func appendJSON(dst []byte, v item.JSON) ([]byte, error) {
	return append(dst, strings.NewReplacer("\n", " ", "\r", " ").Replace(string(v))...), v.Valid()
}

func readJSON(value string) (item.JSON, error) { return item.JSON(value), nil }

// readObject reads the value of a member that must be an object. Unlike
// [record.Decode] it lets close find a member that occurs twice.
func readObject(value string, fields func(codec)) error {
	return record.With(func(rc *record.Codec) {
		c := codec{Codec: rc}
		if value[0] != '{' {
			c.failf("", "not a JSON object")
			return
		}
		jsonx.EachMember(value, c.add)
		fields(c)
	})
}

// part is an object, left out if nil.
func part[T any](c codec, name string, v **T, fields func(*T, codec)) {
	if !c.Decoding {
		record.Opt(c.Codec, name, v, func(v *T, rc *record.Codec) { fields(v, codec{Codec: rc}) })
		return
	}
	if m := c.Find(name); m != nil {
		*v, m.Taken = new(T), true
		c.Fail(name, readObject(m.Value, func(c codec) { fields(*v, c); c.close(name) }))
	}
}

// parts is a list of objects, left out if nil.
func parts[T any](c codec, name string, v *[]T, fields func(*T, codec)) {
	if !c.Decoding {
		record.List(c.Codec, name, v, func(v *T, rc *record.Codec) { fields(v, codec{Codec: rc}) })
		return
	}
	record.Values[T]{Read: func(value string) (one T, err error) {
		err = readObject(value, func(c codec) { fields(&one, c); c.close(name) })
		return one, err
	}}.NeedList(c.Codec, name, v)
}
