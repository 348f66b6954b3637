// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// listedTool is a tool as listed by its server.
type listedTool struct {
	link        *link
	name        string // at the server
	description string
	schema      item.JSON
	readOnly    bool
	idempotent  bool

	made tool.Tool // with its name here, which never changes
}

func newListedTool(l *link, t *mcp.Tool) *listedTool {
	lt := &listedTool{link: l, name: t.Name, description: t.Description, schema: schemaOf(t)}
	if lt.description == "" {
		lt.description = t.Title
	}
	lt.readOnly = matches(l.server.ReadOnly, t.Name)
	if a := t.Annotations; a != nil && l.server.TrustHints {
		lt.readOnly = lt.readOnly || a.ReadOnlyHint
		lt.idempotent = a.IdempotentHint || a.ReadOnlyHint
	}
	return lt
}

// size returns the length of what a model reads of the tool, in bytes.
func (t *listedTool) size() int { return len(t.name) + len(t.description) + len(t.schema) }

// schemaOf returns the tool's schema as the server wrote it, or "" if it is not a
// schema.
func schemaOf(t *mcp.Tool) item.JSON {
	text, tapped := t.Meta[rawMember].(string)
	if !tapped {
		b, err := json.Marshal(t.InputSchema)
		if err != nil {
			return ""
		}
		text = string(b)
	}
	schema := item.JSON(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || schema.Valid() != nil {
		return ""
	}
	return schema
}

// equal reports whether two listings of a tool are equal.
func (t *listedTool) equal(o *listedTool) bool {
	return t.name == o.name && t.description == o.description && t.schema == o.schema &&
		t.readOnly == o.readOnly && t.idempotent == o.idempotent
}

// named returns the tool with the name for models.
func (t *listedTool) named(name string) tool.Tool {
	if t.made != nil {
		return t.made
	}
	server := &t.link.server
	opts := []tool.Option{tool.Timeout(server.Timeout), tool.Strict(server.Strict), tool.From(t.origin())}
	if t.readOnly {
		opts = append(opts, tool.ReadOnly())
	}
	if t.idempotent {
		opts = append(opts, tool.Idempotent())
	}
	if server.Polling {
		opts = append(opts, tool.Polling())
	}
	if l := server.MaxOutput; l != nil {
		opts = append(opts, tool.MaxOutput(*l))
	}
	if server.Approval != nil {
		opts = append(opts, tool.Approval(server.Approval(t.name, name)))
	}
	def := &item.FunctionTool{Name: name, Description: t.description, Parameters: t.schema}
	made, err := tool.Raw(def, t.run, opts...)
	if err != nil { // an unusable schema
		def.Parameters = ""
		if made, err = tool.Raw(def, t.run, opts...); err != nil {
			panic(err) // names are made to fit
		}
	}
	t.made = made
	return made
}

// origin says whose tool it is. Its name and description are the server's own words; what it
// takes is what a person saw values for.
func (t *listedTool) origin() tool.Origin {
	server := &t.link.server
	at, _, _ := strings.Cut(server.URL, "?") // others see it, and a query may hold a key
	if at == "" {
		at = strings.Join(server.Command, " ")
	}
	profile := ""
	if server.Sandbox != nil {
		p := server.Sandbox(server.Dir)
		profile = p.Width() + " " + strings.Join(p.Hosts, ", ")
	}
	parts := append([]string{server.URL, server.Dir, profile, t.name, string(t.schema)}, server.Command...)
	return tool.Origin{Of: fmt.Sprintf("the MCP server %q (%s)", server.Name, at), Agent: server.Agent, Identity: strings.Join(parts, "\x00")}
}

// run makes a call once. Only if the call certainly did not run is it made again, in
// a new session.
func (t *listedTool) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, t.link.server.Timeout)
	defer cancel()
	s, err := t.link.session(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	sent := new(sending)
	res, err := s.call(ctx, t.name, call, sent)
	if err != nil && ctx.Err() == nil && (s.unsent(err) || s.forgotten(ctx, err, sent)) {
		s.end(io.EOF)
		if s, err = t.link.session(ctx); err != nil {
			return tool.Result{}, err
		}
		res, err = s.call(ctx, t.name, call, new(sending))
	}
	if err != nil {
		return tool.Result{}, t.failed(ctx, s, err)
	}
	out := t.link.result(res)
	out.Error = s.withLacked(out.Error)
	return out, nil
}

// withLacked adds to the text of an error which permission the server lacked.
func (s *session) withLacked(text string) string {
	if text == "" || s.proc == nil {
		return text
	}
	if lacked := s.proc.run.Lacked(text); lacked != "" {
		text += "\n[" + s.clean(lacked) + "]"
	}
	return text
}

// failed describes the outcome of a call without an answer.
func (t *listedTool) failed(ctx context.Context, s *session, err error) error {
	_, refused := wireError(err)
	switch {
	case refused:
		return &ServerError{Server: t.link.server.Name, Err: err, Problem: s.withLacked(fmt.Sprintf("refused the call of %s: %s", t.name, s.said(plain(err))))}
	case s.over() || s.brokeOff(err) && ctx.Err() == nil:
		s.end(io.EOF)
		return s.explain(err, fmt.Sprintf("was lost while it ran %s; what it did until then is not known", t.name))
	case ctx.Err() != nil:
		s.probe()
		return &ServerError{Server: t.link.server.Name, Err: errNoAnswer,
			Problem: fmt.Sprintf("did not answer the call of %s and was told to cancel it; what it did until then is not known", t.name)}
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return &ServerError{Server: t.link.server.Name, Err: err, Problem: fmt.Sprintf("cannot be reached: %s. Nothing was done.", s.said(plain(err)))}
	}
	if s.http != nil && s.http.unread.Load() {
		s.end(io.EOF) // so that the next call is not made in it
	}
	return &ServerError{Server: t.link.server.Name, Err: err,
		Problem: fmt.Sprintf("gave no result of %s, and whether it ran is not known: %s", t.name, s.said(plain(err)))}
}
