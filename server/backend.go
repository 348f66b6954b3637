// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"iter"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Backend makes the responses that a [Server] serves. It may also implement
// [Keeper], [Recaller], [Filer], [ChatChecker], [TokenCounter], [CountSpender], [Compactor] and [ModelLister]; the server does not serve what its
// backend does not implement. A backend must be safe for concurrent use.
type Backend interface {
	// Respond writes the response to a request. If it returns nil, the response is
	// completed, unless the backend ended it already. An error before the first write
	// refuses the request; a later error fails the response. The client receives an
	// [*Error]; other errors are logged.
	//
	// Respond should return soon after ctx is done: the client is gone, or the
	// response was cancelled. Later writes are lost. Respond must not use w after it
	// returns.
	Respond(ctx context.Context, r *Request, w *Writer) error
}

// BackendFunc is a function that implements [Backend].
type BackendFunc func(ctx context.Context, r *Request, w *Writer) error

// Respond calls f. If f is nil, it returns an error.
func (f BackendFunc) Respond(ctx context.Context, r *Request, w *Writer) error {
	if f == nil {
		return errors.New("server: the BackendFunc is nil")
	}
	return f(ctx, r, w)
}

// Request is a checked request with its history. A backend must not change it.
type Request struct {
	*api.Request
	// Object is the request as received. It has members that api.Request lacks, and
	// the exact text of others.
	Object item.Item
	// Items is the complete input of the model: the history that the request
	// continues, and its own input. Item references are replaced by their items, and the names
	// of files of a [Filer] by their content. If the backend is a [Keeper], it is only the
	// request's own input.
	Items []item.Item
	// Own is the number of Items, at the end, that are the request's own input.
	Own int
	// Chat are members of a request to Chat Completions that the Responses API does not have,
	// such as stop, as the client sent them. They are set only for a [ChatChecker].
	Chat item.Extra
	// WarmUp means that the client wants no output: the request only prepares the one
	// that follows.
	WarmUp bool
	// Stored means that the response will be stored.
	Stored bool
	// Resumed means that another server goes on with the response if this one ends.
	Resumed bool

	previous     string       // the stored object that the request continues, or ""
	conversation string       // reserved by this request until it is released
	unlock       func() error // frees it for other servers, or nil
	streamID     string       // of a WebSocket
	// outlive keeps the memory for the files that it names until ctx is done, and not only as long as the
	// client waits.
	outlive func(ctx context.Context) error
}

// own returns the request's own input.
func (r *Request) own() []item.Item { return r.Items[len(r.Items)-r.Own:] }

// Keeper is a [Backend] that keeps its responses and conversations itself, for example in
// a log that they are part of. It is the server's [Store] unless [Server].Store is set.
// The server reads no history for it, adds nothing to its conversations after a response,
// and stores no end of a response that another process may still be making.
//
// Put is called for the first event of a response, with the id that the backend gave to
// [Writer.Begin], before the event is sent; and for its last event.
type Keeper interface {
	Store
	// Waiting returns the calls that the next request must answer, after a response or in
	// a conversation. It also knows responses that are not stored, until Forget.
	Waiting(ctx context.Context, id string) ([]item.Item, error)
	// Forget removes a response that is not stored, because its connection has ended or
	// went on to another response. It does nothing for other ids.
	Forget(id string)
}

// Resumer is a [Keeper] whose background responses survive the server that makes them:
// another one over the same store goes on. A [Server] looks for such responses from its
// first request on, until it is closed.
type Resumer interface {
	Keeper
	// Unfinished returns the background responses that this backend does not make, and
	// that perhaps no other process makes.
	Unfinished(ctx context.Context) (ids []string, err error)
	// Resume makes the rest of a response, like Respond. It gives the id to [Writer.Begin] before it
	// writes, and writes again what the response has already, which is not sent a second time; if the
	// response is streamed, it calls [Writer.Replay] first. The error wraps [ErrLeft] if somebody else
	// makes the response.
	Resume(ctx context.Context, id string, w *Writer) error
	// Stop ends a response that this backend does not make: it is cancelled, or has ended,
	// when Stop returns nil.
	Stop(ctx context.Context, id string) error
	// AddEvents keeps events of a streamed background response, so that its stream can be
	// taken up by any server over the same store. from is the number of the first one. They
	// are durable when AddEvents returns. If last is set, the stream has ended. The error
	// wraps [ErrLeft] if another server goes on with the response (rule V2 in docs/rules.md).
	AddEvents(ctx context.Context, id string, from int64, events []api.Event, last bool) error
	// Events yields the events that are kept of a response, from number from on, and those
	// that follow until the stream ends. It yields [ErrNotFound] if none are kept.
	Events(ctx context.Context, id string, from int64) iter.Seq2[api.Event, error]
}

// Errors of a [Resumer].
var (
	// ErrLeft means that this server stopped making a background response and another
	// server continues it. It is also the cause with which the context of such a response
	// ends when its server closes.
	ErrLeft = errors.New("the response is left for another server")
	// ErrCancelled means that somebody else cancelled the response.
	ErrCancelled = errors.New("the response was cancelled")
)

// Recaller is a [Keeper], or a [Store] of a server without one, that finds the stored response that a request continues without
// naming it, because its client sent the history back.
type Recaller interface {
	// Recall returns the response whose history the input begins with, and how many items
	// of the input are of that history. It returns "" if there is none. The server then
	// treats the request as if it named the response.
	Recall(ctx context.Context, model string, input []item.Item) (previous string, known int, err error)
}

// ChatChecker is a [Backend] that honours members of Chat Completions which the Responses API
// does not have. For other backends the server refuses requests with such members.
type ChatChecker interface {
	// CheckChat returns an error if the response will not honour a member in r.Chat. A backend
	// that cannot know yet returns nil, and the error from Respond.
	CheckChat(r *Request) error
}

// TokenCounter is a [Backend] that can count the tokens of a request.
type TokenCounter interface {
	// CountTokens returns the number of input tokens.
	CountTokens(ctx context.Context, r *Request) (int64, error)
}

// CountSpender is a [TokenCounter] for which counting may cost tokens.
type CountSpender interface {
	TokenCounter
	// CountSpends reports whether counting the tokens of a request may itself cost tokens. Such a
	// request is admitted like one for a response, and CountTokens reports the cost by [Spend].
	CountSpends(r *Request) bool
}

// Compactor is a [Backend] that can replace a history by something shorter.
type Compactor interface {
	// Compact returns the replacement of the request's items. The server sets the ID
	// and the time if they are missing. The backend reports what it costs by
	// [Spend].
	Compact(ctx context.Context, r *Request) (*api.Compacted, error)
}

// ModelLister is a [Backend] that can list its models. Requests may name other
// models: the backend decides what to do with them.
type ModelLister interface {
	// Models returns all models if id is "", and otherwise the model with that id, or
	// an empty list.
	Models(ctx context.Context, id string) ([]Model, error)
}

// Model is a model in the server's list.
type Model struct {
	ID      string
	Created int64 // seconds since 1970
	OwnedBy string
	// Description says what the model does. It is not part of the API, and is left out if it
	// is "".
	Description string
}
