// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/estimate"
)

// Guard decides who may use servers, and how much. It is an [net/http.Handler] around one
// [server.Server] for each project, so that projects share nothing in memory: an object
// of another project is not found, whatever a client guesses. Set the fields before the
// first request; then it is safe for concurrent use.
type Guard struct {
	// Keys are the keys of clients. As soon as there is one, also one that is revoked, every
	// request needs a key. Nil means that everybody who reaches the Guard may do everything.
	Keys *Keys
	// Tokens, unless nil, says what a client may do that sends something that has not the
	// form of a key, such as a token of an issuer. Every request then needs a key or a token.
	// The Key that it returns has an ID, a Name, a Project, Scopes, Expires and no Limits. A
	// [server.Error] is sent to the client; others are not told. Tokens is called for each
	// request, and must be safe for concurrent use. The server of a project without keys is
	// made when the first token of it comes.
	Tokens func(ctx context.Context, token string) (Key, error)
	// Server makes the server of a project, when it is first used; without keys, the project
	// is "". What the server stores must belong to the project: other servers may use the
	// same store. The Guard sets Admit, and closes the server.
	Server func(project string) (*server.Server, error)
	// Bounds are those of all keys together.
	Bounds Bounds
	// Origins are those whose pages may use the server in a browser, each as [CheckOrigin]
	// wants it; nil means none. A page needs a key like every other client, and without keys
	// it can do everything.
	Origins []string
	// Base is the path below which everything is served, such as /antiphon, as [CheckBase]
	// wants it; "" is the root.
	Base string
	// TLS is for [Guard.Serve]. It has the certificate. Nil means no encryption.
	TLS *tls.Config
	// Metrics is served at GET /metrics, for keys with the scope admin. It may be nil.
	Metrics http.Handler
	// Ready reports why the server cannot serve now, for GET /readyz. Nil means that it can.
	Ready func(ctx context.Context) error
	// Linger is how long [Guard.Serve] takes requests after its context is done, while GET /readyz says 503: as long as
	// load balancers need to notice it.
	Linger time.Duration
	// CloseFirst makes Serve close its listener before it waits for running responses. It is for a socket whose
	// connections wait for the next process, such as that of systemd.
	CloseFirst bool
	// Log receives one record for each request, and for what the limits of a trial would
	// have refused: ids, names and numbers, and never contents or keys. It may be nil.
	Log *slog.Logger
	// Price returns what tokens of a model cost, as far as that is known before it is asked. A response
	// reserves that of its limit of cost. Nil means that only what responses cost before is known.
	Price func(model string, input, output int64) float64
	// Record receives the usage of each response. It may be nil.
	Record func(Use)
	// Began, unless nil, is told of each response that begins, with an estimate of what it may use. The result
	// is called when the response has ended, in place of Record. If there is nothing to record, because the backend
	// refused the request, its Use has no time. So what a killed process left can be counted: see
	// [Ledger.Begin]. It is not called for responses that another server goes on with, and counts.
	Began func(Use) (ended func(Use))
	// Now is the clock of limits and expiry. Nil means time.Now.
	Now func() time.Time

	accounts accounts
	counts   counts
	sockets  sockets
	ends     atomic.Int32 // the step in which Serve ends
	toldFree sync.Map     // the ids of keys: see unpriced

	mu       sync.Mutex
	projects map[string]*server.Server
	required bool // a key was seen: a file that is removed opens nothing
}

// Use is what a response has used.
type Use struct {
	At      time.Time `json:"at"`
	Key     string    `json:"key,omitzero"` // its name
	KeyID   string    `json:"key_id,omitzero"`
	Project string    `json:"project,omitzero"`
	// Agent is the model that the request names, and Model the one that answered it, if the
	// backend says so.
	Agent    string `json:"agent"`
	Model    string `json:"model,omitzero"`
	Response string `json:"response,omitzero"`
	Status   string `json:"status"`
	// Tokens are what counts for limits: those that were reported, or of a response that
	// broke off an estimate, if it is more.
	Tokens       int64   `json:"tokens"`
	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Cost         float64 `json:"cost,omitzero"`
}

// Spent tells the Guard what keys have used today before it began, so that limits of a
// day survive a restart. Call it before the first request.
func (g *Guard) Spent(u Use) {
	if now := g.now(); u.KeyID != "" && dayOf(u.At) == dayOf(now) {
		g.accounts.spent(u.KeyID, u.Cost, 1, now)
	}
}

func (g *Guard) now() time.Time {
	if g.Now != nil {
		return g.Now()
	}
	return time.Now()
}

// request is a request that the Guard serves.
type request struct {
	g      *Guard
	w      *writer
	key    *Key    // nil without keys
	token  bool    // the key says what a token allows
	socket *socket // nil for other requests
	spared bool    // a limit of requests refused it in a trial

	mu      sync.Mutex
	waits   int64 // requests for responses so far
	project string
}

type requestKey struct{}

// errBusy is for a client that comes when all places are taken.
func errBusy(what string) *server.Error {
	return &server.Error{Status: http.StatusServiceUnavailable, Code: "server_is_overloaded", Header: retryAfter(time.Second), Message: "The server is overloaded: " + what + ". Please try again soon."}
}

// ServeHTTP implements [http.Handler].
func (g *Guard) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	began := g.now()
	w := &writer{ResponseWriter: out, control: http.NewResponseController(out), patience: g.Bounds.patience()}
	w.Header().Set("X-Request-Id", "req_"+rand.Text())
	r = server.AsGet(r)
	req := &request{g: g, w: w}
	if inner := g.below(r); inner != nil {
		r = inner
	} else {
		g.errElsewhere(r).Send(w)
		return
	}
	r, asked := g.admitPage(w, r)
	switch {
	case asked:
		return
	case r.Method == http.MethodGet && r.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok")
		return
	case r.Method == http.MethodGet && r.URL.Path == "/readyz":
		g.readyz(w, r)
		return
	}
	end, wrong := g.counts.enter(g.Bounds.requests())
	if wrong == nil && g.ends.Load() == refusing && r.URL.Path != "/metrics" {
		end()
		w.Header().Set("Connection", "close")
		wrong = errEnding()
	} else if wrong == nil {
		defer end()
		wrong = req.serve(r)
	}
	if wrong != nil {
		wrong.Send(w)
	}
	req.log(r, began)
}

// serve serves a request or returns why not.
func (req *request) serve(r *http.Request) *server.Error {
	g, w := req.g, req.w
	wrong := req.identify(r)
	if wrong != nil {
		return wrong
	}
	if r.Method == http.MethodGet && r.URL.Path == "/metrics" && g.Metrics != nil {
		if wrong := req.needs(ScopeAdmin); wrong != nil {
			return wrong
		}
		g.Metrics.ServeHTTP(w, r)
		return nil
	}
	if wrong := req.scoped(r); wrong != nil {
		return wrong
	}
	if req.key != nil {
		w.first = func() { g.accounts.head(w.Header(), req.key, g.now()) }
		if over := g.accounts.request(req.key, g.now()); over != nil {
			if wrong := req.exceeds(over); wrong != nil {
				return wrong
			}
			req.spared = true
		}
	}
	s, err := g.of(req.project)
	if err != nil {
		g.logged().Error("the server of a project", "project", req.project, "error", err.Error())
		return &server.Error{Status: http.StatusInternalServerError, Message: "The server had an error while processing your request."}
	}
	body, wrong := req.body(r)
	if wrong != nil {
		return wrong
	}
	defer body.release()
	ctx := server.WithHold(context.WithValue(r.Context(), requestKey{}, req), g.hold)
	if server.Pattern(r) == socketRoute {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		if req.socket, wrong = g.sockets.open(req.key, g, end); wrong != nil {
			return wrong
		}
		defer req.socket.closed()
	}
	if req.key != nil {
		ctx = server.WithCaller(ctx, req.caller())
	}
	if req.key != nil && strings.Contains(server.Pattern(r), frontRoutes) {
		w.allowed = req.still
	}
	r = r.WithContext(ctx)
	r.Body = body
	s.ServeHTTP(w, r)
	return nil
}

// identify finds the key of a request, if it needs one. The answers tell nothing of keys
// to somebody who does not have them, and repeat nothing that was sent.
func (req *request) identify(r *http.Request) *server.Error {
	g := req.g
	if required, err := g.Required(); err != nil {
		g.logged().Error("keys", "error", err.Error())
		return &server.Error{Status: http.StatusServiceUnavailable, Code: "keys_unavailable", Message: "The server cannot read its keys."}
	} else if !required {
		return nil
	}
	given := r.Header.Get("Authorization")
	kind, sent, _ := strings.Cut(given, " ")
	refused := &server.Error{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "Incorrect API key provided. Ask the operator of this server for a key."}
	req.w.Header().Set("WWW-Authenticate", "Bearer")
	switch {
	case given == "":
		refused.Code, refused.Message = "missing_api_key", "You didn't provide an API key. Send it in the header 'Authorization: Bearer KEY'; a key in a URL is not accepted."
		if g.Tokens != nil {
			refused.Message = "You didn't provide an API key or a token. Send it in the header 'Authorization: Bearer TOKEN'; one in a URL is not accepted."
		}
		return refused
	case !strings.EqualFold(kind, "Bearer"):
		refused.Message = "The header Authorization does not begin with Bearer. Send 'Authorization: Bearer KEY'."
		return refused
	}
	sent = strings.TrimSpace(sent)
	var key Key
	var err error
	if g.Tokens != nil && !keyForm.MatchString(sent) {
		key, err = g.token(r.Context(), sent)
		req.token = true
	} else if g.Keys == nil {
		err = errUnknown
	} else {
		key, err = g.Keys.find(sent, g.now())
	}
	var told *server.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.Is(err, errExpired) && req.token:
		refused.Message = "The token is not accepted: it has expired."
		return refused
	case errors.Is(err, errExpired), errors.Is(err, errRevoked):
		refused.Message = "Incorrect API key provided: " + err.Error() + "."
		return refused
	case err != nil:
		return refused
	}
	req.w.Header().Del("WWW-Authenticate")
	req.key, req.project = &key, key.Project
	return nil
}

// token asks Tokens.
func (g *Guard) token(ctx context.Context, sent string) (Key, error) {
	key, err := g.Tokens(ctx, sent)
	var told *server.Error
	switch {
	case errors.As(err, &told) && told.Status >= http.StatusInternalServerError:
		g.logged().Error("tokens", "error", err.Error())
	case err == nil && (key.ID == "" || !IsName(key.Project)):
		return Key{}, errUnknown
	case err == nil && !key.Valid(g.now()):
		return Key{}, errExpired
	}
	return key, err
}

// still reports whether the key or token of a request is valid now.
func (req *request) still() bool {
	g := req.g
	if req.token {
		return req.key.Valid(g.now())
	}
	return g.Keys.still(req.key.ID, g.now())
}

// Required reports whether requests need a key or a token now.
func (g *Guard) Required() (bool, error) {
	if g.Keys == nil {
		return g.Tokens != nil, nil
	}
	some, err := g.Keys.any()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.required = g.required || some || g.Tokens != nil
	return g.required, err
}

const (
	// socketRoute is that of WebSockets.
	socketRoute = "GET /v1/responses"
	// frontRoutes is the beginning of the paths for front ends.
	frontRoutes = " /antiphon/v1/sessions"
)

// scoped checks the scope that a route needs.
func (req *request) scoped(r *http.Request) *server.Error {
	switch route := server.Pattern(r); {
	case route == "": // the server says what there is
		return nil
	case strings.Contains(route, frontRoutes):
		if strings.HasSuffix(route, "/approvals") {
			return req.needs(ScopeApprove)
		}
		return req.needs(ScopeSessions)
	case strings.HasPrefix(route, "GET /v1/models"):
		if req.key == nil || req.key.May(ScopeRead) {
			return nil
		}
		return req.needs(ScopeModels)
	case strings.HasPrefix(route, "GET ") && route != socketRoute:
		return req.needs(ScopeRead)
	}
	return req.needs(ScopeModels)
}

// caller returns who sends the request. It must have a key.
func (req *request) caller() server.Caller {
	return server.Caller{Project: req.project, Key: req.key.Name, KeyID: req.key.ID, Token: req.token, Approves: req.key.May(ScopeApprove), URLs: req.key.May(ScopeURLs)}
}

func (req *request) needs(s Scope) *server.Error {
	if req.key == nil || req.key.May(s) {
		return nil
	}
	return &server.Error{Status: http.StatusForbidden, Code: "missing_scope", Message: fmt.Sprintf("%s may not do that: it lacks the scope '%s'.", req.caller().Credential(), s)}
}

// exceeds handles a limit that a request reaches.
func (req *request) exceeds(over ...*exceeded) *server.Error {
	g := req.g
	worst := over[0]
	for _, one := range over {
		g.counts.limited(one.limit, req.key.Limits.Trial)
		if one.wait > worst.wait {
			worst = one
		}
	}
	if req.key.Limits.Trial {
		for _, one := range over {
			g.logged().Warn("limit in trial", "limit", one.limit, "key", req.key.Name, "project", req.project)
		}
		return nil
	}
	return worst.refusal()
}

// of returns the server of a project.
func (g *Guard) of(project string) (*server.Server, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.projects[project]; s != nil {
		return s, nil
	}
	if g.Server == nil {
		return nil, errors.New("access: Guard.Server is not set")
	}
	s, err := g.Server(project)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Backend == nil {
		return nil, errors.New("access: Guard.Server returned no server with a backend")
	}
	s.Admit = func(ctx context.Context, r *server.Request) (func(server.Outcome), error) {
		req, _ := ctx.Value(requestKey{}).(*request)
		if req == nil { // an earlier server began it
			caller, _ := server.CallerOf(ctx)
			return g.goesOn(project, caller, r), nil
		}
		return g.admit(req, r)
	}
	if s.MaxBody == 0 {
		s.MaxBody = g.Bounds.body()
	}
	if s.Patience == 0 {
		s.Patience = g.Bounds.patience()
	}
	if g.projects == nil {
		g.projects = map[string]*server.Server{}
	}
	g.projects[project] = s
	s.Resume()
	return s, nil
}

// admit implements [server.Server].Admit.
func (g *Guard) admit(req *request, r *server.Request) (done func(server.Outcome), err error) {
	left, wrong := g.counts.run(g.Bounds.running())
	if wrong != nil {
		return nil, wrong
	}
	var est reservation
	if req.key != nil || g.Began != nil && !r.Resumed {
		est = g.estimate(r)
	}
	held, err := req.reserve(est)
	if err != nil {
		left()
		return nil, err
	}
	req.socket.works(1)
	use := Use{Project: req.project, Agent: r.Model}
	if held != nil {
		use.Key, use.KeyID = held.key.Name, held.key.ID
		est.tokens, est.cost = max(est.tokens, held.tokens), max(est.cost, held.cost)
	}
	var ended func(Use)
	if g.Began != nil && !r.Resumed {
		u := use
		u.At, u.InputTokens, u.Tokens, u.Cost = g.now().UTC(), est.least, int64(est.tokens), est.cost
		ended = g.Began(u)
	}
	return func(o server.Outcome) {
		left()
		req.socket.works(-1)
		u := use
		if held != nil {
			u.Tokens = g.accounts.settle(held, o, g.now())
			g.unpriced(&held.key, r.Model, o)
		}
		if counted := g.count(&u, o); ended == nil && counted {
			g.record(u)
		} else if ended != nil {
			if !counted {
				u.At = time.Time{}
			}
			ended(u)
		}
	}, nil
}

// goesOn admits a response that another server began, for a caller whose limits it had then.
func (g *Guard) goesOn(project string, caller server.Caller, r *server.Request) (done func(server.Outcome)) {
	left, wrong := g.counts.run(math.MaxInt)
	if wrong != nil {
		left = func() {}
	}
	model := r.Model
	return func(o server.Outcome) {
		left()
		if caller.KeyID != "" && o.ID != "" {
			g.accounts.spent(caller.KeyID, o.Cost, 1, g.now())
		}
		if u := (Use{Project: project, Key: caller.Key, KeyID: caller.KeyID, Agent: model}); g.count(&u, o) {
			g.record(u)
		}
	}
}

// count completes what a response has used, and counts it. There is nothing if the backend refused the request.
func (g *Guard) count(u *Use, o server.Outcome) bool {
	if o.ID == "" && o.Usage == nil {
		return false
	}
	u.At, u.Model, u.Response, u.Status, u.Cost = g.now().UTC(), o.Model, o.ID, o.Status, o.Cost
	if o.Usage != nil {
		u.InputTokens, u.CachedTokens, u.OutputTokens = o.Usage.InputTokens, o.Usage.Cached(), o.Usage.OutputTokens
		u.Tokens = max(u.Tokens, o.Usage.TotalTokens)
	}
	g.counts.used(u)
	return true
}

// unpriced logs, once for each key, that a limit of cost does not limit a model, because it has no price.
func (g *Guard) unpriced(k *Key, model string, o server.Outcome) {
	if k.Limits.Cost == 0 || o.Cost > 0 || o.Usage == nil || o.Usage.TotalTokens == 0 {
		return
	}
	if _, told := g.toldFree.LoadOrStore(k.ID, true); !told {
		g.logged().Warn("the key has a limit of cost, and this model has no price: it limits nothing there (antiphon serve --price, or a price in the settings)", "key", k.Name, "model", cmp.Or(o.Model, model))
	}
}

func (g *Guard) record(u Use) {
	if g.Record != nil {
		g.Record(u)
	}
}

// estimate returns what a response may use, as far as that is known before it begins.
func (g *Guard) estimate(r *server.Request) (est reservation) {
	est.least = estimate.Request(r.Object, r.Items[len(r.Items)-r.Own:])
	most := est.least
	if r.MaxOutputTokens != nil && *r.MaxOutputTokens > 0 {
		most += min(*r.MaxOutputTokens, math.MaxInt64-est.least)
	}
	est.tokens = float64(most)
	if g.Price != nil {
		est.cost = g.Price(r.Model, est.least, most-est.least)
	}
	return est
}

// reserve reserves the limits of the key.
func (req *request) reserve(est reservation) (*reservation, error) {
	g := req.g
	if req.key == nil {
		return nil, nil
	}
	req.mu.Lock()
	again := req.waits > 0 // the first was counted as the HTTP request
	req.waits++
	req.mu.Unlock()
	if req.socket != nil && !req.still() {
		wrong := &server.Error{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "The key has expired or is revoked."}
		if req.token {
			wrong.Message = "The token has expired."
		}
		return nil, wrong
	}
	est.spared = req.spared && !again
	if again {
		if over := g.accounts.request(req.key, g.now()); over != nil {
			if wrong := req.exceeds(over); wrong != nil {
				return nil, wrong
			}
			est.spared = true
		}
	}
	held, over := g.accounts.reserve(req.key, est, g.now())
	if len(over) > 0 {
		if wrong := req.exceeds(over...); wrong != nil {
			return nil, wrong
		}
	}
	return held, nil
}

// readyz tells a load balancer whether to send requests here.
func (g *Guard) readyz(w http.ResponseWriter, r *http.Request) {
	if g.ends.Load() != 0 {
		http.Error(w, "the server stops", http.StatusServiceUnavailable)
		return
	}
	if g.Ready != nil {
		ctx, stop := context.WithTimeout(r.Context(), readyTime)
		defer stop()
		if err := g.Ready(ctx); err != nil {
			g.logged().Error("not ready", "error", err.Error())
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable) // the log says why
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// The steps in which a server ends, after 0.
const (
	notReady = iota + 1 // it serves, and tells load balancers to send nothing more
	refusing            // it waits for running responses
)

func errEnding() *server.Error {
	return &server.Error{Status: http.StatusServiceUnavailable, Type: "server_error", Code: "server_ending", Header: http.Header{"Retry-After": {"1"}},
		Message: "This server is ending and takes no more requests. Please ask again in a few seconds."}
}

// readyTime bounds the question whether the store answers.
const readyTime = 5 * time.Second

func (g *Guard) logged() *slog.Logger {
	if g.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Log
}

// log tells of a request that was served. An object's id tells nothing without a key.
func (req *request) log(r *http.Request, began time.Time) {
	g, took := req.g, req.g.now().Sub(began)
	route := server.Pattern(r)
	if r.URL.Path == "/metrics" {
		route = "GET /metrics"
	}
	if route == "" {
		route = "other"
	}
	status := req.w.status
	if status == 0 {
		status = http.StatusOK
	}
	g.counts.served(route, status, took)
	if g.Log == nil {
		return
	}
	list := []any{"id", req.w.Header().Get("X-Request-Id"), "route", route, "status", status, "seconds", took.Seconds(), "bytes", req.w.bytes}
	if req.key != nil {
		list = append(list, "key", req.key.Name, "project", req.project)
	}
	g.Log.Info("request", list...)
}

// writer is the answer to a request. A client that does not read loses its connection.
type writer struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	first    func() // is called before the headers are sent; it may be nil
	// allowed reports whether the client may still read: a stream of a session has no end
	// at which a key that was revoked would be noticed. It may be nil.
	allowed func() bool
	status  int
	bytes   int64
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// begin sets the last headers, over those of an upstream.
func (w *writer) begin(status int) {
	if w.status = status; w.first != nil {
		w.first()
	}
}

// Write implements [io.Writer].
func (w *writer) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	if w.allowed != nil && !w.allowed() {
		return 0, errRevoked
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience)) // not all can
	n, err := w.ResponseWriter.Write(data)
	w.bytes += int64(n)
	return n, err
}

// FlushError sends what was written.
func (w *writer) FlushError() error { return w.control.Flush() }

// reader is the body of a request. It takes from what all bodies may have, and does not
// wait for ever.
type reader struct {
	io.ReadCloser
	req           *request
	until         time.Time
	held, counted int64
}

// body returns the body of a request.
func (req *request) body(r *http.Request) (*reader, *server.Error) {
	g := req.g
	b := &reader{ReadCloser: r.Body, req: req, until: time.Now().Add(g.Bounds.upload())}
	if r.ContentLength > g.Bounds.body() {
		return nil, &server.Error{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("The request is larger than %d bytes.", g.Bounds.body())}
	}
	if wrong := b.take(max(0, r.ContentLength)); wrong != nil {
		return nil, wrong
	}
	return b, nil
}

// take takes n bytes of what all bodies may have.
func (b *reader) take(n int64) *server.Error {
	if wrong := b.req.g.takes(n, nil); wrong != nil {
		return wrong
	}
	b.held += n
	return nil
}

// hold takes n bytes of what all bodies may have, until ctx is done, for what a request names or becomes.
func (g *Guard) hold(ctx context.Context, n int64) error {
	if most := g.Bounds.bodies(); n > most { // there will never be room
		return &server.Error{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("The request needs %d bytes of memory, and all requests together have %d.", n, most)}
	}
	var by *socket
	if req, _ := ctx.Value(requestKey{}).(*request); req != nil {
		by = req.socket
	}
	if wrong := g.takes(n, by); wrong != nil {
		return wrong
	}
	if by != nil && by.holds(n) {
		context.AfterFunc(ctx, func() { by.gives(g, n) })
	} else {
		context.AfterFunc(ctx, func() { g.counts.hold(-n, 0) })
	}
	return nil
}

// takes takes n bytes of what all bodies may have. If there are not as many, WebSockets that wait
// for a request make room, but not the one that asks.
func (g *Guard) takes(n int64, by *socket) *server.Error {
	most := g.Bounds.bodies()
	for !g.counts.hold(n, most) {
		if n > most || !g.sockets.free(g, by) {
			g.counts.overloaded()
			return errBusy(tooLarge)
		}
	}
	return nil
}

const tooLarge = "the requests that it is reading are too large together"

func (b *reader) release() { b.req.g.counts.hold(-b.held, 0) }

// Read implements [io.Reader].
func (b *reader) Read(data []byte) (int, error) {
	until := time.Now().Add(b.req.w.patience)
	if until.After(b.until) {
		until = b.until
	}
	_ = b.req.w.control.SetReadDeadline(until) // not all can
	n, err := b.ReadCloser.Read(data)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.req.w.control.SetReadDeadline(time.Time{}) // it is for the body only
	case err != nil:
		// The HTTP server would wait for the rest without a deadline, before it answers.
		b.req.w.Header().Set("Connection", "close")
	}
	if read := b.counted + int64(n); read > b.held {
		if wrong := b.take(read - b.held); wrong != nil {
			return 0, wrong
		}
	}
	b.counted += int64(n)
	return n, err
}
