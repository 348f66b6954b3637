// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

type number struct {
	N int `json:"n,omitempty"`
}

// says is what the output of every tool holds that ran: which call it was. The
// key of a call has no angle brackets.
func says(ctx context.Context) string { return "ran <" + agenttest.KeyOf(ctx) + ">" }

// tools are those of the worker's agents but for the nesting ones. Each writes
// to the ledger.
func tools(l *agenttest.CallLog, f *fate) []tool.Tool {
	make := func(name string, do func(ctx context.Context, n int) (tool.Result, error), opts ...tool.Option) tool.Tool {
		t := tool.Must(name, "Does "+name+".", func(ctx context.Context, in number) (tool.Result, error) {
			f.step("tool/" + name + "/began")
			defer f.step("tool/" + name + "/ended")
			return do(ctx, in.N)
		}, opts...)
		return l.Tool(&between{t, f, name})
	}
	text := func(ctx context.Context, n int) (tool.Result, error) {
		return tool.Result{Text: fmt.Sprintf("%s: %d", says(ctx), n)}, nil
	}
	return []tool.Tool{
		make("work", text),
		make("again", text, tool.Idempotent()),
		make("alone", text, tool.Exclusive()),
		make("asks", text),
		make("denied", text),
		make("early", text, tool.ReadOnly(), tool.EarlyStart()),
		make("fails", func(ctx context.Context, n int) (tool.Result, error) {
			return tool.Result{Text: says(ctx)}, fmt.Errorf("no %d today", n)
		}),
		make("panics", func(context.Context, int) (tool.Result, error) { panic("as it is called") }),
		make("long", func(ctx context.Context, n int) (tool.Result, error) {
			return tool.Result{Text: says(ctx) + strings.Repeat(fmt.Sprintf("\nline %d", n), 100*n)}, nil
		}, tool.ReadOnly(), tool.ReadKey(func(string) (string, bool) { return "long", true })),
		make("slow", func(ctx context.Context, n int) (tool.Result, error) {
			select {
			case <-ctx.Done():
				return tool.Result{Text: says(ctx)}, ctx.Err()
			case <-time.After(time.Duration(n) * time.Millisecond):
				return tool.Result{Text: says(ctx)}, nil
			}
		}, tool.Idempotent()),
		make("picture", func(ctx context.Context, n int) (tool.Result, error) {
			uri, err := picture(n)
			return tool.Result{Text: says(ctx), Parts: item.Parts(&item.InputImage{ImageURL: uri}).Parts}, err
		}, tool.ReadOnly(), tool.Idempotent(), tool.EarlyStart()),
	}
}

// between is a tool with a step before its ledger's entry and behind it.
type between struct {
	tool.Tool
	fate *fate
	name string
}

func (b *between) Annotations() tool.Annotations { return tool.AnnotationsOf(b.Tool) }

func (b *between) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	b.fate.step("tool/" + b.name + "/noted")
	return b.Tool.Run(ctx, c)
}

// picture returns an image as a data URI, the same for the same number: a
// few bytes or some hundred KB.
func picture(n int) (string, error) {
	side := 4 + 15*n
	r := rand.New(rand.NewPCG(uint64(n), 0))
	img := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			v := r.Uint32()
			img.SetNRGBA(x, y, color.NRGBA{uint8(v), uint8(v >> 8), uint8(v >> 16), 255})
		}
	}
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, img)
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), err
}

// agents returns the agent that runs in the worker's sessions. One of its tools
// is an agent itself.
func agents(model agent.Model, l *agenttest.CallLog, f *fate) (*agent.Agent, error) {
	build := func() *agent.Agent {
		a := &agent.Agent{
			Model: model, Tools: tools(l, f), Hooks: []agent.Hooks{l.Hooks()}, Limits: agent.Limits{MaxDepth: 2},
			Policy: agent.Policy{Allow: []string{"*"}, Ask: []string{"asks"}, Deny: []string{"denied"}, Pause: true},
		}
		a.Request.Model, a.Request.Instructions = "rehearsal", "Do as you are told."
		return a
	}
	inner := build()
	inner.Tools = append(inner.Tools, agent.ForkTool())
	outer := build()
	helper, err := agent.AsTool("helper", "Helps.", inner)
	outer.Tools = append(outer.Tools, agent.ForkTool(), helper)
	return outer, errors.Join(err)
}
