// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package tool defines tools, and turns their results into the output that the model
// reads.
//
// [New] makes a tool from a Go function: the schema of its arguments is inferred
// from the function's input type, and the model's arguments are checked against it
// before the function runs. [Raw] is the lower-level form: a definition as it is
// sent, and a function that receives the model's own text.
//
// A [Set] holds the tools of one agent. [Set.Invoke] runs one call and always
// returns an [Outcome] that can be sent: an unknown name, arguments that do not fit,
// a failure, a panic and a timeout are results for the model, not errors of the
// program.
//
// A [Schema] checks and decodes other JSON in the same way, such as the answer of a
// model: see [NewSchema] and [ParseSchema].
//
// Package output writes tools' results according to an [output.Policy]: with or
// without an envelope, within limits, without secrets, with images adapted to the
// model. The tool made by [ReadOutput] reads the parts that a limit left out.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Tool is something that a model can call by name. An implementation must be safe
// for concurrent use: calls of one turn run at the same time unless its annotations
// have [Annotations.Exclusive].
type Tool interface {
	// Definition returns what the model sees: an [*item.FunctionTool], an
	// [*item.CustomTool], or one of the API's own tools that are run here (see
	// [item.Type.Tool]). It must return an equal value every time; the caller
	// may keep it.
	Definition() item.Tool

	// Run performs one call. To report a failure to the model, it returns an error
	// or a [Result] with an Error; Text and Parts are then the output so far, and
	// are kept. Run must return soon after ctx ends.
	Run(ctx context.Context, call Call) (Result, error)
}

// Call is one call as the model made it.
type Call struct {
	// ID is the call id, which connects the call and its output.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is the JSON text as the model sent it or, for a custom tool, its
	// input. It may be anything.
	Arguments string
	// Kind is the type of a call of the API's own tools, and "" for all others.
	// Its Arguments are the JSON of its operation or action.
	Kind item.Type
	// Warnings are the endpoint's warnings about a computer call, for the person who
	// approves it; "" if there are none.
	Warnings string
	// Imported says that the call came with an imported conversation: a stranger may
	// have written it, so a person is asked about it whatever the rules say.
	Imported bool
	// Custom says that Arguments is the free text of a custom tool call.
	Custom bool
	// Edited reports that Arguments is not what the model sent, because it was
	// changed. The output tells the model.
	Edited bool
	// Session is the id of the session that holds the call, and Number its number in
	// that session, from 1; "" and 0 outside a run of package agent.
	Session string
	Number  int
	// Again reports that the call was started before, by a process that ended before
	// its output was recorded.
	Again bool
}

// Key identifies the effect of the call: it is the same each time that the call is
// started, in any process, and different for all other calls, in forks of the session
// too. Send it to a service that does the same work for one key once, for example as
// the header Idempotency-Key. It is "" if the call belongs to no session. It is made of the
// session's id: two stores, or a store whose session was deleted, must not use one id for
// two conversations.
func (c Call) Key() string {
	if c.Session == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "call %d %q of %q", c.Number, c.ID, c.Session))
	return hex.EncodeToString(sum[:16])
}

// Annotations are the known properties of a tool before it runs. The zero value
// promises nothing: the tool may write, and running it twice may do harm.
type Annotations struct {
	// ReadOnly: the tool changes nothing outside itself, so it runs without approval
	// where reading is allowed.
	ReadOnly bool
	// Exclusive: no other call may run beside it.
	Exclusive bool
	// Idempotent: running the same call again after a crash does no harm.
	Idempotent bool
	// Subagent: a call is a run of an agent inside the run that makes the call.
	// Package agent sets this on the tools that it makes.
	Subagent bool
	// EarlyStart: a call may start as soon as it is complete, while the rest of the
	// reply is still arriving. If the reply breaks off, the call has run
	// nevertheless.
	EarlyStart bool
	// Polling: the same call is meant to be made again and again, so it does not count
	// as a loop of the model, does no harm if it runs again after a crash, and may end
	// with a [NotYet].
	Polling bool
	// Envelope: successes are wrapped like failures. See [output.Envelope].
	Envelope bool
	// Timeout bounds one call. Zero: only the caller's context does.
	Timeout time.Duration
	// Retry repeats calls that return an error, and Rate bounds how often the tool
	// starts. A call that waits for its Rate is not bounded by Timeout yet.
	Retry *Retry
	Rate  *Rate
	// MaxOutput bounds the text of the tool's outputs, instead of
	// [output.Policy.Limit].
	MaxOutput *output.Limit
	// UsualOutput bounds it if neither MaxOutput nor [output.Policy.Limit] does.
	UsualOutput *output.Limit
	// ReadKey names what the tool's calls read; nil means unknown.
	ReadKey ReadKeyer
	// Inquirer tells what became of calls whose process ended; nil: nobody can tell.
	Inquirer Inquirer
	// Approval is the declaring file's rule for calls to this tool: "allow", "ask"
	// or "deny", one rule beside those of an agent's policy; "" means no rule.
	Approval string
	// Origin says what the tool is, which its name does not: see [Origin].
	Origin Origin
	// Folders compares the paths of the tool's calls with folders, for rules; nil means
	// that only the texts are known.
	Folders Folders
	// Namespace is the group in which the tool is sent, if it is not nil: see the option
	// [Namespace].
	Namespace *item.NamespaceTool
}

// Folders compares paths as a model writes them.
type Folders interface {
	// Within reports whether a path is in a folder, with links followed; known is false if
	// that is not known. It may look at files, but must change nothing.
	Within(folder, path string) (within, known bool)
}

// Origin distinguishes tools that have the same name. A person who allows all calls of
// a tool allows that tool, and not another one that gets its name later.
type Origin struct {
	// Of says in words whose tool it is, for a person who is asked about a call, such as
	// "the MCP server weather (npx weather-server)"; "" if the name says it.
	Of string
	// Agent names the agent that has the tool, if it is not the outermost one.
	Agent string
	// Identity is a text that differs between tools whose calls do different things: it
	// contains the command, the folders, the server. It must not change
	// between runs without a reason. Of a tool without one, the definition is compared.
	Identity string
}

// ReadKeyer names what a tool's calls read.
type ReadKeyer interface {
	// ReadKey returns a key for what a call with these arguments, as the tool
	// receives them, would read; ok is false if there is no key. Calls of the same
	// tool with the same key return the same output while the thing they read does
	// not change. ReadKey must be fast.
	ReadKey(arguments string) (key string, ok bool)
}

// Inquirer tells what became of a call that was started by a process that ended before
// the output was recorded, for example by asking a service about the call's Key.
type Inquirer interface {
	// Inquire is called before such a call would be started again. With [FateDone] the
	// result is the output of the call. An error counts as [FateUnknown].
	Inquire(ctx context.Context, call Call) (Result, Fate, error)
}

// Fate is what became of a call.
type Fate int

const (
	// FateUnknown means that it is not known. The call runs again if the tool is Idempotent;
	// otherwise the model is told that the outcome is not known.
	FateUnknown Fate = iota
	// FateNever means that it had no effect and will have none. The call runs now.
	FateNever
	// FateDone means that it took effect.
	FateDone
)

// Annotated is the optional interface of a [Tool] that has annotations.
type Annotated interface {
	Annotations() Annotations
}

// AnnotationsOf returns t's annotations, or the zero value if t is nil or not [Annotated].
func AnnotationsOf(t Tool) Annotations {
	if tr, ok := t.(Annotated); ok && !nils.Is(t) {
		return tr.Annotations()
	}
	return Annotations{}
}

type callKey struct{}

// FromContext returns the call that is running, for typed functions that need its
// id. It reports false outside a tool's run.
func FromContext(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(*callContext)
	if !ok {
		return Call{}, false
	}
	return c.call, true
}

// callContext is a context that holds the call.
type callContext struct {
	context.Context
	call Call
}

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func withCall(ctx context.Context, c Call) context.Context { return &callContext{ctx, c} }

// CheckName reports a tool name that the API would refuse: it must be 1 to 64
// letters, digits, underscores and hyphens.
func CheckName(name string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return fmt.Errorf("tool name %q: want 1 to 64 letters, digits, '_' and '-'", name)
	}
	return nil
}

// nameOf returns the name by which a model calls a definition.
func nameOf(def item.Tool) (string, error) {
	var name string
	switch d := def.(type) {
	case *item.FunctionTool:
		if d == nil {
			return "", fmt.Errorf("tool: definition is nil")
		}
		name = d.Name
	case *item.CustomTool:
		if d == nil {
			return "", fmt.Errorf("tool: definition is nil")
		}
		name = d.Name
	default:
		kind, ok := item.CallKindOf(def)
		if name = kind.Tool; !ok {
			const want = "want a function, a custom tool, or apply_patch, shell, local_shell, computer or a client's tool_search of the API"
			if def == nil {
				return "", fmt.Errorf("tool: definition is nil: %s", want)
			}
			return "", fmt.Errorf("tool: definition is %T: %s; if the endpoint runs it, put it into the Request.Tools of the agent", def, want)
		}
	}
	return name, CheckName(name)
}
