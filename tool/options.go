// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Option configures a tool when it is made.
type Option func(*config)

type config struct {
	annotations Annotations
	noRate      bool // the option RateLimit has no rate
	noCallers   bool // the option Callers names nobody
	noNamespace bool // the option Namespace has no group
	deferred    bool
	callers     []string
	strict      *bool
	parameters  item.JSON
	compile     func(item.JSON) (*schema, error) // reads parameters; set together with them
}

// ReadOnly declares that the tool changes nothing outside of itself.
func ReadOnly() Option { return func(c *config) { c.annotations.ReadOnly = true } }

// Exclusive declares that no other call may run beside the tool.
func Exclusive() Option { return func(c *config) { c.annotations.Exclusive = true } }

// Idempotent declares that the same call may be run again after a crash.
func Idempotent() Option { return func(c *config) { c.annotations.Idempotent = true } }

// Subagent declares that a call is a run of an agent. It is for package agent.
func Subagent() Option { return func(c *config) { c.annotations.Subagent = true } }

// EarlyStart lets a call start before the reply that contains it is complete. Use it
// only for tools that only read.
func EarlyStart() Option { return func(c *config) { c.annotations.EarlyStart = true } }

// Polling declares that the same call is meant to be made again and again, such as a
// question whether a job is done. See [Annotations.Polling].
func Polling() Option { return func(c *config) { c.annotations.Polling = true } }

// Timeout bounds each call. When the time is over, the tool's context ends. If the
// tool does not return then, it is abandoned and the model is informed.
func Timeout(d time.Duration) Option { return func(c *config) { c.annotations.Timeout = d } }

// Retries repeats a call that returns an error. The tool must be ReadOnly or Idempotent,
// too.
func Retries(r Retry) Option { return func(c *config) { c.annotations.Retry = &r } }

// RateLimit bounds how often the tool starts. A call beyond the rate waits. Several tools
// may share r, which must not be nil.
func RateLimit(r *Rate) Option {
	return func(c *config) { c.annotations.Rate, c.noRate = r, r == nil }
}

// Enveloped wraps successes the way failures are always wrapped. See
// [output.Envelope].
func Enveloped() Option { return func(c *config) { c.annotations.Envelope = true } }

// MaxOutput bounds the text of each output, instead of [output.Policy.Limit]. If the
// limit lacks a mode or sizes, those of the policy apply.
func MaxOutput(l output.Limit) Option { return func(c *config) { c.annotations.MaxOutput = &l } }

// Inquire sets the function that tells what became of a call. See [Inquirer].
func Inquire(f func(ctx context.Context, call Call) (Result, Fate, error)) Option {
	return func(c *config) { c.annotations.Inquirer = &inquirer{f} }
}

// inquirer is a function in a form that can be compared.
type inquirer struct {
	of func(ctx context.Context, call Call) (Result, Fate, error)
}

// Inquire implements [Inquirer].
func (i *inquirer) Inquire(ctx context.Context, call Call) (Result, Fate, error) {
	return i.of(ctx, call)
}

// ReadKey sets the function that names what a call reads. See [ReadKeyer].
func ReadKey(f func(arguments string) (key string, ok bool)) Option {
	return func(c *config) { c.annotations.ReadKey = &readKey{f} }
}

type readKey struct {
	of func(arguments string) (string, bool)
}

func (r *readKey) ReadKey(arguments string) (string, bool) { return r.of(arguments) }

// Approval is the declaring file's rule for calls to this tool: "allow", "ask" or
// "deny". See [Annotations.Approval].
func Approval(verdict string) Option { return func(c *config) { c.annotations.Approval = verdict } }

// From says what the tool is beside its name. See [Origin].
func From(o Origin) Option { return func(c *config) { c.annotations.Origin = o } }

// InFolders is [From] for a tool whose calls have paths, which f compares with folders.
func InFolders(f Folders, o Origin) Option {
	return func(c *config) { c.annotations.Folders, c.annotations.Origin = f, o }
}

// UsualOutput bounds the text of each output if neither [MaxOutput] nor
// [output.Policy.Limit] does.
func UsualOutput(l output.Limit) Option { return func(c *config) { c.annotations.UsualOutput = &l } }

// Strict asks the endpoint to force the model to follow the schema. The default is
// false. A strict schema must list every property as required and allow no others;
// [New] checks this.
func Strict(on bool) Option { return func(c *config) { c.strict = &on } }

// Parameters replaces the schema that [New] infers, for constraints that Go types do
// not express, such as an enumeration. It is sent byte for byte. [Raw] takes its
// schema from the definition and refuses this option.
func Parameters(schema item.JSON) Option {
	return func(c *config) { c.parameters, c.compile = schema, compileGiven }
}

func configOf(opts []Option) (config, error) {
	var c config
	for i, o := range opts {
		if o == nil {
			return c, fmt.Errorf("option %d is nil", i+1)
		}
		o(&c)
	}
	if c.noRate {
		return c, errors.New("rate: the option RateLimit has a nil Rate: leave it out, or give it one with Calls and Per")
	}
	if c.annotations.Timeout < 0 {
		return c, fmt.Errorf("timeout %v is negative", c.annotations.Timeout)
	}
	if err := c.annotations.checkPace(); err != nil {
		return c, err
	}
	if err := c.checkDefinition(); err != nil {
		return c, err
	}
	switch c.annotations.Approval {
	case "", "allow", "ask", "deny":
	default:
		return c, fmt.Errorf("approval is %q, want allow, ask or deny", c.annotations.Approval)
	}
	for _, l := range []*output.Limit{c.annotations.MaxOutput, c.annotations.UsualOutput} {
		if l != nil {
			if err := l.Check(); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}
