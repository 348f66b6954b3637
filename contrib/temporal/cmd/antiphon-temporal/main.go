// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Command antiphon-temporal runs sessions of agents' files as workflows of Temporal: it is
// what antiphon work --engine temporal would be, in a module of its own.
//
//	antiphon-temporal work --agents DIR          run a worker
//	antiphon-temporal say SESSION TEXT           deliver input, and begin the session if it is new
//	antiphon-temporal approve SESSION CALL...    answer calls that wait
//	antiphon-temporal stop SESSION               ask the run to stop
//	antiphon-temporal retry SESSION              go on with a parked session
//	antiphon-temporal state SESSION              print the state of its workflow
//
// The server is that of the usual variables, such as TEMPORAL_ADDRESS.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/contrib/temporal"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

func main() {
	// Before a key is read: no program that this one starts can read it from here.
	_ = sandbox.Hide()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands are the commands and the flags that all of them have.
type commands struct {
	Work    workCommand    `cmd:"" help:"Run a worker until it is interrupted."`
	Say     sayCommand     `cmd:"" help:"Deliver input to a session, and begin the session if it is new."`
	Approve approveCommand `cmd:"" help:"Answer calls that wait for an approval."`
	Stop    stopCommand    `cmd:"" help:"Ask the run of a session to stop."`
	Retry   retryCommand   `cmd:"" help:"Go on with a parked session."`
	State   stateCommand   `cmd:"" help:"Print the state of the workflow of a session, as JSON."`

	Store     string `required:"" env:"ANTIPHON_STORE" placeholder:"PLACE" help:"Where sessions are kept: postgres://…, or an SQLite file that all workers share."`
	Address   string `placeholder:"HOST:PORT" help:"The Temporal server. Default: $$TEMPORAL_ADDRESS, or the profile of $$TEMPORAL_CONFIG_FILE."`
	Namespace string `placeholder:"NAME" help:"The namespace. Default: $$TEMPORAL_NAMESPACE, or default."`
	Queue     string `placeholder:"NAME" help:"The task queue. Default: antiphon."`
	Prefix    string `placeholder:"TEXT" help:"The beginning of the ids of workflows. Stores that share a namespace need different ones. Default: antiphon/."`
}

// stdio is where a command prints.
type stdio struct {
	out, err io.Writer
	environ  []string
}

// run is the program. Exit codes are those of antiphon: 1 for failures, 2 for mistakes in
// the command line.
func run(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("antiphon-temporal"), kong.Writers(out, errs), kong.Exit(func(code int) { exited = code }),
		kong.Description("Runs sessions of agents' files as workflows of Temporal."))
	if err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(errs, "antiphon-temporal: %v\n", err)
		return 2
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(&c, stdio{out, errs, environ}); err != nil {
		fmt.Fprintf(errs, "antiphon-temporal: %v\n", err)
		return 1
	}
	return 0
}

// engine connects to the store and the server. The caller must call the returned function.
func (c *commands) engine(ctx context.Context, std stdio) (e *temporal.Engine, end func(), err error) {
	s, err := store.Open(ctx, c.Store, store.Options{Create: true})
	if err != nil {
		return nil, nil, err
	}
	box, err := store.As[session.Inbox](s, "keep deliveries")
	var options client.Options
	if err == nil {
		options, err = envconfig.LoadDefaultClientOptions()
	}
	if err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	if c.Address != "" {
		options.HostPort = c.Address
	}
	if c.Namespace != "" {
		options.Namespace = c.Namespace
	}
	options.Logger = logger{std.err}
	con, err := client.DialContext(ctx, options)
	if err != nil {
		_ = s.Close()
		return nil, nil, fmt.Errorf("the Temporal server: %w\n  hint: --address or TEMPORAL_ADDRESS names it; for a trial, temporal server start-dev starts one", err)
	}
	e = &temporal.Engine{Client: con, Store: box, Namespace: options.Namespace, Queue: c.Queue, Prefix: c.Prefix}
	return e, func() { con.Close(); _ = s.Close() }, nil
}

// catalog returns the store of an engine with its list of sessions.
func catalog(e *temporal.Engine) store.Store { return e.Store.(store.Store) }

// logger prints warnings and errors of the SDK.
type logger struct{ w io.Writer }

func (logger) Debug(string, ...any) {}
func (logger) Info(string, ...any)  {}
func (l logger) Warn(text string, more ...any) {
	fmt.Fprintln(l.w, append([]any{"warning:", text}, more...)...)
}
func (l logger) Error(text string, more ...any) {
	fmt.Fprintln(l.w, append([]any{"error:", text}, more...)...)
}

var _ log.Logger = logger{}
