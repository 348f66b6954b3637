// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
)

// TestPrices proves that the prices of the person come first, and that the built-in ones hold at OpenAI's
// address alone, also for snapshots.
func TestPrices(t *testing.T) {
	const openAI = "https://api.openai.com/v1"
	find, err := pricesFor("gpt-5=1,2,3 qwen3=0,0,0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model, at string
		want      float64 // of a million tokens that are put out
		known     bool
	}{
		{"gpt-5", openAI, 3, true},
		{"gpt-5", "http://localhost:8080/v1", 3, true},
		{"qwen3", "http://localhost:8080/v1", 0, true},
		{"gpt-5.1", openAI, 10, true},
		{"gpt-5-mini-2025-08-07", openAI, 2, true},
		{"gpt-4o-2024-05-13", openAI, 0, false},
		{"gpt-5.1", "http://api.openai.com/v1", 0, false},
		{"gpt-5.1", "https://openrouter.ai/api/v1", 0, false},
		{"gpt-5.1", "", 0, false},
		{"unknown", openAI, 0, false},
	} {
		if got, known := find(c.model, c.at); known != c.known || known && got.Output != c.want {
			t.Errorf("%s at %s: %v, %v", c.model, c.at, got, known)
		}
	}
	for _, bad := range []string{"gpt-5", "gpt-5=1,2", "=1,2,3", "gpt-5=1,2,-3", "gpt-5=1,2,NaN"} {
		if _, err := pricesFor(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for model, p := range pricesAtOpenAI {
		if p.Cached >= p.Input || p.Input >= p.Output || p == (agent.Price{}) {
			t.Errorf("%s: %v", model, p)
		}
	}
}

// TestPricesOfSettings proves that prices of the settings are counted and listed, that --price overrides
// them, and that a limit of costs needs a price.
func TestPricesOfSettings(t *testing.T) {
	env := home(t, t.TempDir())
	write(t, "agent.md", "<user>Hi</user>\n")
	run := func(with string, args ...string) outcome {
		return programEnv(t, append(env, "ANTIPHON_PRICES="+with), append([]string{"run", "agent.md", "--rehearsal"}, args...)...)
	}
	if o := run("rehearsal=1000000,1000000,1000000"); o.code != exitOK || !strings.Contains(o.err, ", cost ") {
		t.Errorf("%+v", o)
	}
	if o := run("rehearsal=1,1,1", "--price", "0,0,0"); o.code != exitOK || strings.Contains(o.err, ", cost ") {
		t.Errorf("%+v", o)
	}
	if o := run("", "--max-cost", "1"); o.code != exitUsage || !strings.Contains(o.err, "give --price, or prices in the settings") {
		t.Errorf("%+v", o)
	}
	if o := run("rehearsal=1,1", "--max-cost", "1"); o.code != exitUsage || !strings.Contains(o.err, `ANTIPHON_PRICES: "rehearsal=1,1" is not MODEL=IN,CACHED,OUT`) {
		t.Errorf("%+v", o)
	}
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "antiphon"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "antiphon", "config"), "<config prices=\"qwen3=0.1,0.05,0.4\"/>\n")
	if o := programEnv(t, append(env, "XDG_CONFIG_HOME="+folder), "config"); o.code != exitOK || !strings.Contains(o.out, "qwen3=0.1,0.05,0.4") {
		t.Errorf("%+v", o)
	}
}
