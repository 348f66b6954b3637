// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/openai/openai-go/v3"

	"github.com/antiphon-go/antiphon/platform"
)

// The size of the answer of embedRow.
const (
	embedInputs     = 64
	embedDimensions = 1536
)

// embedAnswer returns an answer with embeddings, as base64 or as numbers.
func embedAnswer(asNumbers bool) []byte {
	b := []byte(`{"object":"list","model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8},"data":[`)
	for i := range embedInputs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"object":"embedding","index":`+strconv.Itoa(i)+`,"embedding":`...)
		var raw []byte
		for j := range embedDimensions {
			f := float32(math.Sin(float64(i*embedDimensions+j))) / 40
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
			if asNumbers {
				b = strconv.AppendFloat(append(b, "[,"[min(j, 1)]), float64(f), 'g', -1, 32)
			}
		}
		if asNumbers {
			b = append(b, "]}"...)
		} else {
			b = append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), `"}`...)
		}
	}
	return append(b, "]}"...)
}

// embedRow reads embeddings.
func embedRow(name string, asNumbers bool, gate, goal float64) row {
	body := embedAnswer(asNumbers)
	check := func(n, dimensions int, sum float64) (int, error) {
		if n != embedInputs || dimensions != embedDimensions {
			return 0, fmt.Errorf("%d vectors of %d numbers", n, dimensions)
		}
		return int(math.Float32bits(float32(sum))), nil
	}
	return row{name: name, unit: "vector", units: embedInputs, bytes: len(body), gate: gate, goal: goal, maxAllocs: -1, libs: []lib{
		{"antiphon", func() (int, error) {
			var v platform.Embeddings
			if err := v.UnmarshalJSON(body); err != nil {
				return 0, err
			}
			last := v.Data[len(v.Data)-1].Vector
			return check(len(v.Data), len(last), float64(last[0])+float64(last[1]))
		}},
		{"openai-go", func() (int, error) {
			var v openai.CreateEmbeddingResponse
			if err := json.Unmarshal(body, &v); err != nil {
				return 0, err
			}
			last := v.Data[len(v.Data)-1].Embedding
			return check(len(v.Data), len(last), float64(float32(last[0]))+float64(float32(last[1])))
		}},
	}}
}
