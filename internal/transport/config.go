// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport sends HTTP requests to an endpoint. The clients of all wire
// APIs share it. A [Config] is a client's configuration, a [Call] is one request
// with all its attempts, and an [Exchange] is one attempt that was answered. The
// package handles retries, keys, redirects and silence; what an answer means is
// decided by its caller.
package transport

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Defaults of a client.
const (
	DefaultIdleTimeout = 5 * time.Minute
	DefaultMaxBody     = 256 << 20
	DefaultUserAgent   = "antiphon"
)

// Config is the configuration of a client; responses.Client documents the fields. Discovered is
// kept between calls.
type Config struct {
	BaseURL     string
	Key         endpoint.Key
	Refresh     func(context.Context) (endpoint.Key, error)
	Account     string
	Header      http.Header
	UserAgent   string
	Profile     *endpoint.Profile
	Table       *endpoint.Table
	HTTP        *http.Client
	Retry       endpoint.Retry
	OnRetry     func(err error, wait time.Duration, attempt int)
	IdleTimeout time.Duration
	MaxEvent    int
	MaxBody     int64

	Discovered *Discovered
}

// Discovered is what a client has learned about its endpoint. The zero value is ready to use. It is
// safe for concurrent use.
type Discovered struct {
	key     atomic.Pointer[endpoint.Key]
	profile atomic.Pointer[endpoint.Profile]
	// recalled equals profile if an earlier client learned it and no answer has confirmed it yet.
	recalled atomic.Pointer[endpoint.Profile]

	place atomic.Pointer[place]
	sent  atomic.Pointer[identity]
	shown atomic.Pointer[shown]

	// Floats is set if the endpoint refuses embeddings as base64.
	Floats atomic.Bool

	asking  sync.Mutex // held while windows is used
	windows windows
}

// shown is a base URL without secrets, for logs.
type shown struct{ base, url string }

// identity caches the headers for a profile, a key and an account, which are the same for most
// requests.
type identity struct {
	profile *endpoint.Profile
	key     endpoint.Key
	account string
	header  http.Header // must not be changed
}

// headers returns the profile's headers for the key and the account. The caller must not change
// them.
func (d *Discovered) headers(p *endpoint.Profile, key endpoint.Key, account string) http.Header {
	if o := d.sent.Load(); o != nil && o.profile == p && o.key == key && o.account == account {
		return o.header
	}
	o := &identity{p, key, account, http.Header{}}
	p.SetHeader(o.header, key, account)
	d.sent.Store(o)
	return o.header
}

// place caches the URL of the last request, since most requests use the same one.
type place struct {
	by  address
	url *url.URL // must not be changed
}

type address struct{ base, path, basePath, responsesPath string }

func (c *Config) key() endpoint.Key {
	if k := c.Discovered.key.Load(); k != nil {
		return *k
	}
	return c.Key
}

func (c *Config) idle() time.Duration {
	return max(cmp.Or(c.IdleTimeout, DefaultIdleTimeout), 0)
}

// Base returns the base URL, or the default.
func (c *Config) Base() string { return cmp.Or(c.BaseURL, endpoint.DefaultBaseURL) }

// Known returns the endpoint's profile: the configured profile, the one learned from answers, or
// the one detected from the URL. For the same profile it always returns the same pointer. The error
// is an [*endpoint.URLError].
func (c *Config) Known() (*endpoint.Profile, error) {
	if c.Profile != nil {
		return c.Profile, nil
	}
	if p := c.Discovered.profile.Load(); p != nil {
		return p, nil
	}
	u, err := endpoint.URL(c.Base(), "/")
	if err != nil {
		return nil, err
	}
	p := c.Table.Detect(u)
	c.Discovered.profile.CompareAndSwap(nil, &p)
	return c.Discovered.profile.Load(), nil
}

// About describes the endpoint. It is cheap, because most turns of a run call it.
func (c *Config) About(api string) endpoint.About {
	a := endpoint.About{API: api, Transport: "http"}
	base := c.Base()
	if last := c.Discovered.shown.Load(); last != nil && last.base == base {
		a.URL = last.url
	} else if u, err := endpoint.URL(base, "/"); err == nil {
		a.URL = strings.TrimSuffix(endpoint.ShowURL(u), "/")
		c.Discovered.shown.Store(&shown{base, a.URL})
	}
	if p, err := c.Known(); err == nil {
		a.Profile = p.Name
	}
	return a
}

// Recall restores the kind of server that an earlier client learned from answers. It applies if the
// address is the same and does not identify the server, and no profile is configured. Later answers
// take precedence.
func (c *Config) Recall(before endpoint.About) {
	if c.Profile != nil || before.URL != c.About("").URL {
		return
	}
	known, err := c.Known()
	if err != nil || known.Name != endpoint.Careful.Name {
		return
	}
	p, err := c.Table.ByName(before.Profile)
	if err != nil || p.Name == known.Name {
		return
	}
	if c.Discovered.profile.CompareAndSwap(known, &p) {
		c.Discovered.recalled.Store(&p)
	}
}

// learn stores the kind of server that an answer reveals, if it is not known otherwise.
func (c *Config) learn(resp *http.Response) {
	known := c.Discovered.profile.Load()
	if c.Profile != nil || known == nil {
		return
	}
	recalled := known == c.Discovered.recalled.Load()
	if known.Name != endpoint.Careful.Name && !recalled {
		return
	}
	p, ok := c.Table.DetectServer(resp.Header.Get("Server"))
	switch {
	case ok && p.Name != known.Name:
		told := p // a profile is large: allocated only if it is stored
		c.Discovered.profile.CompareAndSwap(known, &told)
	case !ok && recalled && len(known.Servers) > 0 && resp.StatusCode < http.StatusInternalServerError:
		// Another server is at the address now. Server errors do not count, since a proxy may send
		// them.
		careful := endpoint.Careful
		if p, err := c.Table.ByName(careful.Name); err == nil {
			careful = p
		}
		c.Discovered.profile.CompareAndSwap(known, &careful)
	}
}

// URL returns the URL of a path relative to the base URL. The caller may change the result.
func (c *Config) URL(p *endpoint.Profile, path string, query url.Values) (*url.URL, error) {
	u, err := c.find(p, path)
	if err != nil {
		return nil, err
	}
	own := *u
	own.RawQuery = joined(u, query)
	return &own, nil
}

// joined returns the URL's query with more parameters.
func joined(u *url.URL, more url.Values) string {
	if len(more) == 0 {
		return u.RawQuery
	}
	all := u.Query()
	for name, values := range more {
		all[name] = values
	}
	return all.Encode()
}

// find returns the URL of a path with the base URL's query.
func (c *Config) find(p *endpoint.Profile, path string) (*url.URL, error) {
	by := address{c.Base(), path, p.BasePath, p.ResponsesPath}
	if last := c.Discovered.place.Load(); last != nil && last.by == by {
		return last.url, nil
	}
	u, err := p.URL(c.Base(), path)
	if err == nil {
		c.Discovered.place.Store(&place{by, u})
	}
	return u, err
}

// sharedHTTP keeps more idle connections than net/http does by default, because many runs use the
// same endpoint, and each turn of each would connect anew. It sends a history without copying it.
var sharedHTTP = sync.OnceValue(func() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient // the program has replaced the default transport
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 2048, 1024
	t.DialContext = straight(t.DialContext)
	return &http.Client{Transport: unpacking{t}}
})

// client returns the HTTP client with guarded redirects.
func (c *Config) client() http.Client {
	own := *cmp.Or(c.HTTP, sharedHTTP())
	if t, ok := cmp.Or(own.Transport, http.DefaultTransport).(*http.Transport); ok && !t.DisableCompression {
		own.Transport = unpacking{t}
	}
	if own.CheckRedirect == nil {
		own.CheckRedirect = guarded
	} else {
		own.CheckRedirect = guardRedirects(own.CheckRedirect)
	}
	return own
}

// newID returns an id for a request, so that the server can recognize a repetition. It is not
// secret.
func newID() string { return "antiphon-" + rand.Text() }

// Fallback returns the profile to try if err says that the endpoint did not understand the request,
// or nil. It returns nil if a profile was configured.
func (c *Config) Fallback(p *endpoint.Profile, err error) *endpoint.Profile {
	if err == nil || c.Profile != nil || p.Fallback == "" || !malformed(err) {
		return nil
	}
	other, unknown := c.Table.ByName(p.Fallback)
	if unknown != nil {
		return nil
	}
	return &other
}

// Adopt switches to the fallback if the endpoint understood the request, and reports whether it
// did.
func (c *Config) Adopt(p, fallback *endpoint.Profile, err error) bool {
	if malformed(err) {
		return false
	}
	c.Discovered.profile.CompareAndSwap(p, fallback)
	return true
}

// malformed reports whether the endpoint rejected the request's input, or did not say what it
// rejected.
func malformed(err error) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && e.Class == endpoint.BadRequest &&
		(e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) &&
		(e.Param == "" || strings.HasPrefix(e.Param, "input") || strings.HasPrefix(e.Param, "messages"))
}

// Instead prepares the other call to replace k, with the same retry budget. It returns false if the
// bodies are the same or the budget is spent.
func (k *Call) Instead(other *Call) bool {
	if k.body.Equal(other.body) || !k.budget.Take() {
		return false
	}
	other.budget, other.attempt = k.budget, k.attempt
	return true
}

// windowTime limits the request for a context window, windowBytes the part of its answer that is
// read.
const (
	windowTime  = time.Second
	windowBytes = 1 << 20
)

// windows holds the reported context windows of models by name; 0 means that none was reported.
type windows map[string]int64

// Window returns the size of the model's context window in tokens, as the endpoint reports it, or
// 0. It asks once for each model, only if the profile names an address for it, and waits for at
// most a second. Call it after a reply, since servers load a model with the first request for it.
func (c *Config) Window(ctx context.Context, model string) int64 {
	p, err := c.Known()
	if err != nil || len(p.Windows) == 0 {
		return 0
	}
	c.Discovered.asking.Lock()
	defer c.Discovered.asking.Unlock()
	if n, known := c.Discovered.windows[model]; known {
		return n
	}
	asking, stop := context.WithTimeout(ctx, windowTime)
	defer stop()
	n := int64(0)
	for _, path := range p.Windows {
		if n = c.windowAt(asking, p, path, model); n > 0 {
			break
		}
	}
	if n == 0 && ctx.Err() != nil {
		return 0 // the caller did not wait for the answer, so the next call asks again
	}
	if c.Discovered.windows == nil {
		c.Discovered.windows = windows{}
	}
	c.Discovered.windows[model] = n
	return n
}

// windowAt asks at one address: relative to the base URL, or to the server's root if the path
// begins with "//".
func (c *Config) windowAt(ctx context.Context, p *endpoint.Profile, path, model string) int64 {
	below, atRoot := strings.CutPrefix(path, "//")
	if atRoot {
		path = "/" + below
	}
	u, err := c.URL(p, path, nil)
	if err != nil {
		return 0
	}
	if base, ok := strings.CutSuffix(u.Path, p.BasePath+path); atRoot && ok {
		u.Path, u.RawPath = base+path, ""
	}
	k := &Call{config: c, profile: p, method: http.MethodGet, http: c.client(), url: u, accept: TypeJSON, key: c.key()}
	resp, err := k.http.Do(k.request(ctx))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, windowBytes))
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0
	}
	return endpoint.WindowIn(text, model)
}

// Shaped is a request in the form that a profile requires.
type Shaped struct {
	Call *Call
	// Given is the caller's input, and Sent is the input as sent.
	Given, Sent *item.List
	// Item returns the index in Sent of the item that an error's parameter names. The index is -1
	// if the parameter names several items or an unknown one. Ok is false if the parameter is not
	// about the input. A nil Item handles "input[3]".
	Item func(param string) (index int, ok bool)
}

// Send makes a request, with retries. If an unknown endpoint does not understand the request, Send
// tries it once more in the form of the profile's fallback, if that form differs.
func (c *Config) Send(ctx context.Context, shape func(*endpoint.Profile) (*Shaped, error), try func(*Call) (again bool, err error)) error {
	profile, err := c.Known()
	if err != nil {
		return err
	}
	s, err := shape(profile)
	if err != nil {
		return err
	}
	err = s.Call.Retry(ctx, func() (bool, error) { return try(s.Call) })
	fallback := c.Fallback(profile, err)
	if fallback == nil {
		return s.blame(err)
	}
	other, unfit := shape(fallback)
	if unfit != nil || !s.Call.Instead(other.Call) {
		return s.blame(err)
	}
	second := other.Call.Retry(ctx, func() (bool, error) { return try(other.Call) })
	if c.Adopt(profile, fallback, second) {
		return other.blame(second)
	}
	return s.blame(err)
}

// blame returns err with the index of the rejected item in the caller's input, if the endpoint
// names an item.
func (s *Shaped) blame(err error) error {
	if err == nil || s.Item == nil {
		return Refusal(err, s.Given, s.Sent)
	}
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.BadRequest {
		return err
	}
	i, ok := s.Item(e.Param)
	if !ok {
		return err
	}
	return RefusedAt(e, s.Given, s.Sent, i)
}
