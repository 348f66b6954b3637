// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server/mcpserver"
)

// mcpCommand is antiphon mcp.
type mcpCommand struct {
	Listen string `placeholder:"HOST:PORT" help:"Serve streamable HTTP at this loopback address, instead of standard input and output. Port 0 takes a free one."`
	servedFlags
	Wait time.Duration `name:"answer-time" default:"10m" placeholder:"TIME" help:"How long a client may take to answer whether a call may run. Then it is refused."`
}

// Help is shown by antiphon mcp --help.
func (mcpCommand) Help() string {
	return `Any program that speaks the Model Context Protocol can give the agents tasks: each file
is a tool, with the name of the file without .md, and described by <config description>.
Standard output carries nothing but the protocol. A call that needs approval is asked about
in the client; if it cannot ask, the call is refused, and the result says how to allow it.
Each call is a session in the store, which the result names.

A file with powers is served after you have agreed to them: see antiphon trust --help.

Examples:
  antiphon mcp examples/tour/tour.md
  antiphon mcp agents --allow append_to_file --store tasks.db
  antiphon mcp agents --listen 127.0.0.1:8788`
}

// Run serves until ctx is done or the client ends its input.
func (c *mcpCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	if c.Wait <= 0 {
		return usage(errors.New("--answer-time must be more than 0"))
	}
	c.take()
	if c.Check {
		bad, err := c.showAgents(ctx, "tool", std, env)
		return cmp.Or(err, errRefused(bad))
	}
	if c.Listen == "" && show.IsTerminal(std.in) {
		fmt.Fprintln(std.err, "antiphon: speaking MCP on standard input and output, which is for a program that starts this one; --listen 127.0.0.1:8788 serves HTTP")
	}
	asked := std
	if c.Listen == "" {
		asked.in = strings.NewReader("") // it carries the protocol, and no answers of a person
	}
	offered, err := c.offers(ctx, "tool", asked, env)
	if err != nil {
		return err
	}
	hide := env.Hider()
	errorLog := log.New(std.err, "antiphon: ", 0)
	s := &mcpserver.Server{Version: programVersion(), Wait: c.Wait, Log: func(err error) { errorLog.Print(show.Unbroken(hide(err.Error()))) }}
	for _, a := range offered.list {
		a.config.Hint = func(tool string) string { return "The user can allow it: antiphon mcp with --allow " + tool + "." }
		served := mcpserver.Agent{Name: a.name, Description: a.file.Description(), Config: a.config}
		if !a.file.Partial { // else answers of other agents are missing in the messages
			served.Messages = a.file.Items
		}
		s.Agents = append(s.Agents, served)
	}
	if err := s.Check(); err != nil {
		return usage(fmt.Errorf("%s; rename the file", strings.TrimPrefix(err.Error(), "mcpserver: ")))
	}
	var l net.Listener
	if c.Listen != "" {
		if l, err = listen(ctx, c.Listen); err != nil {
			return err
		}
	}
	in, err := c.openVouched(ctx, asked, env)
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	s.Store = in
	if l == nil {
		return s.ServeIO(ctx, std.in, std.out)
	}
	fmt.Fprintf(std.err, "antiphon: serving MCP at http://%s%s\n", l.Addr(), mcpserver.Path)
	return s.Serve(ctx, l)
}
