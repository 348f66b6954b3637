// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Defaults of [Client].
const (
	DefaultIdleTimeout = wire.DefaultIdleTimeout // 5 minutes
	DefaultMaxBody     = wire.DefaultMaxBody     // 256 MiB
	DefaultUserAgent   = wire.DefaultUserAgent
)

// Client speaks Chat Completions to one endpoint, in the words of the Responses
// API. The zero value speaks to api.openai.com, without a key. It is safe for
// concurrent use while its fields do not change, and must not be copied after
// its first use. All errors that its methods return for a request that was sent
// are an [*endpoint.Error].
//
// What the fields from Key to MaxBody mean in full, their defaults too, is said
// at those of responses.Client: they are the same.
type Client struct {
	// BaseURL is the part before /chat/completions; see [endpoint.URL] for what
	// is accepted. That the address of chat completions or of responses is given
	// is taken as well. Empty means [endpoint.DefaultBaseURL].
	BaseURL string

	// Key is sent to the host of BaseURL and no other.
	Key endpoint.Key
	// Account names the account that Key is for.
	Account string
	// Refresh, if set, is asked for a new key.
	Refresh func(context.Context) (endpoint.Key, error)
	// Header is added to each request.
	Header http.Header
	// UserAgent names the program.
	UserAgent string
	// Profile is the endpoint's kind; nil means the one found by the address.
	Profile *endpoint.Profile
	// Table holds the profiles and models to go by. Nil means the built-in one.
	Table *endpoint.Table
	// HTTP sends the requests; nil means a client of this package's own.
	HTTP *http.Client
	// Retry says how often a request is repeated.
	Retry endpoint.Retry
	// OnRetry, if set, is called before each wait.
	OnRetry func(err error, wait time.Duration, attempt int)

	// IdleTimeout is how long the endpoint may send nothing at all. A stream of
	// comments alone is given up after twelve times that.
	IdleTimeout time.Duration
	// MaxEvent bounds one event of a stream, in bytes.
	MaxEvent int
	// MaxBody bounds an answer that is not a stream, in bytes.
	MaxBody int64

	// Options say how messages are written. Nil means [OptionsFor] the profile.
	Options *Options
	// OnLoss, if set, is called with what has no form in Chat Completions: of each
	// item once, when it is first sent, and of each request and answer. A
	// request whose images, files or texts would be lost is not sent at all. It
	// may be called from several goroutines at once.
	OnLoss func([]Loss)

	learned wire.Learned
}

// link is the client as the layer below sees it.
func (c *Client) link() *wire.Link {
	base, _ := c.address()
	return &wire.Link{
		BaseURL: base, Key: c.Key, Account: c.Account, Refresh: c.Refresh, Header: c.Header, UserAgent: c.UserAgent, Profile: c.Profile, Table: c.Table,
		HTTP: c.HTTP, Retry: c.Retry, OnRetry: c.OnRetry,
		IdleTimeout: c.IdleTimeout, MaxEvent: c.MaxEvent, MaxBody: c.MaxBody,
		Learned: &c.learned,
	}
}

// address is the base URL, and the path below it that is asked, "" for the
// profile's. From a base that names an endpoint itself, the part that chat
// completions share with it is taken, even if that is nothing but a host.
func (c *Client) address() (base, path string) {
	base, query, hasQuery := strings.Cut(strings.TrimSpace(c.BaseURL), "?")
	trimmed := strings.TrimRight(base, "/")
	for _, end := range []string{chatPath, "/responses"} {
		if before, ok := strings.CutSuffix(trimmed, end); ok {
			base, path = before+"/chat", "/completions"
			break
		}
	}
	if path == "" {
		return c.BaseURL, ""
	}
	if hasQuery {
		base += "?" + query
	}
	return base, path
}

func (c *Client) lost(losses []Loss) {
	if c.OnLoss != nil && len(losses) > 0 {
		c.OnLoss(losses)
	}
}

// maxNamed bounds what a note names of one reply.
const maxNamed = 10

// lostOf tells of what was lost of a reply. Words that the model said, such as those
// of a second choice, are noted too, so that the log of a run says that it lacks them.
func (c *Client) lostOf(ctx context.Context, x *wire.Exchange, losses []Loss) {
	c.lost(losses)
	take := item.NotesOf(ctx)
	if take == nil {
		return
	}
	var named []string
	for _, l := range losses {
		if l.Kind == LostContent && len(named) < maxNamed {
			named = append(named, l.String())
		}
	}
	if len(named) > 0 {
		take(item.Note{Kind: item.NoteLost, OutputIndex: -1,
			Text: x.Hide("the reply holds what a response has no place for, and it is not kept: " + strings.Join(named, "; "))})
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
func (c *Client) About() endpoint.About { return c.link().About(endpoint.APIChat) }

// Recall tells the client what [Client.About] said when the endpoint was last
// asked, by another client perhaps. Where the address is the same, tells nothing
// of the kind of server, and Profile is nil, the first request is made for the
// kind that the server's answers told then. A run of package agent calls it.
func (c *Client) Recall(before endpoint.About) { c.link().Recall(before) }
