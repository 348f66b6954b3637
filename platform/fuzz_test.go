// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/antiphon-go/antiphon/platform"
)

type value interface {
	MarshalJSON() ([]byte, error)
	UnmarshalJSON([]byte) error
}

// W7: what can be read is written with the same meaning, but for the digits of
// vectors; nothing panics.
func FuzzDecoders(f *testing.F) {
	for _, seed := range []string{
		`{"id":"f","object":"file","bytes":1,"expires_at":0}`, `{"data":[{"index":0,"embedding":"AACAPw=="}],"usage":null}`, `{"data":[{"embedding":[1,2e-9]}]}`,
		`{"file_counts":{"total":1},"metadata":null,"expires_after":{"days":1}}`, `{"query":["a"],"rewrite_query":false}`, `{"results":[{"flagged":true,"categories":{}}]}`,
		`{"input":[[1]],"encoding_format":"float"}`, `{"type":"x","partial_image_index":3}`, `{"last_error":{"code":1}}`, `{"a":1,"a":2}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []value{
			new(platform.Model), new(platform.EmbedRequest), new(platform.Embeddings), new(platform.File), new(platform.Store), new(platform.StoreRequest), new(platform.StoreFile),
			new(platform.AttachRequest), new(platform.FileBatch), new(platform.FileBatchRequest), new(platform.SearchRequest), new(platform.SearchResults), new(platform.ModerationRequest),
			new(platform.Moderations), new(platform.ImageRequest), new(platform.Images), new(platform.ImageEvent),
		} {
			if v.UnmarshalJSON(data) != nil {
				continue
			}
			first, err := v.MarshalJSON()
			if err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			if !json.Valid(first) {
				t.Fatalf("%T: %s", v, first)
			}
			if err := v.UnmarshalJSON(first); err != nil {
				t.Fatalf("%T: %v in %s", v, err, first)
			}
			if second, err := v.MarshalJSON(); err != nil || string(second) != string(first) {
				t.Fatalf("%T: %v\n%s\n%s", v, err, first, second)
			}
			if m, ok := v.(*platform.Moderations); ok {
				for i := range m.Results {
					_, _ = m.Results[i].Flags(), m.Results[i].Score("violence")
				}
			}
		}
	})
}

// A vector is the same in both forms.
func FuzzVectors(f *testing.F) {
	f.Add(uint32(0x3f800000), uint32(1))
	f.Fuzz(func(t *testing.T, a, b uint32) {
		v := platform.Embedding{Vector: []float32{math.Float32frombits(a), math.Float32frombits(b)}}
		for _, binary := range []bool{true, false} {
			v.Base64 = binary
			text, err := v.MarshalJSON()
			if err != nil {
				if !binary {
					return // not finite
				}
				t.Fatal(err)
			}
			var got platform.Embedding
			if err := got.UnmarshalJSON(text); err != nil || got.Base64 != binary {
				t.Fatal(err)
			}
			for i := range got.Vector {
				if math.Float32bits(got.Vector[i]) != math.Float32bits(v.Vector[i]) {
					t.Fatalf("%x became %x", v.Vector, got.Vector)
				}
			}
		}
	})
}
