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
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// asSent is what sessions show --as-sent prints as JSON.
type asSent struct {
	// Body is the next request, according to the file and the log.
	Body *api.Request `json:"body"`
	*session.InputReport
}

// MarshalJSONTo writes the value item by item, so that a long history is not held in
// memory again as text.
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

// copy writes the value that it reads from in.
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

// writeArray writes the elements of a list.
func writeArray[T any](w *jsonWriter, list []T) {
	w.token(jsontext.BeginArray)
	for _, v := range list {
		if w.err == nil {
			w.err = json.MarshalEncode(w.enc, v)
		}
	}
	w.token(jsontext.EndArray)
}

// asSent prints the content of the next request.
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
	return printReport(show.NewLogPrinter(std.out, std.err, env, c.Full), account, request)
}

// preview returns the next request of the session's agent, and the session in its
// state at that time. If the agent's file is missing or broken, the request contains
// only the history.
func preview(ctx context.Context, std stdio, env environment, store keeper, s *session.Session, info session.Info) (*api.Request, *session.Session, error) {
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
			fmt.Fprintf(std.err, "antiphon: %s does not exist any more: its model and tools are left out\n", show.Printable(info.Path))
		case err != nil:
			fmt.Fprintf(std.err, "antiphon: %s has problems, so its model and tools are left out; antiphon check lists them\n", show.Printable(info.Path))
		default:
			defer file.Close()
			if a, err = host.Preview(ctx, file, store, s, front(std, env, false)); err != nil {
				return nil, nil, err
			}
		}
	}
	return a.Preview(ctx, s)
}

// gone reports whether the file does not exist.
func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// printReport prints the disposition of each item, and a summary.
func printReport(p *show.Printer, a *session.InputReport, request *api.Request) error {
	for _, l := range a.Log {
		colour := show.Green
		switch l.Disposition {
		case session.Sent:
		case session.Changed, session.Replaced, session.Waiting:
			colour = show.Yellow
		default:
			colour = show.Dim
		}
		why := ""
		if l.Reason != "" {
			why = "[" + l.Reason + "] "
		}
		p.Row(l.Seq, colour, strings.ReplaceAll(string(l.Disposition), "_", " "), why+kindOf(l.Item)+": "+show.InWords(l.Item))
	}
	for _, c := range a.Compactions {
		p.Row(c.Seq, show.Dim, "compaction", fmt.Sprintf("by %s, %s: stands for %s", c.By, strings.ReplaceAll(c.State, "_", " "), show.Plural(c.Replaces, "item")))
	}
	if err := p.Failure(); err != nil {
		return err
	}
	model := request.Model
	if model == "" {
		model = "no model named"
	}
	_, err := fmt.Fprintf(p.Out, "\nThe next request: %s, %s, %s of input, %s.\n", show.Printable(model), show.Plural(len(a.Request), "item"), bytesOf(int64(request.Input.Size())), show.Plural(len(request.Tools), "tool"))
	return err
}

// kindOf returns the name of an item's kind for people.
func kindOf(it item.Item) string {
	if it.Type() == item.TypeMessage {
		return string(it.Role())
	}
	return string(it.Type())
}
