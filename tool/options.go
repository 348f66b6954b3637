// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Option varies one tool at its construction.
type Option func(*config)

type config struct {
	traits     Traits
	strict     *bool
	parameters item.JSON
	compile    func(item.JSON) (*schema, error) // of parameters; linked where they are given
}

// ReadOnly declares that the tool changes nothing outside of itself.
func ReadOnly() Option { return func(c *config) { c.traits.ReadOnly = true } }

// Exclusive declares that no other call may run beside the tool.
func Exclusive() Option { return func(c *config) { c.traits.Exclusive = true } }

// Idempotent declares that the same call may be run again after a crash.
func Idempotent() Option { return func(c *config) { c.traits.Idempotent = true } }

// Nested declares that a call is a run of its own. It is for package agent.
func Nested() Option { return func(c *config) { c.traits.Nested = true } }

// EarlyStart lets a call start before the reply that makes it is whole. It is
// for tools that only read.
func EarlyStart() Option { return func(c *config) { c.traits.EarlyStart = true } }

// Timeout bounds each call. The tool sees its context end; if it does not
// return then, it is left behind and the model is told so.
func Timeout(d time.Duration) Option { return func(c *config) { c.traits.Timeout = d } }

// Enveloped wraps successes as failures always are. See [Envelope].
func Enveloped() Option { return func(c *config) { c.traits.Envelope = true } }

// MaxOutput bounds the text of each output in place of [Shape.Limit]. What the
// limit leaves open, its mode or its sizes, is as the Shape has it.
func MaxOutput(l Limit) Option { return func(c *config) { c.traits.MaxOutput = l } }

// Region says what calls read. See [Regioner].
func Region(f func(arguments string) (region string, ok bool)) Option {
	return func(c *config) { c.traits.Region = &regions{f} }
}

type regions struct {
	of func(arguments string) (string, bool)
}

func (r *regions) Region(arguments string) (string, bool) { return r.of(arguments) }

// Approval is the declaring file's rule for calls to this tool: "allow", "ask" or
// "deny". See [Traits.Approval].
func Approval(verdict string) Option { return func(c *config) { c.traits.Approval = verdict } }

// UsualOutput bounds the text of each output where neither [MaxOutput] nor
// [Shape.Limit] does.
func UsualOutput(l Limit) Option { return func(c *config) { c.traits.UsualOutput = l } }

// Strict asks the endpoint to bind the model to the schema. It is false unless
// given. A strict schema must list every property as required and allow no
// others; [New] checks that.
func Strict(on bool) Option { return func(c *config) { c.strict = &on } }

// Parameters replaces the schema that [New] infers, for constraints that Go
// types do not express, such as an enumeration. It is sent byte for byte.
// [Raw] takes its schema from the definition and refuses this option.
func Parameters(schema item.JSON) Option {
	return func(c *config) { c.parameters, c.compile = schema, compileGiven }
}

func configOf(opts []Option) (config, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	if c.traits.Timeout < 0 {
		return c, fmt.Errorf("timeout %v is negative", c.traits.Timeout)
	}
	switch c.traits.Approval {
	case "", "allow", "ask", "deny":
	default:
		return c, fmt.Errorf("approval is %q, want allow, ask or deny", c.traits.Approval)
	}
	for _, l := range []Limiter{c.traits.MaxOutput, c.traits.UsualOutput} {
		if l != nil {
			if err := l.Check(); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}
