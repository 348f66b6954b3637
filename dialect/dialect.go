// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package dialect defines the interface of a model's wire API, so that support for another API is
// another package. A [Dialect] encodes a request of the Responses API for its own API, and decodes
// the answer as events of the Responses API. [Client] does everything else: connections, keys,
// retries, limits and errors.
//
// Packages responses and completions hold the two dialects of this module, and the clients that
// most programs use. Package dialect/dialecttest tests that a dialect keeps the guarantees that
// callers of a client rely on.
package dialect

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Dialect is one wire API. Its methods must be safe for concurrent use.
type Dialect interface {
	// Info returns the dialect's names and features.
	Info() Info
	// Encode encodes a request. It returns an [*endpoint.RefusedError] if the dialect or the
	// endpoint cannot accept the request; nothing is sent then.
	Encode(Outgoing) (*Message, error)
	// NewDecoder returns a decoder for one answer.
	NewDecoder() Decoder
}

// Info describes a [Dialect].
type Info struct {
	// Name is the short name in [endpoint.Profile.APIs], in [endpoint.About.API], and of the flag
	// --api. It is lower case.
	Name string
	// Title is the name for people, such as "Chat Completions".
	Title string
	// Op describes a request in errors, such as "create chat completion".
	Op string
	// Path is the path for requests, relative to the base URL, unless a [Message] has its own. A
	// base URL that already ends with Path also works.
	Path string
	// Features beyond answering a request that holds the whole history.
	Continue      bool // continue from the last response, by its id
	WebSocket     bool // use one socket for all responses
	Background    bool // run responses without a connection
	Stored        bool // retrieve, cancel and delete responses
	Conversations bool // keep the history at the endpoint
	Compaction    bool // have the endpoint compact a history
	TokenCounts   bool // count the tokens of an input
	OwnTools      bool // call tools of the API's own that the client runs, such as apply_patch
}

// Outgoing is a request to encode.
type Outgoing struct {
	// Request is the request in the form that Profile requires. The encoder may change the struct,
	// but not its lists, slices and maps, which are shared.
	Request *api.Request
	// Given is the caller's original request. It must not change.
	Given *api.Request
	// Stream is set if the answer is to be a stream of events.
	Stream bool
	// Profile is the kind of endpoint, with the dialect's settings in its field Dialects. Table has
	// the models.
	Profile *endpoint.Profile
	Table   *endpoint.Table
}

// Message is an encoded request.
type Message struct {
	// Path is the path for the request, relative to the base URL. Empty means [Info.Path].
	Path string
	// Body is JSON.
	Body item.Body
	// Losses lists what the dialect cannot express.
	Losses []Loss
	// Item returns the index in the input of the item that an error's parameter names, such as
	// "messages[2].content". The index is -1 if the parameter names several items or an unknown
	// one. Ok is false if the parameter is not about the input. A nil Item handles "input[2]".
	Item func(param string) (index int, ok bool)
}

// State is how far an answer has progressed.
type State int

const (
	// Unfinished means that the reply is not whole: an answer that ends now is truncated.
	Unfinished State = iota
	// Settled means that the reply is whole. The client waits a few seconds for further events,
	// such as the usage; the end of the stream ends the answer.
	Settled
	// Over means that nothing can follow.
	Over
)

// Decoder decodes one answer, either a stream or a single object. It is used by one goroutine. The
// events it yields must not share memory with data.
type Decoder interface {
	// Decode decodes one event of the stream. Name is the event's name and may be empty. Decode
	// yields the corresponding events of the Responses API, and stops when yield returns false. It
	// returns [ErrNotEvent] for data that does not belong to the dialect, such as the ping of a
	// proxy, and otherwise an [*item.SyntaxError] or an [*item.ShapeError]. If the server reports
	// an error, Decode yields an event of type [api.EventError] and returns nil.
	Decode(name, data []byte, yield func(api.Event) bool) error
	// State returns how far the answer has progressed.
	State() State
	// Finish is called at the end of the stream; done is set if the stream ended with [DONE].
	// Finish yields the events that end the response, if they were not yielded before, or returns
	// [ErrTruncated].
	Finish(done bool, yield func(api.Event) bool) error
	// Response decodes an answer that is a single object. It may keep text, which does not change.
	// The error is an [*item.SyntaxError] if text is not JSON.
	Response(text []byte) (*api.Response, error)
	// Losses returns the parts of the answer so far that a response cannot hold.
	Losses() []Loss
}

var (
	// ErrNotEvent is returned by [Decoder.Decode] for data that does not belong to the dialect and
	// can be left out.
	ErrNotEvent = errors.New("not an event of this API")
	// ErrTruncated is returned by [Decoder.Finish], possibly wrapped, for a stream that ended
	// before the answer did.
	ErrTruncated = errors.New("the stream ended before the answer did")
)

// LossKind is how important a [Loss] is.
type LossKind int

const (
	// LostMember is a setting or a member that the other API does not have.
	LostMember LossKind = iota
	// LostContent is a part of a message or of an output that the model or the reader should have
	// seen, such as an image.
	LostContent
	// LostLabel is an id, a status or an origin of an item. The model never sees it, and the log of
	// items keeps it.
	LostLabel
	// Moved is not a loss: the value is kept in another place or form.
	Moved
)

// Loss is something that the other API cannot express, or has in another place.
type Loss struct {
	// Path is the place in the original, such as "messages[2].name".
	Path string
	// What says what happened to it.
	What string
	Kind LossKind
	// Reply is set by a [Client] if the loss is in the endpoint's answer.
	Reply bool
}

// String returns the path and what happened.
func (l Loss) String() string { return l.Path + ": " + l.What }

var registry struct {
	sync.RWMutex
	list map[string]Dialect
}

// Register registers a dialect under the name in its [Info], so that programs can select it by name
// and files of profiles can name it. Call it in an init function. It panics if the name is empty or
// taken.
func Register(d Dialect) {
	registry.Lock()
	defer registry.Unlock()
	name := d.Info().Name
	if _, taken := registry.list[name]; taken || name == "" {
		panic(fmt.Sprintf("dialect: the name %q is empty or taken", name))
	}
	if registry.list == nil {
		registry.list = map[string]Dialect{}
	}
	registry.list[name] = d
	endpoint.RegisterAPI(name)
}

// Names returns the names of the registered dialects, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.list))
}

// ByName returns a registered dialect. The error for an unknown name lists the known names.
func ByName(name string) (Dialect, error) {
	registry.RLock()
	d, ok := registry.list[name]
	registry.RUnlock()
	if !ok {
		return nil, fmt.Errorf("unknown API %q; the APIs are %s", name, strings.Join(Names(), ", "))
	}
	return d, nil
}
