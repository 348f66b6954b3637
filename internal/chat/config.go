// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"io"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// Config says what a conversation is about, and at which terminal it is held.
type Config struct {
	// Host is the agent, its endpoint, the session and its store, as for a run. The chat itself sets who is asked and told.
	Host    host.Config
	Program Program
	Env     host.Environment

	In, Out *os.File  // the terminal
	Err     io.Writer // for what is said when the terminal is given back

	Plain      bool // no colours and no changing lines
	ShowOutput bool // the whole outputs of tools

	Found  session.Info // the session that another process runs, if that is to be shown
	Choose bool         // the person chooses the session from a list

	System      string      // instructions that are sent before the first prompt
	Parts       []item.Part // sent with the first prompt: files, images
	Effort      string      // how much the model reasons; "" as the file says
	Temperature *float64    // nil as the file says

	File       string   // the agent, as the person named it: "" for the usual one
	StoreFlags string   // the flags that name the store, for commands that are suggested
	Models     []string // the names of models in the settings
	Data       string   // the folder of drafts and pasted pictures; "" means that they are not kept
}

// Program is what a conversation leaves to the program around it: places, hints about the command line, and other commands.
type Program interface {
	// OpenStore opens the store for sessions that another process runs, and AuditLog the log for answers about their calls, or
	// nil if there is none.
	OpenStore(ctx context.Context) (store.Store, error)
	AuditLog() (*audit.Log, error)
	// Hangup sets what is called instead of ending the program when the terminal is gone. Nil ends the program again.
	Hangup(lost func())

	FrontEnd(w io.Writer, quiet bool) host.FrontEnd
	// Notices prints notices, and shows below the transcript what is waited for.
	Notices(w io.Writer, below show.Waits) func(host.Notice)
	// Consent sets who decides about what the file may do.
	Consent(std Streams, who *person.Person, cfg *host.Config) error
	// Choices prints the sessions from which the person chooses.
	Choices(ctx context.Context, w io.Writer, columns int) ([]session.Info, error)
	// Model returns what a name of the settings stands for, and other names as they are.
	Model(name string) (model, baseURL string)
	// Work returns the configuration of work on a session, or an error if workers cannot go on with it.
	Work(w io.Writer, info session.Info) (host.Config, error)

	// ShowSent prints what the next request of a session holds.
	ShowSent(ctx context.Context, w io.Writer, id string) error
	// Exports reports whether a session can be written to a file of such a name, and Export writes it.
	Exports(path string) bool
	Export(ctx context.Context, w io.Writer, id, path string) error

	// Unopened adds hints to the error of a session that was not opened, and Taken to that about a name that another session may have.
	Unopened(err error) error
	Taken(err error, name string) error
	// Failed returns what is said about a turn that failed, and what the person can do next, or "".
	Failed(err error, by agent.Compaction) (text, next string)
}

// Streams are where a conversation reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// usage marks an error as one of the person's input.
func usage(err error) error { return &host.ConfigError{Err: err} }

// quoted returns a name in shell syntax.
func quoted(name string) string { return trust.CommandLine(name) }
