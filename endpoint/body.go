// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FromResponse returns the error that an HTTP answer is, with the body as far
// as it was read. It takes every shape of error body that servers were seen to
// send, and a web page too. The answer's request, if known, names the URL.
func FromResponse(resp *http.Response, body []byte) *Error {
	e := &Error{
		Status:     resp.StatusCode,
		RequestID:  requestID(resp.Header),
		RetryAfter: retryAfter(resp.Header),
		final:      resp.Header.Get("X-Should-Retry") == "false",
	}
	if resp.Request != nil {
		e.Method, e.URL = resp.Request.Method, ShowURL(resp.Request.URL)
	}
	understood := e.readBody(body)
	e.Class = classify(e.Status, e.Code, e.Type)
	if !understood {
		e.notThisAPI(body)
	}
	if e.Hint == "" {
		e.Hint = e.hint(resp)
	}
	return e
}

// FromAPI returns the error that a failed response or an error event is. The
// answer had begun well, so it has no status.
func FromAPI(code, typ, message, param string) *Error {
	e := &Error{Code: code, Type: typ, Message: message, Param: param}
	e.Class = classify(0, code, typ)
	e.Hint = hints[e.Class]
	return e
}

// envelope is the union of the error bodies in use:
// {"error":{…}} of the API, {"error":"…","code":"…"}, {"detail":"…"} and
// {"detail":[{"msg":"…"}]} of web frameworks, {"message":"…","code":400} of
// some local servers, and problem details (RFC 9457).
type envelope struct {
	Error            jsontext.Value `json:"error"`
	Detail           jsontext.Value `json:"detail"`
	Message          jsontext.Value `json:"message"`
	Msg              jsontext.Value `json:"msg"`
	Title            jsontext.Value `json:"title"`
	ErrorDescription jsontext.Value `json:"error_description"`
	Code             jsontext.Value `json:"code"`
	Type             jsontext.Value `json:"type"`
	Param            jsontext.Value `json:"param"`
}

// readBody takes what the server said out of the body and reports whether it
// was one of the known shapes.
func (e *Error) readBody(body []byte) bool {
	env, ok := parseEnvelope(body)
	if !ok {
		return false
	}
	if inner, nested := parseEnvelope(env.Error); nested {
		inner.Code = cmpValue(inner.Code, env.Code)
		env = inner
	}
	e.Code, e.Type, e.Param = text(env.Code), text(env.Type), text(env.Param)
	for _, v := range []jsontext.Value{env.Message, env.Error, env.Detail, env.Msg, env.ErrorDescription, env.Title} {
		if e.Message = text(v); e.Message != "" {
			break
		}
	}
	return e.Message != "" || e.Code != "" || e.Type != ""
}

func parseEnvelope(v []byte) (envelope, bool) {
	var env envelope
	v = bytes.TrimSpace(v)
	if len(v) > 0 && v[0] == '[' { // some gateways wrap the error in a list
		var list []jsontext.Value
		if json.Unmarshal(v, &list, lenient) != nil || len(list) == 0 {
			return env, false
		}
		v = list[0]
	}
	if len(v) == 0 || v[0] != '{' {
		return env, false
	}
	return env, json.Unmarshal(v, &env, lenient) == nil
}

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func cmpValue(a, b jsontext.Value) jsontext.Value {
	if text(a) != "" {
		return a
	}
	return b
}

// text is a JSON value as a message shows it: a string's text, a number's
// digits, the messages in a list.
func text(v jsontext.Value) string { return textWithin(v, 4) }

func textWithin(v jsontext.Value, depth int) string {
	if depth == 0 {
		return ""
	}
	switch v.Kind() {
	case '"':
		var s string
		_ = json.Unmarshal(v, &s, lenient)
		return s
	case '0':
		return v.String()
	case '[':
		var list []jsontext.Value
		_ = json.Unmarshal(v, &list, lenient)
		var parts []string
		for _, one := range list {
			if s := textWithin(one, depth-1); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "; ")
	case '{':
		env, _ := parseEnvelope(v)
		return cmp.Or(textWithin(env.Message, depth-1), textWithin(env.Msg, depth-1), textWithin(env.Detail, depth-1))
	}
	return ""
}

// notThisAPI describes an answer in no known shape. A failure that its status
// explains keeps its class; a page where the API should be does not.
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
		e.Hint = "this URL is no Responses endpoint; check the base URL"
	}
	e.Body = excerpt(body, page)
}

// LooksLikeHTML reports whether a body begins as a web page does.
func LooksLikeHTML(body []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(body[:min(len(body), 512)], []byte("\ufeff"))))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body", "<title", "<h1", "<center", "<!--"} {
		if bytes.HasPrefix(head, []byte(start)) {
			return true
		}
	}
	return false
}

var titleElement = regexp.MustCompile(`(?is)<title[^>]*>(.{0,500}?)</title>`)

// entities are those that titles of error pages hold. The whole table of HTML
// would be a visible part of a small program.
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&nbsp;", " ")

func pageTitle(body []byte) string {
	m := titleElement.FindSubmatch(body[:min(len(body), 16<<10)])
	if m == nil {
		return ""
	}
	return `"` + oneLine(entities.Replace(string(m[1])), 80) + `"`
}

func excerpt(body []byte, page bool) string {
	if page {
		return "" // markup says nothing at a terminal; the title did
	}
	return oneLine(string(body[:min(len(body), 8*maxExcerpt)]), maxExcerpt)
}

// hint is what to do, by what the server said and where it was asked.
func (e *Error) hint(resp *http.Response) string {
	profile := Generic
	path := ""
	if resp.Request != nil && resp.Request.URL != nil {
		profile, path = Detect(resp.Request.URL), resp.Request.URL.Path
	}
	switch e.Class {
	case Auth:
		return profile.KeyHint
	case NotFound:
		if e.Code == "model_not_found" || e.Param == "model" {
			return "check the model's name and that this key may use it"
		}
		if !strings.Contains(path+"/", "/v1/") {
			return "check the model's name; or the base URL lacks its path, most often /v1"
		}
		return "check the model's name, and that this server has the Responses API at this path"
	}
	return hints[e.Class]
}

// requestID is the server's name for the exchange.
func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}
