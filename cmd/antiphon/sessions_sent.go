// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// asSent is what sessions show --as-sent prints as JSON.
type asSent struct {
	// Body is the next request, as far as its file and its log say it.
	Body *item.Request `json:"body"`
	*session.InputReport
}

// MarshalJSONTo writes it item by item: a long history is not in memory once
// more as text.
func (a asSent) MarshalJSONTo(enc *jsontext.Encoder) error {
	body, err := a.Body.Body()
	if err != nil {
		return err
	}
	in := body.NewReader()
	defer in.Close()
	w := &jsonWriter{enc: enc}
	w.token(jsontext.BeginObject)
	w.token(jsontext.String("body"))
	w.copy(in)
	w.token(jsontext.String("log"))
	writeArray(w, a.Log)
	w.token(jsontext.String("request"))
	writeArray(w, a.Request)
	if len(a.Compactions) > 0 {
		w.token(jsontext.String("compactions"))
		writeArray(w, a.Compactions)
	}
	w.token(jsontext.EndObject)
	return w.err
}

// jsonWriter writes JSON until its first error.
type jsonWriter struct {
	enc *jsontext.Encoder
	err error
}

func (w *jsonWriter) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(t)
	}
}

// copy writes the value that is read from in.
func (w *jsonWriter) copy(in io.Reader) {
	dec := jsontext.NewDecoder(in, lineOptions)
	for w.err == nil {
		switch dec.PeekKind() {
		case '{', '[', '}', ']':
			var t jsontext.Token
			if t, w.err = dec.ReadToken(); w.err == nil {
				w.err = w.enc.WriteToken(t)
			}
		default:
			var v jsontext.Value
			if v, w.err = dec.ReadValue(); w.err == nil {
				w.err = w.enc.WriteValue(v)
			}
		}
		if dec.StackDepth() == 0 {
			return
		}
	}
}

// writeArray writes a list one by one.
func writeArray[T any](w *jsonWriter, list []T) {
	w.token(jsontext.BeginArray)
	for _, v := range list {
		if w.err == nil {
			w.err = json.MarshalEncode(w.enc, v)
		}
	}
	w.token(jsontext.EndArray)
}

// asSent prints what the next request would carry.
func (c *showCommand) asSent(ctx context.Context, std stdio, env environment, all *sessionsCommand, store keeper, info session.Info) error {
	s, err := session.Open(ctx, store, info.ID)
	if err != nil {
		return err
	}
	request, then, err := preview(ctx, std, env, store, s, info)
	if err != nil {
		return err
	}
	account := session.Explain(then.Entries())
	if all.JSON {
		return all.printJSON(std, asSent{request, account})
	}
	return newPage(std, env, c.Full).account(account, request)
}

// preview is the next request of the session's agent, and the session as it is
// then. Where its file is not there any more, or is broken, the request has the
// history alone.
func preview(ctx context.Context, std stdio, env environment, store keeper, s *session.Session, info session.Info) (*item.Request, *session.Session, error) {
	a := new(agent.Agent)
	if info.Path != "" {
		options, err := fileOptions()
		if err != nil {
			return nil, nil, err
		}
		options.Check = true
		file, err := agentfile.Load(ctx, info.Path, options)
		switch {
		case err != nil && gone(info.Path):
			fmt.Fprintf(std.err, "antiphon: %s is not there any more: its model and tools are left out\n", printable(info.Path))
		case err != nil:
			fmt.Fprintf(std.err, "antiphon: %s has problems, so its model and tools are left out; antiphon check tells them\n", printable(info.Path))
		default:
			defer file.Close()
			if a, err = host.Preview(ctx, file, store, s, front(std, env, false)); err != nil {
				return nil, nil, err
			}
		}
	}
	return a.Preview(ctx, s)
}

// gone reports that there is no file of that name.
func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// account prints what becomes of each item, and sums it up.
func (p *page) account(a *session.InputReport, request *item.Request) error {
	for _, l := range a.Log {
		colour := green
		switch l.Disposition {
		case session.Sent:
		case session.Changed, session.Replaced, session.Waiting:
			colour = yellow
		default:
			colour = dim
		}
		why := ""
		if l.Reason != "" {
			why = "[" + l.Reason + "] "
		}
		p.line(l.Seq, colour, strings.ReplaceAll(string(l.Disposition), "_", " "), why+kindOf(l.Item)+": "+inWords(l.Item))
	}
	for _, c := range a.Compactions {
		p.line(c.Seq, dim, "compaction", fmt.Sprintf("by %s, %s: stands for %s", c.By, strings.ReplaceAll(c.State, "_", " "), plural(c.Replaces, "item")))
	}
	if p.failure != nil {
		return p.failure
	}
	model := request.Model
	if model == "" {
		model = "no model named"
	}
	_, err := fmt.Fprintf(p.out, "\nThe next request: %s, %s, %s of input, %s.\n", printable(model), plural(len(a.Request), "item"), bytesOf(int64(request.Input.Size())), plural(len(request.Tools), "tool"))
	return err
}

// kindOf names an item for people.
func kindOf(it item.Item) string {
	if it.Type() == item.TypeMessage {
		return string(it.Role())
	}
	return string(it.Type())
}
