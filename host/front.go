// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
)

// Front is what a front end, such as a command or a server, says of itself. The
// zero value works: no variables are set, and nobody reads the notices.
type Front struct {
	// Environment are the variables that endpoint, key and MCP servers are taken
	// from where nothing else names them. This package does not read those of the
	// process: pass [Environ] of [os.Environ] for these.
	Environment Environment
	// Program is the name and version of the program, such as "antiphon 1.2", for
	// logs and requests.
	Program string
	// Terms are what the front end calls its settings.
	Terms Terms
	// Notify is called with what a person should know that is not an error. It may
	// be called by several goroutines at once. Nil means nobody.
	Notify func(Notice)
}

func (f *Front) notify(kind NoticeKind, format string, args ...any) {
	f.tell(Notice{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (f *Front) tell(n Notice) {
	if f.Notify != nil {
		f.Notify(n)
	}
}

func (f *Front) userAgent() string { return strings.ReplaceAll(f.Program, " ", "/") }

// Terms are what a front end calls settings in messages, by the name of the field
// of [Config], such as "--model NAME" for "Endpoint.Model". What is behind the
// first blank stands for a value. A setting that is not there is called by the
// name of its field.
type Terms map[string]string

// full names a setting with a word for its value, name without one.
func (t Terms) full(setting string) string { return cmp.Or(t[setting], setting) }

func (t Terms) name(setting string) string {
	name, _, _ := strings.Cut(t.full(setting), " ")
	return name
}

// Environment is a set of variables.
type Environment map[string]string

// StoreSecret is the variable that may hold the key of an encrypted store.
const StoreSecret = "ANTIPHON_STORE_SECRET"

// Environ reads variables in the form of [os.Environ], each NAME=VALUE.
func Environ(list []string) Environment {
	env := Environment{}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Lookup returns a variable, and whether it is set.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Filled returns an error for a variable that is set and empty. It is meant to say
// something: what is used where it is not set is somebody or something else. U1
func (e Environment) Filled(names ...string) error {
	for _, name := range names {
		if value, set := e[name]; set && strings.TrimSpace(value) == "" {
			return invalid("%s is empty: give it a value, or unset it", name)
		}
	}
	return nil
}

// Secrets are the keys in the variables: what no model is to see, whatever a tool
// puts out.
func (e Environment) Secrets() (list []string) {
	for _, name := range []string{"OPENAI_API_KEY", StoreSecret} {
		if value := strings.TrimSpace(e[name]); value != "" {
			list = append(list, value)
		}
	}
	return list
}

// Hide returns a text without the secrets.
func (e Environment) Hide(text string) string {
	for _, secret := range e.Secrets() {
		text = endpoint.NewKey(secret).Hide(text)
	}
	return text
}

// ConfigError says that what the caller gave is wrong: the configuration, the
// agent's file, or the place of a store. The run did not begin.
type ConfigError struct{ Err error }

// Error is that of Err.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error { return &ConfigError{fmt.Errorf(format, args...)} }

// Notice is something that a person should know and that is not an error.
type Notice struct {
	Kind NoticeKind
	// Text says it in a sentence that begins in small letters, without a full stop.
	// It may repeat what files, servers and endpoints say, control characters
	// included.
	Text string
	// Session is the one that a notice about a session names.
	Session session.Info
	// File is the file that a notice about an agent, or about what was saved, names.
	File string
	// Server is what happened, in a [NoticeServer].
	Server mcpbridge.Event
}

// NoticeKind is what a [Notice] is about.
type NoticeKind string

// The kinds of notices. Those marked as usual say that all goes as it should.
const (
	NoticeAnswers   NoticeKind = "answers"   // usual: which model answers, and where
	NoticeFallback  NoticeKind = "fallback"  // the rehearsal model answers, for no endpoint is configured
	NoticeKey       NoticeKind = "key"       // the key is not sent to an endpoint that a file names
	NoticeRehearsed NoticeKind = "rehearsed" // a real model is about to read what the rehearsal model said
	NoticeRetry     NoticeKind = "retry"     // the endpoint did not answer, and is asked again
	NoticeLoss      NoticeKind = "loss"      // something has no place in Chat Completions
	NoticeUnused    NoticeKind = "unused"    // an answer of [Answers] fits no call
	NoticeRule      NoticeKind = "rule"      // a rule fits no tool

	NoticeFile    NoticeKind = "file"    // a warning about the agent's file, with its place, over one or more lines
	NoticeWaiting NoticeKind = "waiting" // usual: Text may take long, until it is ready
	NoticeReady   NoticeKind = "ready"   // usual: the end of the wait for Text
	NoticeAsking  NoticeKind = "asking"  // usual: an agent in a message is asked
	NoticeAsked   NoticeKind = "asked"   // usual: it has answered
	NoticeServer  NoticeKind = "server"  // something happened to an MCP server; progress is usual

	NoticeNew       NoticeKind = "new"        // usual: a session begins
	NoticeContinues NoticeKind = "continues"  // usual: a session goes on
	NoticeOtherFile NoticeKind = "other_file" // the session belongs to another file
	NoticeArchived  NoticeKind = "archived"   // the session is archived
	NoticeDiffers   NoticeKind = "differs"    // the session began with other messages than the file has now
	NoticeSameName  NoticeKind = "same_name"  // another file has a session of the new one's name
	NoticeNearName  NoticeKind = "near_name"  // the file has a session of nearly the new one's name
	NoticeMissing   NoticeKind = "missing"    // something cannot be exported or saved
	NoticeNotBeside NoticeKind = "not_beside" // a transcript that is not written to a file lacks kept outputs
	NoticeNoAgent   NoticeKind = "no_agent"   // a transcript has no declarations, for the agent's file is gone
	NoticeSaved     NoticeKind = "saved"      // the store is gone; File has what was said
)
