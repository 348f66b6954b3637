// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// The number of tokens is an estimate: four bytes of text are a token, and an image
// is a fixed number of tokens. The same history gives the same numbers.
const (
	bytesPerToken = 4
	imageTokens   = 85
	packedTokens  = 100 // a compaction, which contains more than a real one would
)

func tokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// itemTokens estimates an item by the text that a model would see.
func itemTokens(it item.Item) int64 {
	v, err := it.Decode()
	if err != nil {
		return tokens(len(it.JSON()))
	}
	switch v := v.(type) {
	case *item.Message:
		return contentTokens(v.Content)
	case *item.FunctionCall:
		return tokens(len(v.Name) + len(v.Arguments))
	case *item.CustomToolCall:
		return tokens(len(v.Name) + len(v.Input))
	case *item.FunctionCallOutput:
		return contentTokens(v.Output)
	case *item.CustomToolCallOutput:
		return contentTokens(v.Output)
	case *item.Compaction:
		return packedTokens
	case *item.Reasoning:
		return contentTokens(item.Content{Parts: append(append([]item.Part{}, v.Summary...), v.Content...)})
	}
	return tokens(len(it.JSON()))
}

func contentTokens(c item.Content) int64 {
	if c.IsText() {
		return tokens(len(c.Text))
	}
	var bytes int
	var images int64
	for _, p := range c.Parts {
		switch p := p.(type) {
		case *item.InputText:
			bytes += len(p.Text)
		case *item.OutputText:
			bytes += len(p.Text)
		case *item.SummaryText:
			bytes += len(p.Text)
		case *item.ReasoningText:
			bytes += len(p.Text)
		case *item.InputImage:
			images++
		case *item.InputFile:
			bytes += len(p.FileData)
		}
	}
	return tokens(bytes) + imageTokens*images
}

// prefixes remembers the inputs of a server, to determine how much of the next one
// could have been read from a cache.
type prefixes struct {
	mu   sync.Mutex
	seen map[prefix]bool
	ring []prefix // oldest first, from next on
	next int
}

type prefix [sha256.Size]byte

// maxPrefixes limits the remembered inputs.
const maxPrefixes = 1024

func (p *prefixes) has(x prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[x]
}

func (p *prefixes) add(x prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.seen[x]:
		return
	case p.seen == nil:
		p.seen = map[prefix]bool{}
		fallthrough
	case len(p.ring) < maxPrefixes:
		p.ring = append(p.ring, x)
	default:
		delete(p.seen, p.ring[p.next])
		p.ring[p.next] = x
		p.next = (p.next + 1) % maxPrefixes
	}
	p.seen[x] = true
}

// intake describes a request's input.
type intake struct {
	hash   string // of model, instructions, tools and items
	input  int64  // tokens
	cached int64  // tokens of the longest prefix that was an input before
}

// take hashes and counts a request's input, byte by byte as received.
func (p *prefixes) take(r *server.Request) intake {
	h := sha256.New()
	tools, _ := r.Object.Member("tools")
	for _, s := range []string{r.Model, r.Instructions, string(tools)} {
		put(h, s)
	}
	in := intake{input: tokens(len(r.Instructions)) + tokens(len(tools))}
	var x prefix
	for _, it := range r.Items {
		put(h, it.JSON())
		in.input += itemTokens(it)
		if h.Sum(x[:0]); p.has(x) {
			in.cached = in.input
		}
	}
	p.add(x)
	in.hash = hex.EncodeToString(x[:8])
	return in
}

// countInput returns the token count of take, without hashing.
func countInput(r *server.Request) int64 {
	tools, _ := r.Object.Member("tools")
	n := tokens(len(r.Instructions)) + tokens(len(tools))
	for _, it := range r.Items {
		n += itemTokens(it)
	}
	return n
}

// usageOf counts what went in and out.
func usageOf(in intake, said []item.Item) api.Usage {
	var out, reasoning int64
	for _, it := range said {
		n := itemTokens(it)
		if out += n; it.Type() == item.TypeReasoning {
			reasoning += n
		}
	}
	return api.Usage{
		InputTokens:   in.input,
		InputDetails:  &api.InputTokensDetails{CachedTokens: in.cached, CacheWriteTokens: new(int64(0))},
		OutputTokens:  out,
		OutputDetails: &api.OutputTokensDetails{ReasoningTokens: reasoning},
		TotalTokens:   in.input + out,
	}
}

// put hashes a text with its length, so that different lists of texts have different
// hashes.
func put(h hash.Hash, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = h.Write(n[:]) // a hash never fails
	_, _ = h.Write([]byte(s))
}
