// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/server"
)

// Bounds protect the machine from all clients together. 0 means the default.
type Bounds struct {
	// Running is the number of responses that are made at once. The default is 256.
	Running int
	// Requests is the number of HTTP requests, WebSockets and open streams at once. The
	// default is 2048.
	Requests int
	// Sockets is the number of WebSockets of one key. When it opens another one, that of its own is
	// closed that has waited longest for a request. The default is 64. All keys together have half
	// as many as there may be Requests, by the same rule.
	Sockets int
	// Connections is the number of connections. When another one comes, the one that has
	// waited longest without a request is closed. The default is 4096.
	Connections int
	// Body is the largest request in bytes, and Bodies that of all requests together. The
	// defaults are 64 MiB and 512 MiB.
	Body, Bodies int64
	// Patience is how long a client may take to read or write something, and Upload how
	// long to send a request. The defaults are 30 seconds and 5 minutes.
	Patience, Upload time.Duration
}

func or[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

func (b *Bounds) running() int            { return or(b.Running, 256) }
func (b *Bounds) requests() int           { return or(b.Requests, 2048) }
func (b *Bounds) sockets() int            { return or(b.Sockets, 64) }
func (b *Bounds) connections() int        { return or(b.Connections, 4096) }
func (b *Bounds) body() int64             { return or(b.Body, 64<<20) }
func (b *Bounds) bodies() int64           { return or(b.Bodies, 512<<20) }
func (b *Bounds) patience() time.Duration { return or(b.Patience, 30*time.Second) }
func (b *Bounds) upload() time.Duration   { return or(b.Upload, 5*time.Minute) }

// counts are the numbers of a Guard.
type counts struct {
	mu    sync.Mutex
	now   Counts
	bytes int64          // of bodies
	named map[string]int // the entries of now.Used, by project
}

// Counts are what a [Guard] has counted since it began. The maps are copies.
type Counts struct {
	// Running are the responses that are being made, Requests the HTTP requests with open
	// streams and WebSockets, and Connections all connections.
	Running, Requests, Connections int
	// Dropped are the connections and WebSockets that were closed to make room for others, and Overloaded
	// the requests that were refused because all places were taken.
	Dropped, Overloaded int64
	// Served are the requests that were answered.
	Served map[Served]Timing
	// Limited are the requests that a limit of a key has refused, or would have refused in a
	// trial.
	Limited map[Limited]int64
	// Used is the usage of responses, by project and agent.
	Used map[Used]Usage
}

// Served is a kind of answer.
type Served struct {
	Route  string // as [server.Pattern] returns it, or "other"
	Status int
}

// Timing says how long answers took, with their streams.
type Timing struct {
	Count   int64
	Seconds float64
	// Within are the numbers of those that took at most as many seconds as [Steps] says.
	Within [len(Steps)]int64
}

// Steps are the seconds by which the times of answers are counted.
var Steps = [...]float64{0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800}

// Limited names a limit: requests, tokens, running or cost.
type Limited struct {
	Limit string
	Trial bool
}

// Used says whose usage it is, and how it ended. Clients of upstreams invent names of models, and an
// issuer those of projects: of very many, those that come last are counted as "other".
type Used struct{ Project, Agent, Status string }

const (
	// mostUsed is how many there are before names of agents become "other". After twice as many, those of
	// projects do, too.
	mostUsed = 5000
	// mostNamed is how many one project has before its names of agents do, so that there is room for those of
	// other projects.
	mostNamed = 500
)

// Usage is what responses used.
type Usage struct {
	Responses                 int64
	InputTokens, OutputTokens int64
	Cost                      float64
}

// Counts returns the counts.
func (g *Guard) Counts() Counts {
	g.counts.mu.Lock()
	defer g.counts.mu.Unlock()
	c := g.counts.now
	c.Served, c.Limited, c.Used = maps.Clone(c.Served), maps.Clone(c.Limited), maps.Clone(c.Used)
	return c
}

// enter counts a request that is served. The result is to be called at its end.
func (c *counts) enter(limit int) (end func(), wrong *server.Error) {
	return c.place(&c.now.Requests, limit, "too many requests and streams are open")
}

// run counts a response that is made.
func (c *counts) run(limit int) (end func(), wrong *server.Error) {
	return c.place(&c.now.Running, limit, "too many responses are being made")
}

func (c *counts) place(of *int, limit int, full string) (end func(), wrong *server.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *of >= limit {
		c.now.Overloaded++
		return nil, errBusy(full)
	}
	*of++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*of--
	}, nil
}

// hold adds n to the bytes of bodies, unless they would be more than limit.
func (c *counts) hold(n, limit int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.bytes+n > limit {
		return false
	}
	c.bytes += n
	return true
}

func (c *counts) served(route string, status int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Served == nil {
		c.now.Served = map[Served]Timing{}
	}
	kind := Served{route, status}
	t := c.now.Served[kind]
	t.Count++
	t.Seconds += took.Seconds()
	if i := slices.IndexFunc(Steps[:], func(step float64) bool { return took.Seconds() <= step }); i >= 0 {
		for ; i < len(Steps); i++ {
			t.Within[i]++
		}
	}
	c.now.Served[kind] = t
}

func (c *counts) limited(limit string, trial bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Limited == nil {
		c.now.Limited = map[Limited]int64{}
	}
	c.now.Limited[Limited{limit, trial}]++
}

func (c *counts) used(u *Use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Used == nil {
		c.now.Used = map[Used]Usage{}
	}
	kind := Used{u.Project, u.Agent, u.Status}
	if _, known := c.now.Used[kind]; !known && (len(c.now.Used) >= mostUsed || c.named[kind.Project] >= mostNamed) {
		kind.Agent = "other"
	}
	if _, known := c.now.Used[kind]; !known && len(c.now.Used) >= 2*mostUsed {
		kind.Project = "other"
	}
	sum, known := c.now.Used[kind]
	if !known {
		if c.named == nil {
			c.named = map[string]int{}
		}
		c.named[kind.Project]++
	}
	sum.Responses++
	sum.InputTokens += u.InputTokens
	sum.OutputTokens += u.OutputTokens
	sum.Cost += u.Cost
	c.now.Used[kind] = sum
}

func (c *counts) connected(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Connections = n
}

func (c *counts) overloaded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Overloaded++
}

func (c *counts) dropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Dropped++
}
