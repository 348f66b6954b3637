// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/url"
	"slices"
	"sync"
)

// DefaultBaseURL is the base URL that is used if none is configured.
const DefaultBaseURL = "https://api.openai.com/v1"

// Profile describes how one kind of endpoint differs from the API as specified. It is data:
// supporting a new kind of endpoint needs a new value, not new code, and a file can define it
// ([LoadProfiles]). The zero value of each field means the API as specified. Copies of a profile
// share its slices and maps; call [Profile.Clone] before changing one.
type Profile struct {
	// Name is the profile's name in configuration and messages.
	Name string `json:"name,omitzero"`

	// Hosts are the base URLs that the profile is for: a host ("api.openai.com"), all hosts in a
	// domain (".openai.azure.com"), either with a port ("localhost:8080"), any host at a port
	// (":11434"), and each of these with the first segments of a path
	// ("chatgpt.com/backend-api/codex"). Labels and segments must match whole; substrings do not
	// match.
	Hosts []string `json:"hosts,omitzero"`
	// Servers are values of the Server header, up to a slash, that identify this kind of endpoint
	// in an answer.
	Servers []string `json:"servers,omitzero"`

	// Fallback names a profile to try, once, when the endpoint refuses a request as malformed and
	// the other profile gives the request a different shape. If the endpoint accepts that request,
	// the client uses the fallback from then on.
	Fallback string `json:"fallback,omitzero"`

	// BasePath is the path that is added to a base URL without a path.
	BasePath string `json:"base_path,omitzero"`
	// ResponsesPath is the path for creating responses, relative to the base URL.
	ResponsesPath string `json:"responses_path,omitzero"`
	// APIs are the wire APIs of the endpoint, such as [APIResponses] and [APIChat], the preferred
	// one first.
	APIs []string `json:"apis,omitzero"`

	// KeyHeader is the header for the key. Empty means "Authorization: Bearer KEY".
	KeyHeader string `json:"key_header,omitzero"`
	// KeyHint says where to get a key, for error messages.
	KeyHint string `json:"key_hint,omitzero"`
	// AccountHeader is the header that names the key's account, for endpoints that require one. The
	// caller supplies the value.
	AccountHeader string `json:"account_header,omitzero"`
	// Header holds fixed headers of every request. SocketHeader holds additional headers for
	// opening a WebSocket. None of them may be secret.
	Header       map[string]string `json:"header,omitzero"`
	SocketHeader map[string]string `json:"socket_header,omitzero"`
	// IdempotencyHeader is the header that has the same value in every attempt of one request, so
	// that the server can recognize a repetition. Empty means that none is sent.
	IdempotencyHeader string `json:"idempotency_header,omitzero"`

	// Set are members of the body that always have the given JSON value, even if the request has
	// another value.
	Set map[string]string `json:"set,omitzero"`
	// Omit are members of the body that are left out: the endpoint rejects them, and the request
	// keeps its meaning without them.
	Omit []string `json:"omit,omitzero"`
	// Refuse are members that make the client refuse a request before sending it: leaving them out
	// would change the request's meaning.
	Refuse []string `json:"refuse,omitzero"`
	// MinOutputTokens is the smallest max_output_tokens that the endpoint's Responses API accepts;
	// other APIs have no minimum. MaxCacheKey is the length in bytes of the longest
	// prompt_cache_key, see [CacheKey]. 0 means no limit.
	MinOutputTokens int `json:"min_output_tokens,omitzero"`
	MaxCacheKey     int `json:"max_cache_key,omitzero"`
	// Efforts are the reasoning efforts that the endpoint accepts for any model; nil means those
	// that the model accepts. Another effort is replaced by the nearest one, see [NearestEffort].
	Efforts []string `json:"efforts,omitzero"`

	// Instructions says how system and developer messages are sent.
	Instructions Instructions `json:"instructions,omitzero" oneof:"leading"`
	// NeedsInstructions is set if the endpoint rejects a request without instructions.
	NeedsInstructions bool `json:"needs_instructions,omitzero"`
	// Roles maps the role of a message in the history to the role that is sent.
	Roles map[string]string `json:"roles,omitzero"`
	// TypedMessages is set if the endpoint does not understand a message without "type".
	TypedMessages bool `json:"typed_messages,omitzero"`
	// ShortMessages is set if the endpoint requires all members of an output message in an
	// assistant message. A message without an id is then sent as role and text only.
	ShortMessages bool `json:"short_messages,omitzero"`
	// Alternate is set if histories go through chat templates. Several templates reject adjacent
	// messages with the same role, system messages after others, or an assistant message at the
	// beginning or the end. So adjacent messages are joined, late system messages are sent as user
	// messages that say so, and short remarks are inserted where a role is missing. If a new
	// message is joined to the last message of the previous request, the new request does not begin
	// with the bytes of the previous one.
	Alternate bool `json:"alternate,omitzero"`
	// OutputIDs is set if tool outputs need an id of their own. An output without one gets an id
	// derived from its call's id.
	OutputIDs bool `json:"output_ids,omitzero"`

	// Items are the types of input items that the endpoint accepts; nil means all. OtherItems says
	// what happens to items of other types. A call and its output are always treated alike.
	Items      []string `json:"items,omitzero"`
	OtherItems Change   `json:"other_items,omitzero" oneof:"drop text refuse"`
	// OmitInItems are members that are left out of every input item.
	OmitInItems []string `json:"omit_in_items,omitzero"`
	// OmitOutputOnly is set if the endpoint rejects an output item as input because of the members
	// that [OutputOnly] lists. These members are then left out.
	OmitOutputOnly bool `json:"omit_output_only,omitzero"`
	// Reasoning says which reasoning items are sent back.
	Reasoning Reasoning `json:"reasoning,omitzero" oneof:"text none"`
	// Parts are the types of content parts that the endpoint accepts; nil means all. Other parts
	// are replaced by text that describes them.
	Parts []string `json:"parts,omitzero"`
	// Images and Files say in which form the endpoint accepts images and files.
	Images Source `json:"images,omitzero" oneof:"data url none"`
	Files  Source `json:"files,omitzero" oneof:"data url none"`
	// Outputs is the form of tool outputs.
	Outputs Outputs `json:"outputs,omitzero" oneof:"string"`
	// StrictNames is set if the endpoint rejects an earlier call whose name does not match
	// ^[A-Za-z0-9_-]{1,64}$. Such a call and its output are then sent as text.
	StrictNames bool `json:"strict_names,omitzero"`
	// ObjectArguments is set if the endpoint parses the arguments of earlier calls and requires a
	// JSON object. A call with other arguments and its output are then sent as text.
	ObjectArguments bool `json:"object_arguments,omitzero"`

	// Tools are the types of tools that the endpoint accepts; nil means all. OtherTools says what
	// happens to tools of other types: [Drop] or [Refuse].
	Tools      []string `json:"tools,omitzero"`
	OtherTools Change   `json:"other_tools,omitzero" oneof:"drop refuse"`

	// Windows are the paths that report the context windows of models, the best one first. They are
	// relative to the base URL, or to the server's root if they begin with "//". The client asks
	// for context windows only at these paths.
	Windows []string `json:"windows,omitzero"`

	// Chat holds the settings for Chat Completions.
	Chat Chat `json:",embed"`
	// Dialects holds the settings for wire APIs that this package does not know, by the name of the
	// API and the name of the setting. The package of the API documents its settings.
	Dialects map[string]map[string]string `json:"dialects,omitzero"`

	// The fields below say whether the endpoint has these parts of the API.
	//
	// Continuing from the previous response over the same WebSocket is part of WebSocket and does
	// not need PreviousResponse.
	PreviousResponse Support `json:"previous_response,omitzero" oneof:"yes no"` // continuing from a stored response by its id
	Conversations    Support `json:"conversations,omitzero" oneof:"yes no"`     // the conversations API
	Background       Support `json:"background,omitzero" oneof:"yes no"`        // responses that run without a connection
	Stored           Support `json:"stored,omitzero" oneof:"yes no"`            // retrieve, cancel, delete and input items
	WebSocket        Support `json:"web_socket,omitzero" oneof:"yes no"`        // responses over a WebSocket
	Compact          Support `json:"compact,omitzero" oneof:"yes no"`           // compaction by the server
	InputTokens      Support `json:"input_tokens,omitzero" oneof:"yes no"`      // counting the tokens of an input
}

// Chat describes an endpoint's Chat Completions API. In a file of profiles, its members are members
// of the profile.
type Chat struct {
	// Path is the path for creating chat completions, relative to the base URL.
	Path string `json:"chat_path,omitzero"`
	// MaxTokens is the member that limits the output of a chat completion. Empty means
	// max_completion_tokens.
	MaxTokens string `json:"chat_max_tokens,omitzero"`
	// Reasoning is the member of a chat message that carries earlier reasoning back to the
	// endpoint; package completions defines the names. Empty means that reasoning is not sent.
	Reasoning string `json:"chat_reasoning,omitzero"`
	// Usage says whether a streamed chat completion may request its usage with stream_options.
	Usage Support `json:"chat_usage,omitzero" oneof:"yes no"`
}

// The values of [Profile.APIs] that this package knows. Other wire APIs register their names with
// [RegisterAPI].
const (
	APIResponses = "responses"
	APIChat      = "chat"
)

var apiNames struct {
	sync.RWMutex
	more []string
}

// RegisterAPI adds the name of a wire API to those that files of profiles may use. Package dialect
// calls it for each registered dialect. It is safe for concurrent use.
func RegisterAPI(name string) {
	apiNames.Lock()
	defer apiNames.Unlock()
	apiNames.more = append(apiNames.more, name)
}

// apis returns the names that [Profile.APIs] may hold.
func apis() []string {
	apiNames.RLock()
	defer apiNames.RUnlock()
	names := []string{APIResponses, APIChat}
	for _, name := range apiNames.more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Support says whether an endpoint or a model has a feature. The zero value means not known:
// callers then try the feature if trying is harmless, and otherwise do without it.
type Support string

// The values of [Support].
const (
	Unknown Support = ""
	Yes     Support = "yes"
	No      Support = "no"

	// WithoutReasoning applies to sampling: supported only with the effort "none".
	WithoutReasoning Support = "without_reasoning"
)

// Change says what happens to something that an endpoint does not accept.
type Change string

// The values of [Change].
const (
	Keep   Change = ""       // sent unchanged
	Drop   Change = "drop"   // left out
	ToText Change = "text"   // replaced by text with the same content
	Refuse Change = "refuse" // the request is refused before it is sent
)

// Instructions says how system and developer messages are sent.
type Instructions string

// The values of [Instructions].
const (
	InPlace Instructions = "" // as input items, at their place in the history
	// Leading means that messages before all other items are appended to the member "instructions";
	// later messages stay where they are.
	Leading Instructions = "leading"
)

// Outputs is the form of tool outputs.
type Outputs string

// The values of [Outputs].
const (
	OutputParts Outputs = "" // text or parts, unchanged
	// OutputString means text only. The images and files of adjacent outputs follow them in one
	// user message.
	OutputString Outputs = "string"
)

// Reasoning says which reasoning items are sent back.
type Reasoning string

// The values of [Reasoning].
const (
	ReasoningAll Reasoning = "" // all, unchanged
	// ReasoningText means only items with text in "content", without their encrypted_content.
	ReasoningText Reasoning = "text"
	ReasoningNone Reasoning = "none"
)

// Source says in which form an image or a file is accepted.
type Source string

// The values of [Source].
const (
	AnySource  Source = ""     // by URL, inline, or by file id
	DataOnly   Source = "data" // inline, as a data URI
	URLOrData  Source = "url"  // not by file id, because the endpoint does not store files
	NoneOfThem Source = "none"
)

// Careful is the profile of an unknown endpoint, such as a local server or a gateway. It follows
// the API as specified and uses nothing optional. If the endpoint rejects such a request, the
// client falls back to a form that every known server accepts.
var Careful = byName("careful")

// Detect returns the built-in profile for a base URL. It compares host, port and path segments. For
// an unknown endpoint it returns [Careful].
func Detect(base *url.URL) Profile { return (*Table)(nil).Detect(base) }

// DetectServer returns the built-in profile for the Server header of an answer. Only servers that
// their address does not identify have such a profile.
func DetectServer(server string) (Profile, bool) { return (*Table)(nil).DetectServer(server) }

// ByName returns the built-in profile with the given name. The error for an unknown name lists the
// known names.
func ByName(name string) (Profile, error) { return (*Table)(nil).ByName(name) }
