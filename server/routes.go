// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/traceparent"
)

// A Feature is an optional part of the API of a [Server].
type Feature string

// The features.
const (
	Models        Feature = "models"
	Responses     Feature = "responses"
	Stored        Feature = "stored"     // and previous_response_id
	Background    Feature = "background" // and the streams of stored responses
	Conversations Feature = "conversations"
	InputTokens   Feature = "input_tokens"
	Compact       Feature = "compact"
	WebSocket     Feature = "websocket"
	Chat          Feature = "chat"
	Sessions      Feature = "sessions" // the routes for front ends
	Files         Feature = "files"
)

// has reports whether a feature is enabled and the backend supports it.
func (s *Server) has(f Feature) bool {
	ok := true
	switch f {
	case Models:
		_, ok = s.Backend.(ModelLister)
	case InputTokens:
		_, ok = s.Backend.(TokenCounter)
	case Compact:
		_, ok = s.Backend.(Compactor)
	case Sessions:
		ok = s.Sessions != nil
	case Files:
		ok = s.filer() != nil
	}
	return ok && !slices.Contains(s.Without, f)
}

// route is one kind of request. In its path, {} stands for an id.
type route struct {
	method, path string
	feature      Feature
	serve        func(*Server, *call) *Error
}

// routes are ordered so that no path hides another.
var routes = []route{
	{http.MethodGet, "models", Models, (*Server).models},
	{http.MethodGet, "models/{}", Models, (*Server).model},
	{http.MethodPost, "responses", Responses, (*Server).create},
	{http.MethodPost, "responses/input_tokens", InputTokens, (*Server).countTokens},
	{http.MethodPost, "responses/compact", Compact, (*Server).compact},
	{http.MethodGet, "responses/{}", Stored, (*Server).retrieve},
	{http.MethodDelete, "responses/{}", Stored, (*Server).remove},
	{http.MethodPost, "responses/{}/cancel", Stored, (*Server).cancel},
	{http.MethodGet, "responses/{}/input_items", Stored, (*Server).inputItems},
	{http.MethodPost, "conversations", Conversations, (*Server).createConversation},
	{http.MethodGet, "conversations/{}", Conversations, (*Server).retrieveConversation},
	{http.MethodPost, "conversations/{}", Conversations, (*Server).updateConversation},
	{http.MethodDelete, "conversations/{}", Conversations, (*Server).deleteConversation},
	{http.MethodGet, "conversations/{}/items", Conversations, (*Server).conversationItems},
	{http.MethodPost, "conversations/{}/items", Conversations, (*Server).addConversationItems},
	{http.MethodGet, "conversations/{}/items/{}", Conversations, (*Server).conversationItem},
	{http.MethodDelete, "conversations/{}/items/{}", Conversations, (*Server).deleteConversationItem},
	{http.MethodPost, "chat/completions", Chat, (*Server).chat},
	{http.MethodPost, "files", Files, (*Server).addFile},
	{http.MethodGet, "files", Files, (*Server).files},
	{http.MethodGet, "files/{}", Files, (*Server).file},
	{http.MethodGet, "files/{}/content", Files, (*Server).fileContent},
	{http.MethodDelete, "files/{}", Files, (*Server).deleteFile},
	{http.MethodGet, front, Sessions, (*Server).sessions},
	{http.MethodGet, front + "/{}", Sessions, (*Server).sessions},
	{http.MethodGet, front + "/{}/events", Sessions, (*Server).sessions},
	{http.MethodPost, front + "/{}/input", Sessions, (*Server).sessions},
	{http.MethodPost, front + "/{}/approvals", Sessions, (*Server).sessions},
	{http.MethodPost, front + "/{}/stop", Sessions, (*Server).sessions},
}

// front is the path of the routes for front ends, which are not part of the API.
const front = "antiphon/v1/sessions"

// sessions passes a request on, with a path that begins at the route.
func (s *Server) sessions(c *call) *Error {
	r := c.r.Clone(c.r.Context())
	_, rest, _ := strings.Cut(r.URL.EscapedPath(), "/"+front)
	r.URL.RawPath = "/" + front + rest
	_, rest, _ = strings.Cut(r.URL.Path, "/"+front)
	r.URL.Path = "/" + front + rest
	s.Sessions.ServeHTTP(c.w, r)
	return nil
}

// socketRoute has the same path as the route that creates responses.
var socketRoute = route{http.MethodGet, "responses", WebSocket, (*Server).socket}

// call is a request that is being served.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	ids []string // from the path

	read  bool // the body was read already
	given []byte
}

// ServeHTTP implements [http.Handler]. It ignores the part of a path before the
// names of the API, such as /v1. It refuses requests from pages of other origins,
// except GET, whose answers a browser does not show to such pages. The traceparent of a
// request is the parent of the spans of package tracing, unless the context of the request
// has a span already.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.noStore(); err != nil {
		s.failure(err).answer(w)
		return
	}
	s.lookForLeft()
	if ctx := traceparent.With(r.Context(), r.Header); ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	r = AsGet(r)
	c := &call{w: w, r: r}
	found, wrong := s.find(c)
	if wrong == nil {
		wrong = sameOrigin(r)
	}
	if wrong == nil {
		wrong = isPlain(r)
	}
	if wrong == nil {
		wrong = s.serve(found, c)
	}
	if wrong != nil {
		wrong.answer(w)
	}
}

// AsGet returns a HEAD as the GET whose head it asks for; the HTTP server leaves the body out. Others are as they
// were, and so is a HEAD about a stream, which would not end. A [Server] does this itself: it is for handlers around one.
func AsGet(r *http.Request) *http.Request {
	if r == nil || r.URL == nil || r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" || r.URL.Query().Has("stream") || strings.HasSuffix(r.URL.Path, "/events") {
		return r
	}
	get := new(http.Request)
	*get = *r
	get.Method = http.MethodGet
	return get
}

// find returns the route of a request, and records the ids in its path.
func (s *Server) find(c *call) (*route, *Error) {
	at := segments(c.r.URL)
	if isUpgrade(c.r) && s.has(WebSocket) && len(at) == 1 && at[0] == socketRoute.path {
		return &socketRoute, nil
	}
	var allowed []string
	for i := range routes {
		ids, ok := match(routes[i].path, at)
		switch {
		case !ok || !s.has(routes[i].feature):
		case routes[i].method == c.r.Method:
			c.ids = ids
			return &routes[i], nil
		default:
			allowed = append(allowed, routes[i].method)
		}
	}
	if allowed == nil {
		return nil, &Error{Status: http.StatusNotFound, Type: invalidRequest, Code: "unknown_url",
			Message: fmt.Sprintf("Unknown request URL: %s %s. This server serves %s.", c.r.Method, cmp.Or(c.r.URL.Path, "/"), s.served(at))}
	}
	c.w.Header().Set("Allow", strings.Join(allowed, ", "))
	return nil, &Error{Status: http.StatusMethodNotAllowed, Type: invalidRequest, Code: "method_not_supported",
		Message: fmt.Sprintf("Not allowed to %s on %s, only to %s.", c.r.Method, c.r.URL.Path, strings.Join(allowed, " or "))}
}

// Pattern returns the route of a request, with {id} for each id, such as "GET
// /v1/responses/{id}". It is "" if no server has the route. With it, a handler around
// a server can name requests, for example in metrics, without repeating what a client
// made up.
func Pattern(r *http.Request) string {
	at := segments(r.URL)
	for i := range routes {
		if _, ok := match(routes[i].path, at); ok && routes[i].method == r.Method {
			return routes[i].name()
		}
	}
	if isUpgrade(r) && len(at) == 1 && at[0] == socketRoute.path {
		return socketRoute.name()
	}
	return ""
}

func (r *route) name() string {
	if strings.HasPrefix(r.path, front) {
		return r.method + " /" + strings.ReplaceAll(r.path, "{}", "{id}")
	}
	return r.method + " /v1/" + strings.ReplaceAll(r.path, "{}", "{id}")
}

// segments returns the part of a path that belongs to the API. The name of a model may have
// slashes, which some clients escape.
func segments(u *url.URL) []string {
	list := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i := range list {
		if name, err := url.PathUnescape(list[i]); err == nil {
			list[i] = name
		}
	}
	for i, name := range list {
		switch name {
		case "models":
			if len(list) > i+2 {
				return []string{name, strings.Join(list[i+1:], "/")}
			}
			return list[i:]
		case "responses", "conversations", "chat", "files":
			return list[i:]
		case "antiphon":
			if strings.HasPrefix(strings.Join(list[i:], "/")+"/", front+"/") {
				return list[i:]
			}
		}
	}
	return nil
}

func match(pattern string, at []string) (ids []string, ok bool) {
	if strings.Count(pattern, "/")+1 != len(at) {
		return nil, false
	}
	i := 0
	for name := range strings.SplitSeq(pattern, "/") {
		if name == "{}" && at[i] != "" && (at[0] == "models" || !strings.Contains(at[i], "/")) {
			ids = append(ids, at[i])
		} else if name != at[i] {
			return nil, false
		}
		i++
	}
	return ids, true
}

// served lists the routes, for the error about an unknown route.
func (s *Server) served(at []string) string {
	var near, all []string
	more := ""
	for _, r := range routes {
		if !s.has(r.feature) {
			continue
		}
		kind, _, _ := strings.Cut(r.path, "/")
		if len(at) > 0 && at[0] == kind {
			near = append(near, r.name())
		}
		if r.path == kind || kind == "chat" {
			all = append(all, r.name())
		} else {
			more = ", and more below these"
		}
	}
	if len(near) > 0 {
		return strings.Join(near, ", ")
	}
	return strings.Join(all, ", ") + more
}

// body reads the request's body.
func (s *Server) body(c *call) ([]byte, *Error) {
	if c.read {
		return c.given, nil
	}
	if wrong := isJSON(c.r); wrong != nil {
		return nil, wrong
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, s.limit()))
	if err != nil {
		return nil, s.unread(err)
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return nil, Invalid("", "", "The body of your request begins with a byte order mark, which JSON does not have: send it without the bytes EF BB BF.")
	}
	if len(body) == 0 && !emptyOK(c.r) {
		return nil, Invalid("", "", "The body of your request is empty: send a JSON object.")
	}
	return body, nil
}

// emptyOK reports whether a request needs no body: that for a new conversation does not.
func emptyOK(r *http.Request) bool {
	at := segments(r.URL)
	return len(at) == 1 && at[0] == "conversations"
}

// unread returns the error for a body that could not be read.
func (s *Server) unread(err error) *Error {
	var large *http.MaxBytesError
	var known *Error
	switch {
	case errors.As(err, &known): // of a handler around the server
		return known.complete()
	case errors.As(err, &large):
		return &Error{Status: http.StatusRequestEntityTooLarge, Type: invalidRequest, Code: "request_too_large",
			Message: fmt.Sprintf("The request is larger than %d bytes.", s.limit())}
	}
	return Invalid("", "", "We could not read the body of your request: %v.", err)
}

func (s *Server) limit() int64 {
	if s.MaxBody == 0 {
		return defaultMaxBody
	}
	return s.MaxBody
}

// object is a value that can be sent as a body.
type object interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// encoded is an object that is already JSON.
type encoded string

func (e encoded) AppendJSON(dst []byte) ([]byte, error) { return append(dst, e...), nil }

// send sends an object.
func (c *call) send(v object) *Error {
	b, err := v.AppendJSON(nil)
	if err != nil {
		return &Error{Status: http.StatusInternalServerError, Type: serverError, Code: serverError, Message: err.Error()}
	}
	c.sendJSON(b)
	return nil
}

func (c *call) sendJSON(b []byte) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = c.w.Write(b) // a client that is gone is not an error
}
