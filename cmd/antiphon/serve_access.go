// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/server/sessions"
	oidctokens "github.com/antiphon-go/antiphon/server/tokens"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// keysFlag names the file of keys.
type keysFlag struct {
	Keys string `name:"keys" placeholder:"FILE" help:"The file of keys. The default is in the user's data folder."`
}

// path returns the path of the file. The data folder is protected from tools.
func (f *keysFlag) path(env environment) (string, error) {
	if f.Keys != "" {
		return f.Keys, nil
	}
	sessions, err := dataFile(env)
	if err != nil {
		return "", usage(errors.New("the home folder, which holds the keys, is not known; give --keys FILE"))
	}
	return filepath.Join(filepath.Dir(sessions), "keys.json"), nil
}

// keys returns the keys.
func (f *keysFlag) keys(env environment) (*access.Keys, error) {
	path, err := f.path(env)
	return access.OpenKeys(path), err
}

// ledgerFlag names the folder of usage.
type ledgerFlag struct {
	Ledger string `name:"usage" placeholder:"FOLDER" help:"The folder where usage is recorded. The default is in the user's data folder."`
}

// there returns an error if the folder or the file of a flag does not exist. A mistyped name would otherwise look empty.
func there(flag, path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return usage(fmt.Errorf("%s: %w", flag, err))
	}
	return nil
}

func (f *ledgerFlag) ledger(env environment) (*access.Ledger, error) {
	folder := f.Ledger
	if folder == "" {
		sessions, err := dataFile(env)
		if err != nil {
			return nil, usage(errors.New("the home folder, which holds the usage, is not known; give --usage FOLDER"))
		}
		folder = filepath.Join(filepath.Dir(sessions), "usage")
	}
	return access.OpenLedger(folder), nil
}

// accessFlags are the flags of antiphon serve about its clients.
type accessFlags struct {
	keysFlag   `group:"clients"`
	ledgerFlag `group:"clients"`

	TLSCert  string   `group:"clients" name:"tls-cert" placeholder:"FILE" help:"Serve https with this certificate in PEM. It needs --tls-key."`
	TLSKey   string   `group:"clients" name:"tls-key" placeholder:"FILE" help:"The private key of the certificate, in PEM."`
	Issuer   string   `group:"clients" name:"oidc-issuer" placeholder:"URL" help:"Accept tokens of this issuer of OpenID Connect beside keys. Every request then needs a key or a token."`
	Audience string   `group:"clients" name:"oidc-audience" placeholder:"NAME" help:"Whom the tokens must be for."`
	Claim    string   `group:"clients" name:"oidc-project" placeholder:"CLAIM" help:"The claim of a token that names the project of a client, such as sub or tenant."`
	Words    string   `group:"clients" name:"oidc-claim" default:"scope" placeholder:"CLAIM" help:"The claim of a token that says what a client may do."`
	Gives    []string `group:"clients" name:"oidc-scope" placeholder:"WORD=SCOPE" help:"A token with this word in the claim has this scope; may be repeated. The default is antiphon:models=models, and so for each scope."`
	Origins  []string `group:"clients" name:"cors-origin" placeholder:"ORIGIN" help:"Pages of this origin, such as https://app.example, may use the server in a browser; the default is none. May be repeated. Pages need a key as other clients do."`
	Base     string   `group:"clients" name:"base-path" placeholder:"PATH" help:"Serve everything below this path, such as /antiphon, for a proxy with other services."`
	Log      string   `group:"clients" enum:"off,text,json" default:"off" help:"Log each request on standard error, without contents: off, text or json."`
	MaxRuns  int      `group:"clients" name:"max-runs" default:"256" placeholder:"N" help:"Make at most N responses at once; the default is 256. Others are refused with 503."`
	MaxConns int      `group:"clients" name:"max-connections" default:"4096" placeholder:"N" help:"Keep at most N connections; the default is 4096. Another one closes the one that has waited longest."`
	MaxBody  int64    `group:"clients" name:"max-body" default:"67108864" placeholder:"BYTES" help:"The largest request; the default is 64 MiB."`
	Webhook  string   `group:"clients" placeholder:"URL" help:"Send an event to URL when a background response has ended, and when a call needs approval. The variable ANTIPHON_WEBHOOK_SECRET has the secret that signs it."`
}

// check returns an error for flags that cannot be meant.
func (c *accessFlags) check() error {
	for _, limit := range []struct {
		name string
		n    int64
	}{{"--max-runs", int64(c.MaxRuns)}, {"--max-connections", int64(c.MaxConns)}, {"--max-body", c.MaxBody}} {
		if limit.n < 1 {
			return usage(fmt.Errorf("%s %d: it must be at least 1; leave it out for the default", limit.name, limit.n))
		}
	}
	if err := access.CheckBase(c.Base); err != nil {
		return usage(fmt.Errorf("--base-path: %w", err))
	}
	if _, err := c.tokens(); err != nil {
		return err
	}
	for _, origin := range c.Origins {
		if err := access.CheckOrigin(origin); err != nil {
			return usage(fmt.Errorf("--cors-origin: %w", err))
		}
	}
	return nil
}

// webhookSecret is the variable with the secret that signs events.
const webhookSecret = "ANTIPHON_WEBHOOK_SECRET"

// webhook returns the receiver of events, or nil.
func (c *serveCommand) webhook(env environment) (*server.Webhook, error) {
	if c.Webhook == "" {
		return nil, nil
	}
	if env[webhookSecret] == "" {
		return nil, usage(errors.New("--webhook: the variable " + webhookSecret + " is to have the secret that signs the events, such as whsec_ and 32 random bytes in base64"))
	}
	h := &server.Webhook{URL: c.Webhook, Secret: env[webhookSecret]}
	if err := h.Check(); err != nil {
		return nil, usage(fmt.Errorf("--webhook: %w", err))
	}
	return h, nil
}

// tokens returns what verifies tokens, or nil.
func (c *accessFlags) tokens() (*oidctokens.OIDC, error) {
	if c.Issuer == "" {
		if c.Audience != "" || c.Claim != "" || len(c.Gives) > 0 {
			return nil, usage(errors.New("--oidc-audience, --oidc-project and --oidc-scope need --oidc-issuer"))
		}
		return nil, nil
	}
	o := &oidctokens.OIDC{Issuer: c.Issuer, Audience: c.Audience, Project: c.Claim, Claim: c.Words}
	for _, given := range c.Gives {
		i := strings.LastIndexByte(given, '=')
		if i < 0 {
			return nil, usage(fmt.Errorf("--oidc-scope: %.80q is not WORD=SCOPE, such as llm-users=models", given))
		}
		if o.Scopes == nil {
			o.Scopes = map[string][]access.Scope{}
		}
		o.Scopes[given[:i]] = append(o.Scopes[given[:i]], access.Scope(given[i+1:]))
	}
	if err := o.Check(); err != nil {
		return nil, usage(fmt.Errorf("--oidc-issuer, --oidc-audience, --oidc-project, --oidc-scope: %w", err))
	}
	return o, nil
}

func listenAt(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, networkOf(address), address)
	if err != nil {
		return nil, cannotListen("--listen", address, err)
	}
	return l, nil
}

// networkOf keeps to what an address says: by itself, 0.0.0.0 opens the addresses of IPv6, too.
func networkOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err == nil && net.ParseIP(host).To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// cannotListen explains why a flag's address cannot be listened at.
func cannotListen(flag, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s: another program listens there\n  hint: end it, or name another port; port 0 takes a free one", flag, show.Visible(address))
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// wrongAddress is the error about a flag whose value is not HOST:PORT. want says what is.
func wrongAddress(flag, given, want string, err error) error {
	said := "it is not HOST:PORT"
	var wrong *net.AddrError
	switch _, failed := strconv.ParseUint(given, 10, 16); {
	case failed == nil:
		said, want = "it is a port alone", "127.0.0.1:"+given
	case errors.As(err, &wrong):
		said = wrong.Err
	}
	return usage(fmt.Errorf("%s %s: %s; give %s", flag, show.Visible(given), said, want))
}

// listen opens an address that must be loopback, for a server without keys. V6
func listen(ctx context.Context, address string) (net.Listener, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, wrongAddress("--listen", address, "an address such as 127.0.0.1:8788", err)
	}
	if name != "localhost" && !net.ParseIP(name).IsLoopback() {
		return nil, usage(fmt.Errorf("--listen %s: only loopback addresses are served, such as 127.0.0.1:8788, because there are no keys", show.Visible(address)))
	}
	return listenAt(ctx, address)
}

// price returns what tokens cost, as far as that is known before a model is asked. An agent chooses
// its model itself, so only a price of all models is known of it.
func (s *serving) price(model string, input, output int64) float64 {
	used := &api.Usage{InputTokens: input, OutputTokens: output, TotalTokens: input + output}
	if s.agents != nil && s.agents.Serves(model) || s.upstreams == nil {
		return s.costs("", "", used)
	}
	return s.upstreams.Price(model, used)
}

// serving is antiphon serve, with a server for each project, over agents or upstreams.
type serving struct {
	*serveCommand
	costs     func(model, baseURL string, used *api.Usage) float64
	agents    *agents.Backend // it serves clients without keys; nil if there are only upstreams
	offered   *offered        // the agents' files; nil if there are only upstreams
	later     atomic.Pointer[[]agents.Agent]
	hooks     func(agent string) []agent.Hooks // of its runs, for spans; nil if there are none
	upstreams *gateway.Backend                 // nil if there are only agents
	store     store.Store
	hook      *server.Webhook // the receiver of events, or nil
	errors    *log.Logger
	guard     *access.Guard
	ledger    *access.Ledger
	given     bool       // systemd opened the socket: what connects to it waits for the next server
	audit     *audit.Log // nil if there is none
	live      sessions.Live

	mu       sync.Mutex
	backends []*agents.Backend
	senders  sync.WaitGroup   // those that send events
	until    context.Context  // of these
	kept     []*gateway.Store // of upstreams
}

// serve serves until ctx is done. It closes the listener.
func (c *serveCommand) serve(ctx context.Context, std stdio, env environment, l net.Listener, s *serving) error {
	s.serveCommand, s.errors = c, log.New(hider{std, env.Hider()}, "antiphon: ", 0)
	err := s.begin(std, env)
	if err == nil {
		err = s.say(std, env, l.Addr())
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return s.run(ctx, l)
}

// begin prepares what clients need.
func (s *serving) begin(std stdio, env environment) error {
	keys, err := s.keysFlag.keys(env)
	if err != nil {
		return err
	}
	if s.ledger, err = s.ledgerFlag.ledger(env); err != nil {
		return err
	}
	if s.audit, err = auditLog(env); err != nil {
		return err
	}
	logged := hider{std, env.Hider()}
	s.guard = &access.Guard{
		Keys: keys, Server: s.server, Record: s.record, Began: s.began, Ready: s.ready, Origins: s.Origins, Base: s.Base,
		Price:  s.price,
		Bounds: access.Bounds{Running: s.MaxRuns, Connections: s.MaxConns, Body: s.MaxBody},
		Log:    slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	issued, err := s.tokens()
	if err != nil {
		return err
	}
	if issued != nil {
		s.guard.Tokens = issued.Verify
	}
	switch s.Log {
	case "text":
		s.guard.Log = slog.New(slog.NewTextHandler(logged, nil))
	case "json":
		s.guard.Log = slog.New(slog.NewJSONHandler(logged, nil))
	}
	s.guard.Metrics = serverMetrics(s.guard)
	if s.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			return usage(fmt.Errorf("--tls-cert, --tls-key: %w", err))
		}
		s.guard.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	if err := s.ledger.Recover(); err != nil {
		s.errors.Printf("what killed servers used is not recorded: %v", err)
	}
	now := time.Now()
	for u, err := range s.ledger.All(now.UTC().Truncate(24 * time.Hour)) {
		if err != nil {
			return fmt.Errorf("the usage of today: %w", err)
		}
		s.guard.Spent(u)
	}
	return nil
}

// server returns the server of a project, and ends what an earlier one left unfinished.
// Backends of agents share the store, and see only sessions of their own. Upstreams share
// what they know of the endpoints. V3
func (s *serving) server(project string) (*server.Server, error) {
	var up *server.Server
	if s.upstreams != nil {
		keep := &gateway.Store{In: s.store, Owner: cmp.Or(project, s.Owner), Webhook: s.hook, Log: func(err error) { s.errors.Print(err) }}
		up = &server.Server{Backend: s.upstreams, Store: keep, ErrorLog: s.errors}
		s.mu.Lock()
		s.kept = append(s.kept, keep)
		s.mu.Unlock()
		s.sends(keep)
	}
	if s.agents == nil {
		return up, nil
	}
	b := s.agents
	if project != "" {
		b = &agents.Backend{Agents: s.agents.Agents, Later: s.agents.Later, Store: s.agents.Store, Log: s.agents.Log, Queue: s.agents.Queue, KeepStreams: s.agents.KeepStreams, Webhook: s.agents.Webhook, Live: s.live.Event, Owner: project}
	}
	b.Recover(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = append(s.backends, b)
	s.sends(b)
	made := &server.Server{Backend: b, Beside: up, ErrorLog: s.errors}
	if project != "" {
		made.Sessions = s.sessions(project)
	}
	return made, nil
}

// sends begins to send events about the responses of a project, if there is a receiver.
func (s *serving) sends(from interface {
	SendWebhooks(ctx context.Context) error
}) {
	if s.hook == nil {
		return
	}
	s.senders.Go(func() {
		if err := from.SendWebhooks(s.until); err != nil {
			s.errors.Print(err)
		}
	})
}

// sessions returns the routes for front ends. There are none without keys: every program of
// the machine could read all conversations, and speak in them. V3
func (s *serving) sessions(project string) *sessions.Handler {
	h := &sessions.Handler{Store: s.store, Owner: project, Live: &s.live, Log: func(err error) { s.errors.Print(show.Unbroken(err.Error())) }}
	if s.audit != nil {
		h.Record = s.audit.Write
	}
	return h
}

// record writes what a response has used.
func (s *serving) record(u access.Use) {
	if err := s.ledger.Add(u); err != nil {
		s.errors.Printf("the usage of a response is not recorded: %v", err)
	}
}

// began notes what a response may use, in case the program is killed before it ends.
func (s *serving) began(u access.Use) (ended func(access.Use)) {
	end, err := s.ledger.Begin(u)
	if err != nil {
		s.errors.Printf("the usage of a response is not recorded if this program is killed: %v", err)
		return func(u access.Use) {
			if !u.At.IsZero() {
				s.record(u)
			}
		}
	}
	return func(u access.Use) {
		if err := end(u); err != nil {
			s.errors.Printf("the usage of a response is recorded when this server starts again, as an estimate: %v", err)
		}
	}
}

// ready asks the store for a session.
func (s *serving) ready(ctx context.Context) error {
	for _, err := range s.store.List(ctx, session.Query{Limit: 1}) {
		return err
	}
	return nil
}

// run serves until ctx is done.
func (s *serving) run(ctx context.Context, l net.Listener) error {
	until, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.until = until
	s.guard.Linger, s.guard.CloseFirst = s.DrainDelay, s.given
	if s.DrainDelay > 0 {
		defer context.AfterFunc(ctx, func() {
			s.errors.Printf("ending: takes requests for %s more, while /readyz says 503; a second signal ends at once", s.DrainDelay)
		})()
	}
	defer s.watch(ctx)()
	err := s.guard.Serve(ctx, l, func() {
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
		defer stop()
		if n := s.guard.Counts().Running; n > 0 {
			s.errors.Printf("ending: no request is taken any more; waits up to %s for %s, and a second signal ends at once", s.Drain, show.Plural(n, "response"))
		}
		s.mu.Lock()
		list := s.backends
		s.mu.Unlock()
		var all sync.WaitGroup
		if s.upstreams != nil {
			all.Go(func() { s.upstreams.Drain(bounded) })
		}
		for _, b := range list {
			all.Go(func() { b.Drain(bounded) })
		}
		all.Wait()
	})
	stop()
	s.senders.Wait()
	for _, keep := range s.kept {
		err = errors.Join(err, keep.Close())
	}
	return errors.Join(err, s.ledger.Close())
}

// say tells where the server listens, and how to try it.
func (s *serving) say(std stdio, env environment, at net.Addr) error {
	keys, err := s.guard.Required()
	if err != nil {
		return usage(err)
	}
	scheme, key := "http", ""
	if s.TLSCert != "" {
		scheme = "https"
	}
	if keys {
		key = " -H 'Authorization: Bearer KEY'"
		needed := "a key"
		if s.Issuer != "" {
			needed = "a key, or a token of " + show.Visible(s.Issuer)
		}
		fmt.Fprintln(std.err, "antiphon: every request needs "+needed)
		if s.Issuer == "" {
			if err := s.warnOfNoKey(std, env); err != nil {
				return err
			}
		}
		if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && s.TLSCert == "" {
			fmt.Fprintln(std.err, "antiphon: warning: keys and messages are sent without encryption: use --tls-cert and --tls-key, or a proxy that encrypts")
		}
	}
	path, body := "models", ""
	if s.agents != nil {
		path, body = "responses", fmt.Sprintf(` -H 'Content-Type: application/json' -d '{"model":"%s","input":"Hello"}'`, show.Visible(s.agents.Agents[0].Name))
	}
	if _, unix := at.(*net.UnixAddr); unix {
		fmt.Fprintf(std.err, "antiphon: serving at %s%s; to try it:\n  curl --unix-socket %s %s://localhost%s/v1/%s%s%s\n", unixPrefix, show.Visible(at.String()), show.Visible(quoted(at.String())), scheme, s.Base, path, key, body)
		return nil
	}
	fmt.Fprintf(std.err, "antiphon: serving at %s://%s%s/v1; to try it:\n  curl %[1]s://%[2]s%[3]s/v1/%s%s%s\n", scheme, at, s.Base, path, key, body)
	return nil
}
