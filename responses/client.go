// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
)

// Defaults of [Client].
const (
	DefaultIdleTimeout = wire.DefaultIdleTimeout // 5 minutes
	DefaultMaxBody     = wire.DefaultMaxBody     // 256 MiB
	DefaultUserAgent   = wire.DefaultUserAgent
)

// Client speaks to one endpoint. The zero value speaks to api.openai.com,
// without a key. It is safe for concurrent use while its fields do not change,
// and must not be copied after its first use. All errors that its methods
// return for a request that was sent are or wrap an [*endpoint.Error]; one that
// was not sent, since it is known not to be taken, is an
// [*endpoint.RefusedError].
type Client struct {
	// BaseURL is the part before /responses; see [endpoint.URL] for what is
	// accepted. Empty means [endpoint.DefaultBaseURL].
	BaseURL string
	// Key is sent as a bearer token, or in the header of the profile, to the
	// host of BaseURL and no other. The zero Key sends none.
	Key endpoint.Key
	// Account names the account that Key is for, where the profile has a header
	// for that.
	Account string
	// Refresh, if set, is asked for a new key when the endpoint refuses the one
	// it got. The request is then repeated once. It may be called from several
	// goroutines at once.
	Refresh func(context.Context) (endpoint.Key, error)
	// Header is added to each request. An Authorization in it takes the place
	// of Key.
	Header http.Header
	// UserAgent names the program. Empty means [DefaultUserAgent].
	UserAgent string
	// Profile is the endpoint's kind. Nil means the one that Table has for
	// BaseURL; of a server that is not known by its address, what its answers
	// say of it counts from the second request on.
	Profile *endpoint.Profile
	// Table holds the profiles and models to go by. Nil means the built-in one.
	Table *endpoint.Table

	// HTTP sends the requests; nil means a client of this package's own, which all
	// Clients share. A Timeout set on it ends long answers. Its redirect policy is
	// asked after this package's, which follows redirects only within a host and
	// only where the body is sent again.
	HTTP *http.Client
	// Retry says how often a request is repeated, where the context brings no
	// [endpoint.Budget] of its own.
	Retry endpoint.Retry
	// OnRetry, if set, is called before each wait, with what failed, how long the
	// wait is, and which attempt just failed, counted from 1.
	OnRetry func(err error, wait time.Duration, attempt int)

	// IdleTimeout is how long the endpoint may send nothing at all, comments
	// included, before a request is given up. Without streaming that is the
	// whole time the model thinks. A stream of comments and keepalives alone is
	// given up after twelve times that. 0 means [DefaultIdleTimeout], below 0 none.
	IdleTimeout time.Duration
	// MaxEvent bounds one event of a stream, in bytes. 0 means 256 MiB.
	MaxEvent int
	// MaxBody bounds an answer that is not a stream, in bytes. 0 means
	// [DefaultMaxBody].
	MaxBody int64

	learned wire.Learned
}

// link is the client as the layer below sees it.
func (c *Client) link() *wire.Link {
	return &wire.Link{
		BaseURL: c.BaseURL, Key: c.Key, Account: c.Account, Refresh: c.Refresh, Header: c.Header, UserAgent: c.UserAgent, Profile: c.Profile, Table: c.Table,
		HTTP: c.HTTP, Retry: c.Retry, OnRetry: c.OnRetry,
		IdleTimeout: c.IdleTimeout, MaxEvent: c.MaxEvent, MaxBody: c.MaxBody,
		Learned: &c.learned,
	}
}

// RetryPolicy returns Retry. A run of package agent goes by it, so that the
// client and the loop share one budget.
func (c *Client) RetryPolicy() endpoint.Retry { return c.Retry }

// Window returns how many tokens the endpoint says that the model's context has,
// or 0. Few say so; those are asked once for each model, for a second at most.
func (c *Client) Window(ctx context.Context, model string) int64 {
	return c.link().Window(ctx, model)
}

// About says where requests go.
func (c *Client) About() endpoint.About { return c.link().About(endpoint.APIResponses) }

// Recall tells the client what [Client.About] said when the endpoint was last
// asked, by another client perhaps. Where the address is the same, tells nothing
// of the kind of server, and Profile is nil, the first request is made for the
// kind that the server's answers told then. A run of package agent calls it.
func (c *Client) Recall(before endpoint.About) { c.link().Recall(before) }
