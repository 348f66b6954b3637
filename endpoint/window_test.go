// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/endpoint"
)

// E8: the window is read where servers tell it, of the model that is asked about.
func TestWindowIn(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int64
	}{
		{"llama-server", `{"models":[{"name":"chain.gguf","model":"chain.gguf"}],"object":"list","data":[{"id":"chain.gguf","meta":{"n_ctx":3328,"n_ctx_train":4096}}]}`, 3328},
		{"its properties", `{"default_generation_settings":{"n_ctx":2048},"total_slots":1}`, 2048},
		{"Ollama", `{"models":[{"name":"other:latest","model":"other:latest","context_length":8192},{"name":"m:latest","model":"m:latest","context_length":4096}]}`, 4096},
		{"vLLM", `{"object":"list","data":[{"id":"m","object":"model","max_model_len":32768},{"id":"lora","max_model_len":1}]}`, 32768},
		{"another model", `{"data":[{"id":"a","context_length":1},{"id":"b","context_length":2}]}`, 0},
		{"no list", `{"data":null}`, 0},
		{"no number", `{"data":[{"id":"m","context_length":"4096"}]}`, 0},
		{"not an object", `[1]`, 0},
		{"nothing", ``, 0},
	} {
		if got := endpoint.WindowIn([]byte(c.text), "m"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
