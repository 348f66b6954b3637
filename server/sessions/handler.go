// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"
)

// Path is where the routes begin.
const Path = "/antiphon/v1/sessions"

// Handler serves the routes. It does not know keys: a handler around it decides who may
// call it, such as that of package server/access, and says so by [server.WithCaller]. Set
// the fields before the first request; then it is safe for concurrent use.
type Handler struct {
	// Store has the sessions. The Handler does not close it.
	Store store.Store
	// Owner owns the sessions that are served; others are not found. "" serves the
	// sessions of all owners (rule V3 in docs/rules.md).
	Owner string
	// Record is called before an answer about a call counts, with what an audit log should
	// have of it. An error refuses the answer. It may be nil.
	Record func(ctx context.Context, records ...audit.Record) error
	// Live has the texts that are being written by runs of this process. Nil means that streams
	// have whole entries alone.
	Live *Live
	// Log receives errors that clients are not told, such as those of the store. It may be
	// nil.
	Log func(err error)
	// Silence is how long a stream may have nothing to send. Then it sends a comment. 0
	// means 15 seconds.
	Silence time.Duration
}

// Largest bodies of requests, in bytes. Input may have images and files.
const (
	mostBody  = 1 << 20
	mostInput = 64 << 20
)

// from is how deliveries of this package were given, for those who read the log.
const from = "session route"

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h.serve(w, r)
	var known *server.Error
	switch {
	case err == nil || r.Context().Err() != nil:
		return
	case errors.As(err, &known):
	case errors.Is(err, session.ErrNotFound):
		known = &server.Error{Status: http.StatusNotFound, Code: "session_not_found", Message: "Session not found."}
	default:
		if h.Log != nil {
			h.Log(err)
		}
		known = &server.Error{Status: http.StatusInternalServerError, Message: "The server had an error while processing your request."}
	}
	known.Send(w)
}

// serve serves a request, or returns why not.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	if nils.Is(h.Store) {
		return errors.New("sessions: Handler.Store is not set")
	}
	rest, ok := strings.CutPrefix(r.URL.Path, Path)
	name, what, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	serve := map[string]func(http.ResponseWriter, *http.Request, session.Info) error{
		"GET ": h.get, "GET events": h.events, "POST input": h.input, "POST approvals": h.answer, "POST stop": h.stop,
	}[r.Method+" "+what]
	switch {
	case ok && r.Method == http.MethodGet && (rest == "" || rest == "/"):
		return h.list(w, r)
	case !ok || serve == nil || !strings.HasPrefix(rest, "/") || name == "":
		return &server.Error{Status: http.StatusNotFound, Code: "unknown_url", Message: fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path)}
	}
	info, err := h.find(r.Context(), name)
	if err != nil {
		return err
	}
	return serve(w, r, info)
}

// find returns the session with an id or a name. One of another owner is not found, whoever
// knows its id. V3
func (h *Handler) find(ctx context.Context, name string) (session.Info, error) {
	info, err := h.Store.Info(ctx, name)
	switch {
	case err == nil && h.owns(info) && !info.Nested:
		return info, nil
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return info, err
	}
	var found []session.Info
	for info, err := range nils.Each(h.Store, "List", h.Store.List(ctx, session.Query{Name: name, Owner: h.Owner, Limit: 2})) {
		if err != nil {
			return info, err
		}
		found = append(found, info)
	}
	switch len(found) {
	case 0:
		return info, session.ErrNotFound
	case 1:
		return found[0], nil
	}
	return info, &server.Error{Status: http.StatusConflict, Code: "ambiguous_name", Message: "Several sessions have this name: use an id of the list."}
}

func (h *Handler) owns(info session.Info) bool { return h.Owner == "" || info.Owner == h.Owner }

// Limits of a page of the list.
const (
	usualPage = 20
	mostPage  = 100
)

// list serves GET /antiphon/v1/sessions.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	if err := given(r, "limit", "after", "name"); err != nil {
		return err
	}
	q := session.Query{Owner: h.Owner, Name: r.URL.Query().Get("name"), After: r.URL.Query().Get("after")}
	limit, err := number(r, "limit", usualPage, 1, mostPage)
	if err != nil {
		return err
	}
	q.Limit = int(limit) + 1
	page := Page{Object: "list", Data: []Session{}}
	var infos []session.Info
	hidden := false
	for info, err := range nils.Each(h.Store, "List", h.Store.List(r.Context(), q)) {
		if errors.Is(err, session.ErrBadCursor) {
			return server.Invalid("invalid_value", "after", "'after' is not the cursor of a list: %v.", session.ErrBadCursor)
		}
		if errors.Is(err, session.ErrDamaged) { // a row that cannot be read hides no other; it is told behind them
			if hidden = true; h.Log != nil {
				h.Log(err)
			}
			break
		}
		if err != nil {
			return err
		}
		infos = append(infos, info) // a list may hold a connection of the store
	}
	if most := int(limit); len(infos) > most || hidden && len(infos) == most { // it may have stood in the place of a further one
		infos = infos[:most]
		page.Next = infos[most-1].Cursor
	}
	look := h.looking(r.Context())
	for _, info := range infos {
		s, err := h.describe(r.Context(), info, look)
		switch {
		case errors.Is(err, session.ErrNotFound): // it was deleted meanwhile
			continue
		case err != nil && r.Context().Err() != nil:
			return err
		case err != nil: // one that cannot be read hides no other
			if h.Log != nil {
				h.Log(err)
			}
			s.Status = StatusUnreadable
		}
		page.Data = append(page.Data, s)
	}
	return send(w, page)
}

// get serves GET /antiphon/v1/sessions/{id}.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, info session.Info) error {
	if err := given(r); err != nil {
		return err
	}
	s, err := h.describe(r.Context(), info, h.looking(r.Context()))
	if err != nil {
		return err
	}
	return send(w, s)
}

// input serves POST /antiphon/v1/sessions/{id}/input.
func (h *Handler) input(w http.ResponseWriter, r *http.Request, info session.Info) error {
	var in inputRequest
	if err := read(w, r, mostInput, &in); err != nil {
		return err
	}
	said, err := spoken(in.Input)
	in.Input = "" // it is large, and said has its own copy
	if err != nil {
		return err
	}
	d := session.Delivery{Delivered: session.Delivered{Key: in.Key, Queued: in.Later}, Bodies: []session.Body{session.InputItem{Item: said}}}
	return h.deliver(w, r, info, d)
}

// spoken returns the message that a client says: a text, or parts with data. What would be fetched for the client, or is named
// by an id, is refused.
func spoken(input item.JSON) (said item.Item, err error) {
	empty := server.Invalid("missing_required_parameter", "input", "'input' is empty: it is what to say.")
	if text, ok := input.Unquote(); ok || input == "" {
		if strings.TrimSpace(text) == "" {
			return said, empty
		}
		return item.User(text), nil
	}
	if said, err = item.ParseString(`{"type":"message","role":"user","content":` + string(input) + `}`); err != nil {
		return said, server.Invalid("invalid_type", "input", "'input' is a text, or a list of parts of a message: %v.", err)
	}
	m, err := item.As[item.Message](said)
	if err != nil || len(m.Content.Parts) == 0 {
		return said, server.Invalid("invalid_type", "input", "'input' is a text, or a list of parts of a message.")
	}
	blank := true
	for i, part := range m.Content.Parts {
		has := false
		switch p := part.(type) {
		case *item.InputText:
			has, blank = true, blank && strings.TrimSpace(p.Text) == ""
		case *item.InputImage:
			has, blank = p.FileID == "" && strings.HasPrefix(p.ImageURL, "data:"), false
		case *item.InputFile:
			has, blank = p.FileID == "" && p.FileURL == "" && isData(p.FileData), false
		}
		if !has {
			return said, server.Invalid("invalid_value", fmt.Sprintf("input[%d]", i), "'input[%d]' is neither a text nor the data of an image or a file: URLs and ids are not taken here.", i)
		}
	}
	if blank {
		return said, empty
	}
	return said, asInput(server.CheckItems([]item.Item{said}))
}

// asInput names the part of the input that an error about a message of it is about.
func asInput(err error) error {
	var wrong *server.Error
	if !errors.As(err, &wrong) {
		return err
	}
	named := *wrong
	named.Param = strings.Replace(wrong.Param, "input[0].content[", "input[", 1)
	named.Message = strings.Replace(wrong.Message, wrong.Param, named.Param, 1)
	return &named
}

// isData reports whether a text is a data URI with base64 that can be read.
func isData(text string) bool {
	_, payload, ok := item.CutDataURI(text)
	if !ok {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(payload)
	return err == nil
}

// stop serves POST /antiphon/v1/sessions/{id}/stop.
func (h *Handler) stop(w http.ResponseWriter, r *http.Request, info session.Info) error {
	var in stopRequest
	if err := read(w, r, mostBody, &in); err != nil {
		return err
	}
	s, err := h.describe(r.Context(), info, h.looking(r.Context()))
	if err != nil {
		return err
	}
	if s.Status == StatusIdle {
		taken, err := h.taken(r.Context(), info.ID, in.Key)
		switch {
		case err != nil:
			return err
		case !taken: // the request would wait for the next run, and end it
			return &server.Error{Status: http.StatusConflict, Code: "not_running", Message: "Nothing runs in the session, so there is nothing to stop."}
		}
	}
	d := session.Delivery{Delivered: session.Delivered{Key: in.Key}, Bodies: []session.Body{session.StopAsked{AfterTurn: in.AfterTurn, Detail: in.Reason}}}
	return h.deliver(w, r, info, d)
}

// taken reports whether a run of a session has taken a delivery with a key, which a client may send again.
func (h *Handler) taken(ctx context.Context, id, key string) (bool, error) {
	s, err := session.Open(ctx, h.Store, id)
	if key == "" || err != nil {
		return false, err
	}
	return slices.ContainsFunc(s.Log(), func(e session.Entry) bool {
		d, ok := e.Body.(session.Delivered)
		return ok && d.Key == key
	}), nil
}

// deliver leaves something in the inbox of a session. D1
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, info session.Info, d session.Delivery) error {
	if d.Key == "" {
		d.Key = rand.Text()
	}
	if err := session.CheckKey(d.Key); err != nil {
		return server.Invalid("invalid_value", "key", "Invalid 'key': %v.", err)
	}
	d.By, d.From = sender(r.Context()), from
	if err := session.CheckDelivery(d); err != nil {
		return server.Invalid("invalid_value", "", "%v.", err)
	}
	box, err := store.As[session.Inbox](h.Store, "keep deliveries")
	if err != nil {
		return err
	}
	receipt, err := box.Deliver(r.Context(), info.ID, d)
	if errors.Is(err, session.ErrKeyUsed) {
		return &server.Error{Status: http.StatusConflict, Code: "key_used", Param: "key", Message: "Another delivery to the session has this key."}
	}
	if err != nil {
		return full(err)
	}
	return send(w, Receipt{Object: "session.delivery", Session: info.ID, Key: d.Key, Number: receipt.Number, Taken: receipt.Taken})
}

// full returns what clients are told if an error means that the inbox of a session is full, or the error.
func full(err error) error {
	if errors.Is(err, session.ErrInboxFull) {
		return &server.Error{Status: http.StatusConflict, Code: "inbox_full", Message: session.ErrInboxFull.Error()}
	}
	return err
}

// answer serves POST /antiphon/v1/sessions/{id}/approvals.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, info session.Info) error {
	ctx := r.Context()
	if c, known := server.CallerOf(ctx); known && !c.Approves {
		return &server.Error{Status: http.StatusForbidden, Code: "missing_scope", Message: c.Credential() + " may not do that: it lacks the scope 'approve'."}
	}
	var in answerRequest
	if err := read(w, r, mostBody, &in); err != nil {
		return err
	}
	switch {
	case in.CallID == "":
		return server.Invalid("missing_required_parameter", "call_id", "'call_id' is missing: it names the call, as 'pending' of the session does.")
	case in.Number < 1:
		return server.Invalid("missing_required_parameter", "number", "'number' is missing: it is the number of the call, as 'pending' of the session has it.")
	case in.Approve == nil:
		return server.Invalid("missing_required_parameter", "approve", "'approve' is missing: true or false.")
	}
	d := agent.Decision{
		Session: cmp.Or(in.Session, info.ID), Number: in.Number, CallID: in.CallID, Allow: *in.Approve, Reason: in.Reason, Arguments: in.Arguments,
		Remember: in.Remember, By: sender(ctx), From: from, Decided: session.DeciderPerson, Shown: in.Shown,
	}
	if err := h.record(ctx, info, d); err != nil {
		return err
	}
	err := worker.Answer(ctx, h.Store, info.ID, d)
	switch {
	case errors.Is(err, agent.ErrDecided):
		return &server.Error{Status: http.StatusConflict, Code: "already_answered", Message: problem(err) + "."}
	case errors.Is(err, agent.ErrMeaningless):
		return server.Invalid("invalid_value", "", "%s.", problem(err))
	case errors.Is(err, agent.ErrNoSuchApproval):
		return &server.Error{Status: http.StatusNotFound, Code: "no_such_approval", Message: problem(err) + "."}
	case err != nil:
		return full(err)
	}
	return send(w, Answered{Object: "session.approval", Session: d.Session, CallID: d.CallID, Number: d.Number, Approve: d.Allow})
}

// problem returns the text of an error about a decision.
func problem(err error) string {
	var d *agent.DecisionError
	if errors.As(err, &d) {
		return d.Error()
	}
	return err.Error()
}

// record tells the audit log of an answer about a call that waits.
func (h *Handler) record(ctx context.Context, info session.Info, d agent.Decision) error {
	if h.Record == nil {
		return nil
	}
	s, err := session.Open(ctx, h.Store, info.ID)
	if err != nil {
		return err
	}
	pending, err := agent.PendingApprovals(ctx, s)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if p.Session == d.Session && p.Number == d.Number && p.CallID == d.CallID {
			return h.Record(ctx, host.Answered(p, d)...)
		}
	}
	return nil // the answer is refused, or was given before
}

// sender names who sent a request, for the log.
func sender(ctx context.Context) string {
	c, _ := server.CallerOf(ctx)
	return cmp.Or(c.Key, "a front end")
}

// copies is how many copies of a request there are at once while it is parsed, checked and stored, besides what is held for
// its body, which is given up when it is parsed. V5
const copies = 2

// read reads the body of a request, which may not have members that are not known.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	if err := given(r); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	var known *server.Error
	switch {
	case errors.As(err, &known): // of a handler around this one
		return known
	case errors.As(err, &large):
		return &server.Error{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("The request is larger than %d bytes.", most)}
	case err != nil:
		return server.Invalid("", "", "We could not read the body of your request: %v.", err)
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := server.Hold(r.Context(), copies*int64(len(body))); err != nil {
		return err
	}
	return unfit(json.Unmarshal(body, into, json.RejectUnknownMembers(true)))
}

// unfit returns what is wrong with a body, in words of the API.
func unfit(err error) error {
	var wrong *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && errors.Is(err, json.ErrUnknownName):
		name := nameAt(wrong.JSONPointer)
		return server.Invalid("unknown_parameter", name, "Unknown parameter: '%s'.", name)
	case errors.As(err, &wrong) && wrong.JSONPointer != "":
		name, want := nameAt(wrong.JSONPointer), "another type"
		if wrong.GoType != nil {
			want = wanted[wrong.GoType.Kind()]
		}
		return server.Invalid("invalid_type", name, "Invalid type for '%s': expected %s.", name, cmp.Or(want, "another type"))
	case errors.As(err, &wrong):
		return server.Invalid("invalid_type", "", "The body of your request is not a JSON object.")
	}
	return server.Invalid("", "", "The body of your request is not JSON: %s.", strings.TrimPrefix(err.Error(), "jsontext: "))
}

// wanted are the words of the API for types of Go.
var wanted = map[reflect.Kind]string{reflect.Bool: "a boolean", reflect.Int: "an integer", reflect.String: "a string", reflect.Struct: "an object", reflect.Slice: "an array"}

// nameAt returns the name of a member of a body, as in remember.prefix[0].
func nameAt(at jsontext.Pointer) string {
	name := ""
	for token := range at.Tokens() {
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			name += "[" + token + "]"
		case name == "":
			name = token
		default:
			name += "." + token
		}
	}
	return name
}

// given refuses parameters of the URL that are not known.
func given(r *http.Request, names ...string) error {
	for name := range r.URL.Query() {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return server.Invalid("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		}
	}
	return nil
}

// number returns a parameter of the URL.
func number(r *http.Request, name string, usual, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, server.Invalid("invalid_value", name, "'%s' must be a number from %d to %d.", name, least, most)
	}
	return n, nil
}

// asIs writes what a model sent as arguments, which may be no UTF-8, all the same.
var asIs = jsontext.AllowInvalidUTF8(true)

// send sends an object.
func send(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v, asIs)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // a client that is gone is not an error
	return nil
}
