// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
)

// Defaults of a client.
const (
	DefaultIdleTimeout = 5 * time.Minute
	DefaultMaxBody     = 256 << 20
	DefaultUserAgent   = "antiphon"
)

// Link is what a client's fields say about its endpoint; responses.Client
// documents them. Learned outlives the calls.
type Link struct {
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

	Learned *Learned
}

// Learned is what a client found out about its endpoint. The zero value is
// ready; it is safe for concurrent use.
type Learned struct {
	key     atomic.Pointer[endpoint.Key]
	profile atomic.Pointer[endpoint.Profile]
	// recalled is what profile is if earlier answers told it, and no answer since.
	recalled atomic.Pointer[endpoint.Profile]

	place atomic.Pointer[place]
	own   atomic.Pointer[own]
	shown atomic.Pointer[shown]

	asking  sync.Mutex // held while windows is used
	windows windows
}

// shown is a base URL as logs may hold it.
type shown struct{ base, url string }

// own are the headers that a profile, a key and an account make, which are the
// same for most requests.
type own struct {
	profile *endpoint.Profile
	key     endpoint.Key
	account string
	header  http.Header // not to be changed
}

// headers returns what the profile writes of the key and the account. It is not
// to be changed.
func (l *Learned) headers(p *endpoint.Profile, key endpoint.Key, account string) http.Header {
	if o := l.own.Load(); o != nil && o.profile == p && o.key == key && o.account == account {
		return o.header
	}
	o := &own{p, key, account, http.Header{}}
	p.SetHeader(o.header, key, account)
	l.own.Store(o)
	return o.header
}

// place is where a request went, and what that was found by: most requests go
// where the last one went.
type place struct {
	by  address
	url *url.URL // not to be changed
}

type address struct{ base, path, basePath, responsesPath string }

func (l *Link) key() endpoint.Key {
	if k := l.Learned.key.Load(); k != nil {
		return *k
	}
	return l.Key
}

func (l *Link) idle() time.Duration {
	return max(cmp.Or(l.IdleTimeout, DefaultIdleTimeout), 0)
}

// Base returns the base URL as given or the default.
func (l *Link) Base() string { return cmp.Or(l.BaseURL, endpoint.DefaultBaseURL) }

// Known returns the endpoint's profile: the one that was set, the one that its
// answers told, or the one that its URL tells; always the same pointer for what
// is the same. The error is an [*endpoint.URLError].
func (l *Link) Known() (*endpoint.Profile, error) {
	if l.Profile != nil {
		return l.Profile, nil
	}
	if p := l.Learned.profile.Load(); p != nil {
		return p, nil
	}
	u, err := endpoint.URL(l.Base(), "/")
	if err != nil {
		return nil, err
	}
	p := l.Table.Detect(u)
	l.Learned.profile.CompareAndSwap(nil, &p)
	return l.Learned.profile.Load(), nil
}

// About says where the link leads. It costs little: most turns of a run ask.
func (l *Link) About(api string) endpoint.About {
	a := endpoint.About{API: api, Transport: "http"}
	base := l.Base()
	if last := l.Learned.shown.Load(); last != nil && last.base == base {
		a.URL = last.url
	} else if u, err := endpoint.URL(base, "/"); err == nil {
		a.URL = strings.TrimSuffix(endpoint.ShowURL(u), "/")
		l.Learned.shown.Store(&shown{base, a.URL})
	}
	if p, err := l.Known(); err == nil {
		a.Profile = p.Name
	}
	return a
}

// Recall takes the kind of server that answers told an earlier link, where the
// address is the same and tells nothing, and nobody says which kind it is. What an
// answer tells from now on counts for more.
func (l *Link) Recall(before endpoint.About) {
	if l.Profile != nil || before.URL != l.About("").URL {
		return
	}
	known, err := l.Known()
	if err != nil || known.Name != endpoint.Careful.Name {
		return
	}
	p, err := l.Table.ByName(before.Profile)
	if err != nil || p.Name == known.Name {
		return
	}
	if l.Learned.profile.CompareAndSwap(known, &p) {
		l.Learned.recalled.Store(&p)
	}
}

// learn takes the kind of server that an answer tells, where nothing else did.
func (l *Link) learn(resp *http.Response) {
	known := l.Learned.profile.Load()
	if l.Profile != nil || known == nil {
		return
	}
	recalled := known == l.Learned.recalled.Load()
	if known.Name != endpoint.Careful.Name && !recalled {
		return
	}
	p, ok := l.Table.DetectServer(resp.Header.Get("Server"))
	switch {
	case ok && p.Name != known.Name:
		told := p // a profile is large: on the heap only when it is told
		l.Learned.profile.CompareAndSwap(known, &told)
	case !ok && recalled && len(known.Servers) > 0 && resp.StatusCode < http.StatusInternalServerError:
		// Another server is there now. An outage is what a proxy may tell of.
		careful := endpoint.Careful
		if p, err := l.Table.ByName(careful.Name); err == nil {
			careful = p
		}
		l.Learned.profile.CompareAndSwap(known, &careful)
	}
}

// URL returns the URL of a path below the base URL. It is the caller's own.
func (l *Link) URL(p *endpoint.Profile, path string, query url.Values) (*url.URL, error) {
	u, err := l.find(p, path)
	if err != nil {
		return nil, err
	}
	own := *u
	own.RawQuery = joined(u, query)
	return &own, nil
}

// joined is the URL's query with more in it.
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

// find is the URL of a path with the query that the base URL has.
func (l *Link) find(p *endpoint.Profile, path string) (*url.URL, error) {
	by := address{l.Base(), path, p.BasePath, p.ResponsesPath}
	if last := l.Learned.place.Load(); last != nil && last.by == by {
		return last.url, nil
	}
	u, err := p.URL(l.Base(), path)
	if err == nil {
		l.Learned.place.Store(&place{by, u})
	}
	return u, err
}

// sharedHTTP keeps more idle connections to one host than net/http would: many
// runs talk to the same endpoint. A history is sent from where it is.
var sharedHTTP = sync.OnceValue(func() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient // a program that put its own in place
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 64
	t.DialContext = straight(t.DialContext)
	return &http.Client{Transport: t}
})

// client returns the HTTP client of the link, with its redirects guarded.
func (l *Link) client() http.Client {
	c := *cmp.Or(l.HTTP, sharedHTTP())
	if c.CheckRedirect == nil {
		c.CheckRedirect = guarded
	} else {
		c.CheckRedirect = guardRedirects(c.CheckRedirect)
	}
	return c
}

// newID names a request to the server, which can then tell a repetition. It is
// no secret.
func newID() string { return "antiphon-" + rand.Text() }
