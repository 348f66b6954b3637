// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/transport"
)

// Defaults of [Config].
const (
	DefaultIdleTimeout = transport.DefaultIdleTimeout // 5 minutes
	DefaultMaxBody     = transport.DefaultMaxBody     // 256 MiB
	DefaultUserAgent   = transport.DefaultUserAgent
)

// Config says how a client reaches an endpoint. The clients of all dialects have these fields;
// responses.Client and completions.Client are types of this form. The zero value is for
// api.openai.com, without a key.
//
// A Config is safe for concurrent use while its fields do not change. It stores what answers reveal
// about the endpoint, so it must not be copied after its first use.
type Config struct {
	// BaseURL is the URL before the dialect's own path, such as /responses; see [endpoint.URL] for
	// the accepted forms. Empty means [endpoint.DefaultBaseURL].
	BaseURL string
	// Key is sent as a bearer token, or in the header that the profile names. It goes only to the
	// host of BaseURL. The zero Key is not sent.
	Key endpoint.Key
	// Account names the account of Key, if the profile has a header for it.
	Account string
	// Refresh, if set, returns a new key after the endpoint refused the old one. The request is
	// then repeated once. Refresh may be called from several goroutines at once.
	Refresh func(context.Context) (endpoint.Key, error)
	// Header is added to each request. An Authorization header in it replaces Key.
	Header http.Header
	// UserAgent is the name of the program. Empty means [DefaultUserAgent].
	UserAgent string
	// Profile is the kind of endpoint. Nil means the profile that Table has for BaseURL. If the
	// address does not identify the kind of server, the answers may, from the second request on.
	Profile *endpoint.Profile
	// Table holds the profiles and models. Nil means the built-in table.
	Table *endpoint.Table

	// HTTP sends the requests. Nil means a client that all Configs share. Its Timeout, if set, ends
	// long answers. The client follows redirects only within a host, and only if the body is sent
	// again; after that it calls the redirect policy of HTTP. If its Transport is nil or an
	// *http.Transport that may ask for packed answers, they are unpacked here, within bounds. Another
	// Transport that unpacks answers by itself has to limit what they become.
	HTTP *http.Client
	// Retry limits how often a request is repeated, if the context has no [endpoint.Budget].
	Retry endpoint.Retry
	// OnRetry, if set, is called before each wait with the error, the length of the wait, and the
	// number of the failed attempt, counted from 1.
	OnRetry func(err error, wait time.Duration, attempt int)

	// IdleTimeout is how long the endpoint may send nothing, not even comments, before the request
	// fails. Without streaming this is the model's whole thinking time. A stream with only comments
	// and keepalives fails after twelve times this timeout. 0 means [DefaultIdleTimeout]; a
	// negative value means no limit.
	IdleTimeout time.Duration
	// MaxEvent limits one event of a stream, in bytes. 0 means 256 MiB. All events of a stream
	// together may have 1 GiB, or four times MaxEvent if that is more.
	MaxEvent int
	// MaxBody limits an answer that is not a stream, in bytes. 0 means [DefaultMaxBody].
	MaxBody int64

	// OnLoss, if set, receives what the dialect cannot express: for each item once, when it is
	// first sent, and for each request and answer. A request that would lose images, files or texts
	// is not sent. OnLoss may be called from several goroutines at once. The Responses API loses
	// nothing.
	OnLoss func([]Loss)

	discovered transport.Discovered
}

// Transport returns the configuration for the package that sends requests. It is only for clients
// in this module.
func (c *Config) Transport() *transport.Config {
	if c == nil {
		c = &Config{BaseURL: "nil:"} // not the default address: a nil client sends nothing
	}
	return &transport.Config{
		BaseURL: c.BaseURL, Key: c.Key, Account: c.Account, Refresh: c.Refresh, Header: c.Header, UserAgent: c.UserAgent, Profile: c.Profile, Table: c.Table,
		HTTP: c.HTTP, Retry: c.Retry, OnRetry: c.OnRetry,
		IdleTimeout: c.IdleTimeout, MaxEvent: c.MaxEvent, MaxBody: c.MaxBody,
		Discovered: &c.discovered,
	}
}

func (c *Config) lost(losses []Loss) {
	if c.OnLoss != nil && len(losses) > 0 {
		c.OnLoss(losses)
	}
}

// Client is a client of one endpoint that uses a dialect. It is a model for package agent, like
// responses.Client. For a request that was sent, every error is or wraps an [*endpoint.Error]. A
// request that was not sent because it is known to be refused gives an [*endpoint.RefusedError].
//
// A Client holds two references and may be copied. Both must be set: without them requests fail.
type Client struct {
	*Config
	Dialect Dialect
}

// Opener is a [Dialect] that has its own client, for features that only its API has.
type Opener interface {
	Open(*Config) Model
}

// Open returns the client of a dialect: the dialect's own if it is an [Opener], otherwise a
// [Client].
func Open(d Dialect, c *Config) Model {
	if o, ok := d.(Opener); ok && !nils.Is(d) {
		return o.Open(c)
	}
	return Client{c, d}
}

// Model is the interface of a client that package agent uses.
type Model interface {
	Stream(context.Context, *api.Request) iter.Seq2[api.Event, error]
}

// RetryPolicy returns Retry. A run of package agent uses it, so that the client
// and the loop share one budget.
func (c Client) RetryPolicy() endpoint.Retry {
	if c.Config == nil {
		return endpoint.Retry{}
	}
	return c.Retry
}

// Window returns the size of the model's context window in tokens, as the endpoint reports it, or
// 0. Few endpoints report it. Only these are asked, once for each model, and for at most a second.
func (c Client) Window(ctx context.Context, model string) int64 {
	link, _ := c.link()
	return link.Window(ctx, model)
}

// About says where requests go.
func (c Client) About() endpoint.About {
	link, _ := c.link()
	return link.About(c.info().Name)
}

// Recall gives the client an earlier result of [Client.About], possibly from another client. It
// applies if the address is the same and does not identify the kind of server, and Profile is nil.
// The first request then uses the profile that was found from the server's answers before. A run of
// package agent calls Recall.
func (c Client) Recall(before endpoint.About) {
	link, _ := c.link()
	link.Recall(before)
}

// link returns the configuration with the base URL, and the path relative to it. The path is "" if
// the dialect or the profile decides it.
func (c Client) link() (link *transport.Config, path string) {
	link = c.Transport()
	link.BaseURL, path = address(link.BaseURL, c.info().Path)
	return link, path
}

// info returns the description of the dialect, if there is one.
func (c Client) info() Info {
	if nils.Is(c.Dialect) {
		return Info{}
	}
	return c.Dialect.Info()
}

// address splits a base URL that ends with the dialect's path or with /responses. The base is the
// part before it, plus the path's segments except the last, even if the base is only a host.
func address(given, path string) (base, rest string) {
	cut := strings.LastIndexByte(path, '/')
	if cut <= 0 {
		return given, "" // one segment: endpoint.URL handles it
	}
	base, query, hasQuery := strings.Cut(strings.TrimSpace(given), "?")
	trimmed := strings.TrimRight(base, "/")
	for _, end := range []string{path, "/responses"} {
		before, ok := strings.CutSuffix(trimmed, end)
		if !ok {
			continue
		}
		if base, rest = before+path[:cut], path[cut:]; hasQuery {
			base += "?" + query
		}
		return base, rest
	}
	return given, ""
}

var errIncomplete = errors.New("dialect: the Client has no Config or no Dialect, or the *Request is nil")

// send makes the request, with retries.
func (c Client) send(ctx context.Context, req *api.Request, stream bool, try func(*transport.Call) (again bool, err error)) error {
	if c.Config == nil || nils.Is(c.Dialect) || req == nil {
		return errIncomplete
	}
	link, path := c.link()
	return link.Send(ctx, func(profile *endpoint.Profile) (*transport.Shaped, error) {
		return c.shape(ctx, link, path, profile, req, stream)
	}, try)
}

// shape encodes the request for the kind of endpoint, once for all attempts.
func (c Client) shape(ctx context.Context, link *transport.Config, path string, profile *endpoint.Profile, req *api.Request, stream bool) (*transport.Shaped, error) {
	fits := profile
	if c.Dialect.Info().Name != endpoint.APIResponses && profile.MinOutputTokens > 0 { // the minimum is of that API
		own := *profile
		own.MinOutputTokens, fits = 0, &own
	}
	fitted, err := link.Fit(req, fits)
	if err != nil {
		return nil, err
	}
	own := *fitted
	m, err := c.Dialect.Encode(Outgoing{Request: &own, Given: req, Stream: stream, Profile: profile, Table: c.Table})
	if err != nil {
		return nil, err
	}
	c.lost(m.Losses)
	info := c.Dialect.Info()
	r := transport.Request{Op: info.Op, Path: cmp.Or(path, m.Path, info.Path), Body: m.Body, Secrets: transport.ToolSecrets(req.Tools)}
	if stream {
		r.Accept = transport.TypeEvents
	}
	k, err := link.Call(ctx, r)
	return &transport.Shaped{Call: k, Given: req.Input, Sent: fitted.Input, Item: m.Item}, err
}
