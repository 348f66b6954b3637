// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package mcpserver serves agents' files as the tools of an MCP server: any program that
// speaks the Model Context Protocol can give them tasks.
//
//	s := &mcpserver.Server{Store: sessions, Agents: []mcpserver.Agent{
//		{Name: "reviewer", Description: "Reviews a change.", Config: host.Config{File: "reviewer.md"}},
//	}}
//	err := s.ServeIO(ctx, os.Stdin, os.Stdout)
//
// A call of a tool is a run of the agent in a session of its own, which the result names;
// a later call may continue it. While the agent works, the client gets progress in words.
// If the client cancels the call, the run ends, and its log says so. A call of the agent
// that needs approval becomes an elicitation, which a person answers in the client; a
// client that has none, or does not answer in time, gets the call refused. Nothing is
// approved without an answer.
//
// A session is found by its id, which is random and told to nobody but the client that
// began it, so clients do not see the sessions of others.
//
// Protocol versions from 2026-07-28 on have no requests to clients: there the call ends
// with the question, its session waits, and the client makes the call again with the
// answer, here or at another server over the same store. Earlier versions are asked while
// the call is under way.
//
// [Server.ServeIO] serves one client over standard input and output, and [Server.Handler]
// any number over streamable HTTP. Everything except files of agents is the official SDK's.
package mcpserver
