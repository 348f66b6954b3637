// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package realservers runs the program against llama-server and Ollama, with
// models of some hundred kilobytes whose weights are made up: nothing was
// trained. Its tests need ANTIPHON_SERVERS; see .ci/nightly.
package realservers

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
)

// Model is a language model without a training: a GGUF file of the llama
// architecture whose next token depends on the last one alone.
//
// Without Says or Calls it writes short random text that ends, and what a grammar
// asks for.
type Model struct {
	Template string // chat template, in Jinja; the prompt must end in a newline
	// Says are words that it says one after the other, each a token, once the
	// prompt is over. It goes on from the last word of a reply that broke off.
	Says string
	// Endless has it begin again, for ever.
	Endless bool
	// Calls is the JSON of a call that it makes first; then it says Says, as one
	// token, where the prompt ends in a space.
	Calls string
}

// The shape of the network.
const (
	width, inner, heads, window = 64, 128, 2, 131072
)

// Tokens beyond the 256 bytes.
const (
	tokenEnd      = 257 // <|im_end|>
	tokenCall     = 259 // <tool_call>
	tokenWholeFor = 265 // the whole call, or nothing
	tokenFirst    = 266 // of what is said
)

var special = []string{"<|endoftext|>", "<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "</tool_response>"}

// GGUF returns the file.
func (m Model) GGUF() []byte {
	tokens, follows := m.vocabulary()
	f := &gguf{random: rand.New(rand.NewPCG(1, 2))}
	f.metadata(tokens, m.Template)
	f.tensors(len(tokens), follows)
	return f.file()
}

// vocabulary returns the tokens, and pairs of which the second follows the first.
func (m Model) vocabulary() (tokens []string, follows [][2]int) {
	tokens = append(byteTokens(), special...)
	words := strings.SplitAfter(m.Says+" ", " ")
	words = words[:len(words)-1]
	if m.Says == "" {
		words = nil
	}
	if m.Calls == "" {
		tokens = append(tokens, "unused")
		if len(words) == 0 {
			return tokens, [][2]int{{tokenCall, '\n'}, {'\n', '{'}}
		}
		follows = append(follows, [2]int{'\n', tokenFirst})
	} else {
		tokens = append(tokens, encoded("\n"+m.Calls+"\n</tool_call>"))
		follows = append(follows, [2]int{'\n', tokenCall}, [2]int{tokenCall, tokenWholeFor}, [2]int{tokenWholeFor, tokenEnd}, [2]int{' ', tokenFirst})
		words = []string{m.Says}
	}
	for i, word := range words {
		tokens = append(tokens, encoded(word))
		next := tokenFirst + i + 1
		if i == len(words)-1 {
			if next = tokenEnd; m.Endless {
				next = tokenFirst
			}
		}
		follows = append(follows, [2]int{tokenFirst + i, next})
	}
	return tokens, follows
}

// byteTokens is GPT-2's table from bytes to characters.
func byteTokens() []string {
	out, n := make([]string, 256), rune(0)
	for b := range out {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			out[b] = string(rune(b))
			continue
		}
		out[b] = string(256 + n)
		n++
	}
	return out
}

// encoded is a text as a vocabulary has it.
func encoded(text string) string {
	table, out := byteTokens(), ""
	for _, b := range []byte(text) {
		out += table[b]
	}
	return out
}

// likely is how likely a token is whatever came before: text that ends soon, and
// that closes what a grammar of JSON opened.
func likely(token int) float32 {
	switch {
	case token == tokenEnd:
		return 4.5
	case token == tokenCall, token == '"', token == '}', token == ']':
		return 4
	case token >= 256:
		return -20
	case token == ' ':
		return 3.5
	case token >= 'a' && token <= 'z':
		return 2
	case token >= '0' && token <= '9':
		return 1
	case token > ' ' && token < 127:
		return -2
	}
	return -12
}

type tensor struct {
	name string
	dims []uint64
	data []float32
}

// gguf writes the format, see ggml's docs/gguf.md.
type gguf struct {
	random *rand.Rand
	count  uint64 // of facts
	facts  bytes.Buffer
	parts  []tensor
}

func put(b *bytes.Buffer, v any) { _ = binary.Write(b, binary.LittleEndian, v) } // into memory

func text(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

// The types of facts.
const (
	typeUint32, typeInt32, typeFloat32, typeBool, typeString, typeArray = uint32(4), uint32(5), uint32(6), uint32(7), uint32(8), uint32(9)
)

func (f *gguf) fact(key string, v any) {
	f.count++
	text(&f.facts, key)
	switch v := v.(type) {
	case uint32:
		put(&f.facts, typeUint32)
		put(&f.facts, v)
	case float32:
		put(&f.facts, typeFloat32)
		put(&f.facts, v)
	case bool:
		put(&f.facts, typeBool)
		put(&f.facts, v)
	case string:
		put(&f.facts, typeString)
		text(&f.facts, v)
	case []string:
		put(&f.facts, typeArray)
		put(&f.facts, typeString)
		put(&f.facts, uint64(len(v)))
		for _, s := range v {
			text(&f.facts, s)
		}
	case []int32:
		put(&f.facts, typeArray)
		put(&f.facts, typeInt32)
		put(&f.facts, uint64(len(v)))
		put(&f.facts, v)
	}
}

func (f *gguf) metadata(tokens []string, template string) {
	const normal, control, userDefined = 1, 3, 4
	kinds := make([]int32, len(tokens))
	for i := range kinds {
		switch {
		case i < 256 || i >= tokenWholeFor:
			kinds[i] = normal
		case strings.Contains(tokens[i], "tool") || strings.Contains(tokens[i], "think"):
			kinds[i] = userDefined // visible text
		default:
			kinds[i] = control
		}
	}
	f.fact("general.architecture", "llama")
	f.fact("general.name", "made-up")
	f.fact("general.alignment", uint32(32))
	f.fact("llama.context_length", uint32(window))
	f.fact("llama.embedding_length", uint32(width))
	f.fact("llama.block_count", uint32(1))
	f.fact("llama.feed_forward_length", uint32(inner))
	f.fact("llama.attention.head_count", uint32(heads))
	f.fact("llama.attention.head_count_kv", uint32(heads))
	f.fact("llama.rope.dimension_count", uint32(width/heads))
	f.fact("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	f.fact("llama.vocab_size", uint32(len(tokens)))
	f.fact("tokenizer.ggml.model", "gpt2")
	f.fact("tokenizer.ggml.pre", "gpt-2")
	f.fact("tokenizer.ggml.tokens", tokens)
	f.fact("tokenizer.ggml.token_type", kinds)
	f.fact("tokenizer.ggml.merges", []string{})
	f.fact("tokenizer.ggml.bos_token_id", uint32(256))
	f.fact("tokenizer.ggml.eos_token_id", uint32(tokenEnd))
	f.fact("tokenizer.ggml.add_bos_token", false)
	f.fact("tokenizer.chat_template", template)
}

// noise are random numbers about a base.
func (f *gguf) noise(n int, base, spread float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = base + spread*float32(f.random.NormFloat64())
	}
	return out
}

// tensors makes the weights. Each pair has a dimension of its own, which only its
// first token sets and only its second one reads.
func (f *gguf) tensors(vocabulary int, follows [][2]int) {
	head, embedding := make([]float32, vocabulary*width), f.noise(vocabulary*width, 1, 0.05)
	for i := range head {
		head[i] = likely(i/width)/width + 0.002*float32(f.random.NormFloat64())
	}
	for d, pair := range follows {
		for i := range vocabulary {
			embedding[i*width+d+1], head[i*width+d+1] = 0, 0
		}
		embedding[pair[0]*width+d+1], head[pair[1]*width+d+1] = 8, 5
	}
	v := uint64(vocabulary)
	f.parts = []tensor{
		{"token_embd.weight", []uint64{width, v}, embedding},
		{"output_norm.weight", []uint64{width}, f.noise(width, 1, 0)},
		{"output.weight", []uint64{width, v}, head},
		{"blk.0.attn_norm.weight", []uint64{width}, f.noise(width, 1, 0)},
		{"blk.0.attn_q.weight", []uint64{width, width}, f.noise(width*width, 0, 0.02)},
		{"blk.0.attn_k.weight", []uint64{width, width}, f.noise(width*width, 0, 0.02)},
		{"blk.0.attn_v.weight", []uint64{width, width}, f.noise(width*width, 0, 0.02)},
		{"blk.0.attn_output.weight", []uint64{width, width}, f.noise(width*width, 0, 0.02)},
		{"blk.0.ffn_norm.weight", []uint64{width}, f.noise(width, 1, 0)},
		{"blk.0.ffn_gate.weight", []uint64{width, inner}, f.noise(width*inner, 0, 0.02)},
		{"blk.0.ffn_up.weight", []uint64{width, inner}, f.noise(width*inner, 0, 0.02)},
		{"blk.0.ffn_down.weight", []uint64{inner, width}, f.noise(width*inner, 0, 0.02)},
	}
}

func (f *gguf) file() []byte {
	var out bytes.Buffer
	pad := func() {
		for out.Len()%32 != 0 {
			out.WriteByte(0)
		}
	}
	out.WriteString("GGUF")
	put(&out, uint32(3))
	put(&out, uint64(len(f.parts)))
	put(&out, f.count)
	out.Write(f.facts.Bytes())
	offset := uint64(0)
	for _, p := range f.parts {
		text(&out, p.name)
		put(&out, uint32(len(p.dims)))
		put(&out, p.dims)
		put(&out, uint32(0)) // numbers of 32 bits
		put(&out, offset)
		offset += uint64(len(p.data)*4+31) / 32 * 32
	}
	pad()
	for _, p := range f.parts {
		put(&out, p.data)
		pad()
	}
	return out.Bytes()
}
