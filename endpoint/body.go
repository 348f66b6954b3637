// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// FromResponse returns the error for a failed HTTP answer. The body is the part of it that was
// read. FromResponse understands every shape of error body that servers were seen to send, and web
// pages too. If the answer holds its request, the error names the request's URL.
func FromResponse(resp *http.Response, body []byte) *Error {
	if resp == nil {
		return &Error{Class: Protocol, Message: "there is no HTTP answer"}
	}
	e := &Error{
		Status:     resp.StatusCode,
		RequestID:  requestID(resp.Header),
		RetryAfter: retryAfter(resp.Header),
		Limits:     limitsOf(resp.Header),
		final:      resp.Header.Get("X-Should-Retry") == "false",
		again:      resp.Header.Get("X-Should-Retry") == "true" && resp.StatusCode >= 400,
	}
	if resp.Request != nil {
		e.Method, e.URL = resp.Request.Method, ShowURL(resp.Request.URL)
	}
	understood := e.readBody(received(body))
	e.Class = classify(e.Status, e.Code, e.Type, e.kind)
	if e.Class == NotFound && e.Param == "previous_response_id" {
		e.Class = PreviousResponse // some servers omit the code
	}
	if !understood {
		e.notThisAPI(body)
	}
	if e.Hint == "" {
		e.Hint = e.hint(resp)
	}
	return e
}

// FromAPI returns the error for a failed response or an error event. The HTTP answer began with
// success, so the error has no status.
func FromAPI(code, typ, message, param string) *Error {
	e := &Error{Code: code, Type: typ, Message: message, Param: param}
	e.Class = classify(0, code, typ)
	e.Hint = hints[e.Class]
	return e
}

// FromEvent returns the error that an event of a stream reports, or nil if the event is not an
// error. It reads an error event of SSE, with its members at the top or in "error"; an error event
// of a WebSocket, which also holds a status and headers; and response.failed. Any other object with
// an "error" that is not null is read in the same way, and so is an object without a type that
// holds a "detail", or a "message" and a "code".
func FromEvent(data []byte) *Error {
	body := received(data)
	env, ok := parseEnvelope(body)
	if !ok {
		return nil
	}
	failed := text(env.Type) == "response.failed"
	if !failed && text(env.Type) != "error" && !given(env.Error) && !env.untyped() {
		return nil
	}
	e := &Error{Status: statusOf(env), RetryAfter: retryAfter(env.header())}
	e.RequestID, e.Limits = requestID(env.header()), limitsOf(env.header())
	if failed {
		body = env.Response
	}
	if e.readBody(body); e.Type == "error" {
		e.Type = "" // the type of the event, not of the error
	}
	e.Class = classify(e.Status, e.Code, e.Type, e.kind)
	e.Hint = hints[e.Class]
	return e
}

// envelope is the union of the error bodies in use:
// {"error":{…}} of the API, {"error":"…","code":"…"}, {"detail":"…"} and
// {"detail":[{"msg":"…"}]} of web frameworks, {"message":"…","code":400} of
// some local servers, and problem details (RFC 9457).
type envelope struct {
	Error, Detail, Message, Msg, Title, ErrorDescription string

	Code, Type, Param, Object string

	// ErrorType is OpenRouter's more exact code. It is at the top or in Metadata.
	ErrorType, Metadata string
	// ResetsIn is Codex's number of seconds until a plan's limit resets.
	ResetsIn string
	// Status, StatusCode and Headers appear in events of a WebSocket, Response in response.failed.
	Status, StatusCode, Headers, Response string
}

// untyped reports whether an object without a type is an error, judged by its members.
func (env *envelope) untyped() bool {
	return !given(env.Type) && (given(env.Detail) || given(env.Message) && given(env.Code)) || text(env.Object) == "error"
}

func (env *envelope) set(name, v string) {
	switch name {
	case "object":
		env.Object = v
	case "error":
		env.Error = v
	case "detail":
		env.Detail = v
	case "message":
		env.Message = v
	case "msg":
		env.Msg = v
	case "title":
		env.Title = v
	case "error_description":
		env.ErrorDescription = v
	case "code":
		env.Code = v
	case "type":
		env.Type = v
	case "param":
		env.Param = v
	case "error_type":
		env.ErrorType = v
	case "metadata":
		env.Metadata = v
	case "resets_in_seconds":
		env.ResetsIn = v
	case "status":
		env.Status = v
	case "status_code":
		env.StatusCode = v
	case "headers":
		env.Headers = v
	case "response":
		env.Response = v
	}
}

// header returns the headers inside an event of a WebSocket.
func (env *envelope) header() http.Header {
	h := http.Header{}
	_ = members(env.Headers, func(name, v string) {
		if s := text(v); s != "" {
			h.Set(name, s)
		}
	})
	return h
}

func statusOf(env envelope) int {
	for _, v := range []string{env.StatusCode, env.Status} {
		if n, err := strconv.Atoi(text(v)); err == nil && n >= 100 && n <= 599 {
			return n
		}
	}
	return 0
}

// readBody fills e from the body and reports whether the body had a known shape.
func (e *Error) readBody(body string) bool {
	env, ok := parseEnvelope(body)
	if !ok {
		return false
	}
	e.kind = text(env.ErrorType)
	if inner, nested := parseEnvelope(env.Error); nested {
		inner.Code = cmpValue(inner.Code, env.Code)
		env = inner
		// Only an error's metadata counts. A response's metadata belongs to the caller.
		meta, _ := parseEnvelope(env.Metadata)
		e.kind = cmp.Or(e.kind, text(env.ErrorType), text(meta.ErrorType))
	}
	e.Code, e.Type, e.Param = text(env.Code), text(env.Type), text(env.Param)
	if e.RetryAfter == 0 {
		e.RetryAfter, _ = number(text(env.ResetsIn), time.Second)
	}
	for _, v := range []string{env.Message, env.Error, env.Detail, env.Msg, env.ErrorDescription, env.Title} {
		if e.Message = text(v); e.Message != "" {
			break
		}
	}
	return e.Message != "" || e.Code != "" || e.Type != ""
}

// given reports whether a member is present and not null.
func given(v string) bool { return v != "" && v[0] != 'n' }

func parseEnvelope(v string) (envelope, bool) {
	var env envelope
	v = strings.TrimSpace(v)
	if len(v) > 0 && v[0] == '[' { // some gateways wrap the error in a list
		list, err := elements(v)
		if err != nil || len(list) == 0 {
			return env, false
		}
		v = list[0]
	}
	return env, members(v, env.set) == nil
}

func cmpValue(a, b string) string {
	if text(a) != "" {
		return a
	}
	return b
}

// text returns a JSON value as a message shows it: a string's text, a number's digits, or the
// messages in a list.
func text(v string) string { return textWithin(v, 4) }

func textWithin(v string, depth int) string {
	if depth == 0 {
		return ""
	}
	switch {
	case v == "":
	case jsonx.IsNumber(v):
		return v
	case v[0] == '"':
		return jsonx.Unquote(v)
	case v[0] == '[':
		list, _ := elements(v)
		var parts []string
		for _, one := range list {
			if s := textWithin(one, depth-1); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "; ")
	case v[0] == '{':
		env, _ := parseEnvelope(v)
		return cmp.Or(textWithin(env.Message, depth-1), textWithin(env.Msg, depth-1), textWithin(env.Detail, depth-1))
	}
	return ""
}

// notThisAPI describes an answer in no known shape. A failure that its status explains keeps its
// class; a web page in place of the API's answer does not.
func (e *Error) notThisAPI(body []byte) {
	page := LooksLikeHTML(body)
	if page {
		e.Message = "got a web page instead of JSON"
		if title := pageTitle(body); title != "" {
			e.Message += ", titled " + title
		}
	}
	switch e.Class {
	case RateLimit, Overloaded, Server, Auth, Forbidden, Quota, TooLarge:
		if e.Status >= 400 {
			e.Body = excerpt(body, page)
			return
		}
	case NotFound:
		if !page {
			e.Body = excerpt(body, page)
			return
		}
	}
	if page || e.Status < 400 {
		e.Class = Protocol
		e.Hint = "this URL is not a Responses endpoint; check the base URL"
	}
	e.Body = excerpt(body, page)
}

// LooksLikeHTML reports whether a body begins like a web page.
func LooksLikeHTML(body []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(body[:min(len(body), 512)], []byte("\ufeff"))))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body", "<title", "<h1", "<center", "<!--"} {
		if bytes.HasPrefix(head, []byte(start)) {
			return true
		}
	}
	return false
}

// entities replaces the HTML entities found in titles of error pages. The whole table of HTML would
// noticeably enlarge a small program.
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&nbsp;", " ")

// pageTitle returns the quoted title of a web page, or "".
func pageTitle(body []byte) string {
	page := body[:min(len(body), 16<<10)]
	lower := bytes.ToLower(page)
	if len(lower) != len(page) { // some letters are longer in lower case
		page = lower
	}
	start := bytes.Index(lower, []byte("<title"))
	if start < 0 {
		return ""
	}
	open := bytes.IndexByte(lower[start:], '>')
	if open < 0 {
		return ""
	}
	start += open + 1
	length := bytes.Index(lower[start:], []byte("</title>"))
	if length < 0 || length > 2000 {
		return ""
	}
	return `"` + oneLine(entities.Replace(string(page[start:start+length])), 80) + `"`
}

func excerpt(body []byte, page bool) string {
	if page {
		return "" // markup does not help at a terminal; the message already has the title
	}
	return oneLine(string(body[:min(len(body), 8*maxExcerpt)]), maxExcerpt)
}

// hint returns advice for the error, based on the server's answer and the URL.
func (e *Error) hint(resp *http.Response) string {
	profile := Careful
	path := ""
	if resp.Request != nil && resp.Request.URL != nil {
		profile, path = Detect(resp.Request.URL), resp.Request.URL.Path
	}
	switch e.Class {
	case Auth:
		return profile.KeyHint
	case NotFound:
		if e.Type == "api_error" { // Ollama's error; its path is right
			return "check the model's name; if this is Ollama, get the model by: ollama pull NAME"
		}
		if e.Code == "model_not_found" || e.Param == "model" {
			return "check the model's name and that this key may use it"
		}
		if !strings.Contains(path+"/", "/v1/") {
			return "check the model's name; or the base URL lacks its path, most often /v1"
		}
		return "check the model's name, and that this server has the Responses API at this path"
	}
	if e.Class == RateLimit && e.RetryAfter >= time.Minute {
		return "ask for a higher limit, or try again then"
	}
	return hints[e.Class]
}

// requestID returns the server's id for the request.
func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}
