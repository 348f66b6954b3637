// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// EmbedRequest asks for embeddings: vectors that are near each other for texts with similar
// meanings. Schema: CreateEmbeddingRequest.
type EmbedRequest struct {
	Model string
	// Input are the texts, at least one. Tokens replaces Input by texts that are tokenized already.
	Input  []string
	Tokens [][]int64
	// Dimensions is the length of the vectors; 0 means the model's own.
	Dimensions int64
	// Floats asks for vectors as decimal numbers. Otherwise they are sent as base64, which is a
	// quarter of the size and exact; an endpoint that refuses it is asked for numbers.
	Floats bool
	User   string
	Extra  item.Extra
}

func (v *EmbedRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("model", &v.Model)
	if !c.Decoding && v.Tokens != nil {
		record.Array(c, "input", v.Tokens, appendInts)
	} else if c.OptStrings("input", &v.Input); c.Decoding && v.Input == nil {
		v.readTokens(c)
	}
	optInt(c, "dimensions", &v.Dimensions)
	if !c.Decoding {
		if !v.Floats {
			c.WriteString("encoding_format", "base64")
		}
	} else if m := c.Find("encoding_format"); m != nil && m.Value == `"base64"` {
		m.Taken = true
	} else {
		v.Floats = true
	}
	c.OptString("user", &v.User)
}

// readTokens reads the forms of the input other than a list of texts.
func (v *EmbedRequest) readTokens(c *codec) {
	m := c.Find("input")
	if m == nil {
		return
	}
	if m.Value[0] == '"' {
		v.Input, m.Taken = []string{jsonx.Unquote(m.Value)}, true
		return
	}
	if m.Value[0] != '[' {
		return
	}
	var lists [][]int64
	whole := true
	jsonx.EachElement(m.Value, func(s string) {
		list := []int64{}
		if s[0] != '[' {
			whole = false
			return
		}
		jsonx.EachElement(s, func(s string) {
			n, ok := jsonx.Integer(s)
			whole = whole && ok
			list = append(list, n)
		})
		lists = append(lists, list)
	})
	if whole && lists != nil {
		v.Tokens, m.Taken = lists, true
	}
}

func appendInts(dst []byte, list []int64) ([]byte, error) {
	dst = append(dst, '[')
	for i, n := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, n, 10)
	}
	return append(dst, ']'), nil
}

// MarshalJSON returns the request as JSON.
func (v *EmbedRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *EmbedRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Embeddings is the answer to an [EmbedRequest]. Schema: CreateEmbeddingResponse.
type Embeddings struct {
	// Data has one element for each input, in the order of the inputs.
	Data  []Embedding
	Model string
	Usage *EmbedUsage // nil if the endpoint does not report it
	Extra item.Extra
}

// Embedding is one vector. Schema: Embedding.
type Embedding struct {
	Index  int64
	Vector []float32
	// Base64 is set if the vector was read as base64, and makes it be written so. Numbers are
	// written with the digits that a float32 needs, which may be fewer than were read.
	Base64 bool
	Extra  item.Extra
}

// EmbedUsage is what an embedding has used. Schema: CreateEmbeddingResponse.usage.
type EmbedUsage struct {
	PromptTokens, TotalTokens int64
	Extra                     item.Extra
}

func (v *EmbedUsage) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Number("prompt_tokens", &v.PromptTokens)
	c.Number("total_tokens", &v.TotalTokens)
}

func (v *Embeddings) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Member("object", "list")
	c.OrEmpty("data", "[]", v.Data == nil)
	record.List(c, "data", &v.Data, (*Embedding).fields)
	c.Text("model", &v.Model)
	record.Opt(c, "usage", &v.Usage, (*EmbedUsage).fields)
}

func (v *Embedding) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Member("object", "embedding")
	c.Number("index", &v.Index)
	if !c.Decoding {
		c.Name("embedding")
		out, err := v.appendVector(c.Out)
		c.Took("embedding", out, err)
		return
	}
	m := c.Find("embedding")
	if m == nil {
		c.Fail("embedding", errors.New("is missing"))
		return
	}
	var err error
	if v.Vector, v.Base64, err = readVector(m.Value); err != nil {
		c.Fail("embedding", err)
	}
	m.Taken = true
}

// readVector reads a vector in either of its forms.
func readVector(s string) (vector []float32, binary bool, err error) {
	switch s[0] {
	case '"':
		vector, err = fromBase64(s)
		return vector, true, err
	case '[':
		vector, err = fromNumbers(s)
		return vector, false, err
	}
	return nil, false, fmt.Errorf("found %s, want base64 or a list of numbers", jsonx.KindOf(s))
}

// fromBase64 reads 32-bit numbers, the lowest byte first.
func fromBase64(literal string) ([]float32, error) {
	text := literal[1 : len(literal)-1]
	if strings.IndexByte(text, '\\') >= 0 {
		text = jsonx.Unquote(literal)
	}
	raw, err := base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(text))), jsonx.Bytes(text))
	if err != nil {
		return nil, fmt.Errorf("is not base64: %w", err)
	}
	if len(raw)%4 != 0 {
		return nil, fmt.Errorf("has %d bytes, which are not whole 32-bit numbers", len(raw))
	}
	vector := make([]float32, len(raw)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return vector, nil
}

func fromNumbers(s string) (vector []float32, err error) {
	vector = make([]float32, 0, strings.Count(s, ",")+1)
	jsonx.EachElement(s, func(s string) {
		f, bad := strconv.ParseFloat(s, 32)
		if bad != nil && err == nil {
			err = fmt.Errorf("element %d is not a 32-bit number: %.20s", len(vector), s)
		}
		vector = append(vector, float32(f))
	})
	return vector, err
}

func (v *Embedding) appendVector(dst []byte) ([]byte, error) {
	if v.Base64 {
		raw := make([]byte, 0, 4*len(v.Vector))
		for _, f := range v.Vector {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
		}
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), raw), '"'), nil
	}
	out := append(dst, '[')
	for i, f := range v.Vector {
		if f != f || math.IsInf(float64(f), 0) {
			return dst, fmt.Errorf("element %d is not a finite number", i)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, float64(f), 'g', -1, 32)
	}
	return append(out, ']'), nil
}

// MarshalJSON returns the embedding as JSON.
func (v *Embedding) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the embedding from a copy of data.
func (v *Embedding) UnmarshalJSON(data []byte) error { return decode(data, v) }

// MarshalJSON returns the embeddings as JSON.
func (v *Embeddings) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the embeddings from a copy of data.
func (v *Embeddings) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Vectors returns the vectors, in the order of the inputs.
func (v *Embeddings) Vectors() [][]float32 {
	if v == nil {
		return nil
	}
	list := make([][]float32, len(v.Data))
	for i := range v.Data {
		list[i] = v.Data[i].Vector
	}
	return list
}

var embedPlace = place{"create embeddings", "/embeddings", "use an endpoint that has embeddings"}

// Embed returns one vector for each input. An answer with another number of vectors is an error.
func (c *Client) Embed(ctx context.Context, req *EmbedRequest) (*Embeddings, error) {
	if c == nil || req == nil {
		return nil, errNil
	}
	inputs := len(req.Input)
	if req.Tokens != nil {
		inputs = len(req.Tokens)
	}
	if _, other := req.Extra.Get("input"); inputs == 0 && other {
		inputs = -1 // not known
	}
	if inputs == 0 {
		return nil, refused("input", "there is nothing to embed", "give at least one text")
	}
	link := c.link()
	if link.Discovered.Floats.Load() {
		req = req.asFloats()
	}
	v, err := c.embed(ctx, req, inputs)
	if !req.Floats && plainOnly(err) {
		if plain, failed := c.embed(ctx, req.asFloats(), inputs); failed == nil {
			link.Discovered.Floats.Store(true)
			return plain, nil
		}
	}
	return v, err
}

// plainOnly reports whether the endpoint may have refused the form of the vectors.
func plainOnly(err error) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && e.Class == endpoint.BadRequest && (e.Param == "" || e.Param == "encoding_format") &&
		(e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity)
}

func (v *EmbedRequest) asFloats() *EmbedRequest {
	plain := *v
	plain.Floats = true
	return &plain
}

func (c *Client) embed(ctx context.Context, req *EmbedRequest, inputs int) (*Embeddings, error) {
	a, err := post(embedPlace, req, transport.Always)
	if err != nil {
		return nil, err
	}
	return transport.Do(ctx, c.link(), a, func(x *transport.Exchange) (*Embeddings, error) {
		v, err := transport.Object(x, "list of embeddings", parse[Embeddings], func(v *Embeddings) bool { return transport.HasMember(v.Extra, "data") })
		if err != nil {
			return nil, err
		}
		if problem := v.arrange(inputs); problem != "" {
			return nil, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: problem})
		}
		return v, nil
	})
}

// arrange puts the vectors into the order of the inputs. It also copies what would otherwise keep
// the text of the answer in memory.
func (v *Embeddings) arrange(inputs int) (problem string) {
	if inputs >= 0 && len(v.Data) != inputs {
		return fmt.Sprintf("the answer has %d embeddings for %d inputs", len(v.Data), inputs)
	}
	v.Model = strings.Clone(v.Model)
	copyExtra(v.Extra)
	if v.Usage != nil {
		copyExtra(v.Usage.Extra)
	}
	for i := range v.Data {
		copyExtra(v.Data[i].Extra)
	}
	for i := range v.Data {
		if !transport.HasMember(v.Data[i].Extra, "index") {
			return "" // without numbers, the order is that of the inputs
		}
	}
	slices.SortStableFunc(v.Data, func(a, b Embedding) int { return cmp.Compare(a.Index, b.Index) })
	for i := range v.Data {
		if v.Data[i].Index != int64(i) {
			return fmt.Sprintf("the answer has no embedding for input %d", i)
		}
	}
	return ""
}

func copyExtra(x item.Extra) {
	for i := range x {
		x[i].Name, x[i].Value = strings.Clone(x[i].Name), item.JSON(strings.Clone(string(x[i].Value)))
	}
}
