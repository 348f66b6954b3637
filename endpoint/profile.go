// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import "net/url"

// DefaultBaseURL is where requests go when nothing else is said.
const DefaultBaseURL = "https://api.openai.com/v1"

// Profile says how one kind of endpoint differs from the API as it is
// specified. It is data: a new kind of endpoint is a new value, not new code,
// and a file can hold it ([LoadProfiles]). The zero value of each field is the
// API as specified. Slices and maps of a profile are shared by all its copies:
// [Profile.Clone] before changing one.
type Profile struct {
	// Name is what people call it.
	Name string `json:"name,omitzero"`

	// Hosts are the base URLs the profile is for: a host ("api.openai.com"),
	// all hosts below one (".openai.azure.com"), either with a port
	// ("localhost:8080"), any host at a port (":11434"), and each with the
	// first segments of a path ("chatgpt.com/backend-api/codex"). Labels and
	// segments are compared whole, never as substrings.
	Hosts []string `json:"hosts,omitzero"`
	// Servers are values of the Server header, up to a slash, that tell this
	// kind from its answer.
	Servers []string `json:"servers,omitzero"`

	// Fallback names the profile that is tried, once, when the endpoint refuses a
	// request as malformed, and the other profile would have sent it in another
	// shape. If that is taken, the endpoint is asked so from then on.
	Fallback string `json:"fallback,omitzero"`

	// BasePath is the path of a base URL that is given as a bare host.
	BasePath string `json:"base_path,omitzero"`
	// ResponsesPath and ChatPath are where responses and chat completions are
	// created, below the base URL.
	ResponsesPath string `json:"responses_path,omitzero"`
	ChatPath      string `json:"chat_path,omitzero"`
	// APIs are the ones it speaks, [APIResponses] and [APIChat], the one to use
	// first.
	APIs []string `json:"apis,omitzero"`

	// KeyHeader carries the key. Empty means "Authorization: Bearer KEY".
	KeyHeader string `json:"key_header,omitzero"`
	// KeyHint says where a key comes from, for error messages.
	KeyHint string `json:"key_hint,omitzero"`
	// AccountHeader names the account that the key is for, where the endpoint
	// wants to be told. The value is the caller's.
	AccountHeader string `json:"account_header,omitzero"`
	// Header are fixed headers that every request needs, none of them secret;
	// SocketHeader those of opening a WebSocket, besides.
	Header       map[string]string `json:"header,omitzero"`
	SocketHeader map[string]string `json:"socket_header,omitzero"`
	// IdempotencyHeader carries the same key on every attempt of one request,
	// so that the server can tell a repetition. Empty means none is sent.
	IdempotencyHeader string `json:"idempotency_header,omitzero"`

	// Set are members of the body that have the given JSON value, whatever the
	// request says.
	Set map[string]string `json:"set,omitzero"`
	// Omit are members of the body that are left out, since the endpoint refuses
	// them and can do without.
	Omit []string `json:"omit,omitzero"`
	// Refuse are members with which a request is refused before it is sent,
	// since leaving them out would change what it asks for.
	Refuse []string `json:"refuse,omitzero"`
	// MinOutputTokens is the least max_output_tokens it takes, MaxCacheKey the
	// longest prompt_cache_key in bytes; 0 means no such limit. See [CacheKey].
	MinOutputTokens int `json:"min_output_tokens,omitzero"`
	MaxCacheKey     int `json:"max_cache_key,omitzero"`
	// Efforts are the reasoning efforts it takes for any model; nil means what
	// the model takes. A value outside is sent as the nearest one, see
	// [NearestEffort].
	Efforts []string `json:"efforts,omitzero"`

	// Instructions is how system and developer messages travel.
	Instructions Instructions `json:"instructions,omitzero" oneof:"leading"`
	// NeedsInstructions is set where a request without instructions is refused.
	NeedsInstructions bool `json:"needs_instructions,omitzero"`
	// Roles maps the role of a message in the history to the one that is sent.
	Roles map[string]string `json:"roles,omitzero"`
	// TypedMessages is set where a message without "type" is not understood.
	TypedMessages bool `json:"typed_messages,omitzero"`
	// ShortMessages is set where an assistant message needs all members of an
	// output message. One that lacks its id is sent as role and text instead.
	ShortMessages bool `json:"short_messages,omitzero"`
	// Alternate is set where histories go through chat templates; several refuse
	// neighbouring messages of a role, system messages after others, or a message
	// of the assistant at either end. Neighbours are joined, late system messages
	// become the user's and say so, and short remarks stand where a role is
	// missing. When a message joins the one that the last request ended with, the
	// request does not begin with the bytes of that one.
	Alternate bool `json:"alternate,omitzero"`
	// OutputIDs is set where outputs of tools need an id of their own. One that
	// lacks it gets one made of its call's id.
	OutputIDs bool `json:"output_ids,omitzero"`

	// Items are the types of input items it takes; nil means all. OtherItems is
	// what becomes of the others; a call and its output fare alike.
	Items      []string `json:"items,omitzero"`
	OtherItems Change   `json:"other_items,omitzero" oneof:"drop text refuse"`
	// OmitInItems are members left out of every input item.
	OmitInItems []string `json:"omit_in_items,omitzero"`
	// OmitOutputOnly is set where an item of a reply is refused as input for the
	// members that [OutputOnly] names. They are left out.
	OmitOutputOnly bool `json:"omit_output_only,omitzero"`
	// Reasoning is which reasoning items are sent back.
	Reasoning Reasoning `json:"reasoning,omitzero" oneof:"text none"`
	// Parts are the types of content parts it takes; nil means all. The others
	// become text that says what stood there.
	Parts []string `json:"parts,omitzero"`
	// Images and Files are how it takes them in a part.
	Images Source `json:"images,omitzero" oneof:"data url none"`
	Files  Source `json:"files,omitzero" oneof:"data url none"`
	// Outputs is the shape of tool outputs.
	Outputs Outputs `json:"outputs,omitzero" oneof:"string"`
	// StrictNames is set where a replayed call whose name is not of
	// ^[A-Za-z0-9_-]{1,64}$ is refused: call and output together become text.
	StrictNames bool `json:"strict_names,omitzero"`
	// ObjectArguments is set where replayed arguments are parsed and must be a
	// JSON object: call and output together become text if they are not.
	ObjectArguments bool `json:"object_arguments,omitzero"`

	// Tools are the types of tools it takes; nil means all. OtherTools is what
	// becomes of the others: [Drop] or [Refuse].
	Tools      []string `json:"tools,omitzero"`
	OtherTools Change   `json:"other_tools,omitzero" oneof:"drop refuse"`

	// Windows are the paths that tell the context windows of models, the best one
	// first: below the base URL, or below the server's root if they begin with "//".
	// Nothing else is ever asked for one.
	Windows []string `json:"windows,omitzero"`

	// ChatMaxTokens is the member that limits the output of a chat completion.
	// Empty means max_completion_tokens.
	ChatMaxTokens string `json:"chat_max_tokens,omitzero"`
	// ChatReasoning is the member of a chat message in which earlier reasoning is
	// sent back, as package completions knows it. Empty means none is.
	ChatReasoning string `json:"chat_reasoning,omitzero"`
	// ChatUsage says whether a streamed chat completion may be asked for its
	// usage by stream_options.
	ChatUsage Support `json:"chat_usage,omitzero" oneof:"yes no"`

	// Whether the endpoint has these parts of the API.
	//
	// Going on over the same WebSocket from the response before is part of
	// WebSocket and needs no PreviousResponse.
	PreviousResponse Support `json:"previous_response,omitzero" oneof:"yes no"` // going on from a stored response by its id
	Conversations    Support `json:"conversations,omitzero" oneof:"yes no"`     // the conversations API
	Background       Support `json:"background,omitzero" oneof:"yes no"`        // responses that are made without a connection
	Stored           Support `json:"stored,omitzero" oneof:"yes no"`            // retrieve, cancel, delete and input items
	WebSocket        Support `json:"web_socket,omitzero" oneof:"yes no"`        // responses over a WebSocket
	Compact          Support `json:"compact,omitzero" oneof:"yes no"`           // compaction by the server
	InputTokens      Support `json:"input_tokens,omitzero" oneof:"yes no"`      // counting the tokens of an input
}

// The values of [Profile.APIs].
const (
	APIResponses = "responses"
	APIChat      = "chat"
)

// Support says whether something is there. The zero value is not known, which
// callers take as leave to try where trying is harmless, and as no where it is
// not.
type Support string

// The values of [Support].
const (
	Unknown Support = ""
	Yes     Support = "yes"
	No      Support = "no"

	// WithoutReasoning is for sampling: only when the effort is "none".
	WithoutReasoning Support = "without_reasoning"
)

// Change is what becomes of something that an endpoint does not take.
type Change string

// The values of [Change].
const (
	Keep   Change = ""       // sent all the same
	Drop   Change = "drop"   // left out
	ToText Change = "text"   // becomes text that says the same
	Refuse Change = "refuse" // the request is refused before it is sent
)

// Instructions is how system and developer messages travel.
type Instructions string

// The values of [Instructions].
const (
	InPlace Instructions = "" // as input items where they stand
	// Leading means that those before all other items become the member
	// "instructions", after what is there already; later ones stay in place.
	Leading Instructions = "leading"
)

// Outputs is the shape of tool outputs.
type Outputs string

// The values of [Outputs].
const (
	OutputParts Outputs = "" // text or parts, as they are
	// OutputString means text only. Images and files of a batch of outputs
	// follow it as one user message.
	OutputString Outputs = "string"
)

// Reasoning is which reasoning items are sent back.
type Reasoning string

// The values of [Reasoning].
const (
	ReasoningAll Reasoning = "" // as they came
	// ReasoningText means only those with their text in "content", and these
	// without encrypted_content.
	ReasoningText Reasoning = "text"
	ReasoningNone Reasoning = "none"
)

// Source is how an image or a file is taken.
type Source string

// The values of [Source].
const (
	AnySource  Source = ""     // by URL, as data, by file id
	DataOnly   Source = "data" // inline, as a data URI
	URLOrData  Source = "url"  // not by file id, for nothing is stored
	NoneOfThem Source = "none"
)

// Careful is the profile of an unknown endpoint, such as a local server or a
// gateway: the API as specified and nothing that is optional, and, should that
// be refused, the shapes that every server was seen to take.
var Careful = byName("careful")

// Detect returns the profile for a base URL out of the built-in [Table], by its
// host, port and the segments of its path. What is not known is [Careful].
func Detect(base *url.URL) Profile { return (*Table)(nil).Detect(base) }

// DetectServer returns the profile of the kind of server that calls itself so
// in the Server header of an answer. It knows those servers alone that cannot
// be told by their address.
func DetectServer(server string) (Profile, bool) { return (*Table)(nil).DetectServer(server) }

// ByName returns the built-in profile of a name. The error lists the names.
func ByName(name string) (Profile, error) { return (*Table)(nil).ByName(name) }
