// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// workLimitsCommand is antiphon work limits.
type workLimitsCommand struct {
	Endpoint string `arg:"" optional:"" help:"The base URL of the endpoint whose caps to set. Default: list what is known of all."`
	Requests *int64 `placeholder:"N" help:"Send at most N requests in a minute. 0 means no limit."`
	Tokens   *int64 `placeholder:"N" help:"Use at most N tokens in a minute, as the endpoint counts them. 0 means no limit."`
	Runs     *int64 `placeholder:"N" help:"Run at most N sessions at once. 0 means no limit."`
}

// Help is shown by antiphon work limits --help.
func (workLimitsCommand) Help() string {
	return `Lists the caps of an endpoint, or of all, and what it takes now. With --requests,
--tokens or --runs, it sets them for all workers of the store together, from the next
request on. A cap that is not named stays as it is.

Examples:
  antiphon work limits
  antiphon work limits https://api.openai.com/v1 --requests 500 --tokens 200000 --runs 20
  antiphon work limits https://api.openai.com/v1 --runs 0`
}

// Run lists or sets limits.
func (c *workLimitsCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	set := c.Requests != nil || c.Tokens != nil || c.Runs != nil
	if set && c.Endpoint == "" {
		return usage(errors.New("name the endpoint whose caps to set: antiphon work limits URL"))
	}
	for _, n := range []*int64{c.Requests, c.Tokens, c.Runs} {
		if n != nil && *n < 0 {
			return usage(errors.New("caps cannot be negative; 0 means no limit"))
		}
	}
	url := ""
	if c.Endpoint != "" {
		var err error
		if url, err = baseURL(c.Endpoint); err != nil {
			return usage(err)
		}
	}
	return all.opened(ctx, env, set, func(in keeper) error {
		limits, err := limitsOf(in)
		if err != nil {
			return err
		}
		list, err := endpoints(ctx, limits, url)
		if err != nil {
			return err
		}
		if set {
			if len(list) == 0 {
				list = []queue.Endpoint{{URL: url}}
			}
			caps := list[0].Caps
			for to, n := range map[*int64]*int64{&caps.Requests: c.Requests, &caps.Tokens: c.Tokens, &caps.Runs: c.Runs} {
				if n != nil {
					*to = *n
				}
			}
			if err := limits.Limit(ctx, url, caps); err != nil {
				return err
			}
			list[0].Caps = caps
		}
		return printEndpoints(std, all, list)
	})
}

// limitsOf returns the limits of a store.
func limitsOf(in keeper) (queue.Limits, error) {
	return as[queue.Limits](in, "keep the limits of endpoints")
}

// baseURL returns the base URL of an endpoint as stores have it.
func baseURL(text string) (string, error) {
	if _, err := endpoint.URL(text, "/"); err != nil {
		return "", err
	}
	return (&dialect.Config{BaseURL: text}).Transport().About("").URL, nil
}

// endpoints returns what is known about one endpoint, or about all if url is "".
func endpoints(ctx context.Context, limits queue.Limits, url string) (list []queue.Endpoint, err error) {
	every, err := limits.Endpoints(ctx)
	for _, e := range every {
		if url == "" || e.URL == url {
			list = append(list, e)
		}
	}
	return list, err
}

// endpointRow is an endpoint as commands print it.
type endpointRow struct {
	Endpoint string  `json:"endpoint"`
	Requests int64   `json:"requests_per_minute,omitempty"`
	Tokens   int64   `json:"tokens_per_minute,omitempty"`
	Runs     int64   `json:"runs_at_once,omitempty"`
	Running  int     `json:"running"`
	Stopped  string  `json:"stopped,omitempty"`
	Wait     float64 `json:"wait_seconds,omitempty"`
}

func endpointRows(list []queue.Endpoint) []endpointRow {
	rows := []endpointRow{}
	for _, e := range list {
		rows = append(rows, endpointRow{e.URL, e.Requests, e.Tokens, e.Caps.Runs, e.Running, e.Stopped, max(e.Wait, 0).Seconds()})
	}
	return rows
}

func printEndpoints(std stdio, all *sessionsCommand, list []queue.Endpoint) error {
	rows := endpointRows(list)
	if all.JSON {
		return all.printJSON(std, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(std.err, "antiphon: no endpoint has limits; antiphon work limits URL --requests N sets one")
		return nil
	}
	w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ENDPOINT\tREQUESTS/MIN\tTOKENS/MIN\tRUNS\tRUNNING\tNOW")
	for i, r := range rows {
		now := idleBecause(list[i])
		if now == "" {
			now = "takes requests"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", show.Visible(r.Endpoint), capText(r.Requests), capText(r.Tokens), capText(r.Runs), r.Running, show.Printable(all.hide(now)))
	}
	return w.Flush()
}

func capText(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// idleBecause says why an endpoint takes no requests, or returns "".
func idleBecause(e queue.Endpoint) string {
	why := worker.Closed(e)
	if e.Stopped != "" {
		why += "; antiphon work retry --endpoint " + quoted(e.URL)
	}
	return why
}
