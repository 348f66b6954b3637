// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/variables"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
)

// FrontEnd describes a front end, such as a command or a server. The zero value is
// ready for use: no variables are set, and notices are dropped.
type FrontEnd struct {
	// Environment holds the variables for the endpoint, the key and MCP servers, for
	// settings that are not given elsewhere. This package does not read the
	// environment of the process: pass [Environ] of [os.Environ] for that.
	Environment Environment
	// Program is the name and version of the program, such as "antiphon 1.2", for logs
	// and requests.
	Program string
	// Terms are the front end's names for its settings.
	Terms SettingNames
	// Notify is called with information for people that is not an error. It may be
	// called concurrently. It may be nil.
	Notify func(Notice)
}

// notify sends a notice with a formatted text.
func (f *FrontEnd) notify(kind NoticeKind, format string, args ...any) {
	f.tell(Notice{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// tell sends a notice, if the front end wants notices.
func (f *FrontEnd) tell(n Notice) {
	if f.Notify != nil {
		f.Notify(n)
	}
}

func (f *FrontEnd) userAgent() string { return strings.ReplaceAll(f.Program, " ", "/") }

// SettingNames maps the fields of [Config] to the front end's names of settings in
// messages, such as "Endpoint.Model" to "--model NAME". The text after the first blank
// stands for a value. A setting that is missing is called by the name of its field.
// "Key" is the command that keeps a key for OpenAI; without it, messages name only the
// variable.
type SettingNames map[string]string

// full returns the name of a setting with the word for its value, and name without
// it.
func (t SettingNames) full(setting string) string { return cmp.Or(t[setting], setting) }

func (t SettingNames) name(setting string) string {
	name, _, _ := strings.Cut(t.full(setting), " ")
	return name
}

// Environment is a set of variables.
type Environment map[string]string

// StoreSecret is the variable that may contain the key of an encrypted store.
const StoreSecret = "ANTIPHON_STORE_SECRET"

// Environ parses variables in the form of [os.Environ], each NAME=VALUE.
func Environ(list []string) Environment {
	env := Environment{}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

// keptPrefix begins the names under which keys for endpoints are held. No process has a
// variable of such a name, and Lookup finds none, so no file can name one.
const keptPrefix = "\x00key "

// WithKey returns a copy of the environment that also holds a key for an endpoint, such as
// one that a person keeps in a keyring. The key is sent to the base URL and to what is below
// it, and nowhere else. OPENAI_API_KEY has precedence at OPENAI_BASE_URL, or at OpenAI's
// endpoint if that is not set. The zero key means that no other key is sent there either.
func (e Environment) WithKey(baseURL string, key endpoint.Key) Environment {
	with := maps.Clone(e)
	if with == nil {
		with = Environment{}
	}
	with[keptPrefix+baseURL] = key.Reveal()
	return with
}

// kept returns the key that is held for a base URL, and whether one is, which may be the zero
// key: of the places that the URL is below, the longest counts.
func (e Environment) kept(baseURL string) (key endpoint.Key, found bool) {
	longest := ""
	for name, value := range e {
		if at, ok := strings.CutPrefix(name, keptPrefix); ok && len(at) > len(longest) && below(baseURL, at) {
			longest, key, found = at, endpoint.NewKey(value), true
		}
	}
	return key, found
}

// Lookup returns a variable, and whether it is set.
func (e Environment) Lookup(name string) (string, bool) {
	if strings.HasPrefix(name, keptPrefix) {
		return "", false
	}
	value, ok := e[name]
	return value, ok
}

// Filled returns an error for a variable that is set but empty. Its author meant to
// set something, and the default would be another endpoint or key (rule U1 in docs/rules.md).
func (e Environment) Filled(names ...string) error {
	for _, name := range names {
		if value, set := e[name]; set && strings.TrimSpace(value) == "" {
			return invalid("%s is empty: give it a value, or unset it", name)
		}
	}
	return nil
}

// Secrets returns the texts in the variables that must be hidden from models in all tool
// outputs, and in what is shown and recorded: the program's own keys, values of
// variables whose names speak of a secret, such as GITHUB_TOKEN, and passwords in
// addresses. Short values, and short words, are left out, because they are in any text.
// The longest come first.
func (e Environment) Secrets() (list []string) {
	list = e.keys()
	for name, value := range e {
		list = append(list, secretsIn(name, strings.TrimSpace(value))...)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(list)
}

// The least number of bytes of a secret, of one that consists of small letters and may
// be a word, and of a line of a secret.
const (
	minSecret = 8
	minWord   = 16
	minLine   = 20
)

// passwordIn returns the password in an address, also if a character of it that is not escaped,
// such as a slash, makes it a wrong address.
func passwordIn(address string) string {
	u, err := url.Parse(address)
	if err == nil && u.User != nil {
		password, _ := u.User.Password()
		return password
	}
	_, rest, _ := strings.Cut(address, "://")
	_, password, _ := strings.Cut(rest[:max(strings.LastIndexByte(rest, '@'), 0)], ":")
	return password
}

// secretsIn returns the secrets in a variable.
func secretsIn(name, value string) (list []string) {
	if len(value) < minSecret {
		return nil
	}
	if strings.Contains(value, "://") && strings.Contains(value, "@") {
		if password := passwordIn(value); distinct(password) {
			list = append(list, password)
		}
	}
	if !variables.Secret(name, value) || !distinct(value) {
		return list
	}
	list = append(list, value)
	if strings.Contains(value, "\n") { // a line of a private key says much of it
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				list = append(list, line)
			}
		}
	}
	return list
}

// distinct reports whether a secret is unlike an ordinary word.
func distinct(value string) bool {
	word := !strings.ContainsFunc(value, func(r rune) bool { return r < 'a' || r > 'z' })
	return len(value) >= minWord || len(value) >= minSecret && !word
}

// keys returns the program's own keys.
func (e Environment) keys() (list []string) {
	for _, name := range []string{"OPENAI_API_KEY", StoreSecret} {
		if value := strings.TrimSpace(e[name]); value != "" {
			list = append(list, value)
		}
	}
	for name, value := range e {
		if strings.HasPrefix(name, keptPrefix) && value != "" {
			list = append(list, value)
		}
	}
	return list
}

// Hide returns a text without the secrets.
func (e Environment) Hide(text string) string { return e.Hider()(text) }

// Hider returns a function that is like Hide, and faster for many texts: it looks at the
// variables once.
func (e Environment) Hider() func(text string) string {
	var keys []endpoint.Key
	for _, secret := range e.Secrets() {
		keys = append(keys, endpoint.NewKey(secret))
	}
	return func(text string) string {
		for _, k := range keys {
			text = k.Hide(text)
		}
		return text
	}
}

var errConfig = errors.New("the configuration is wrong")

// ConfigError means that the caller's input is wrong: the configuration, the agent's
// file, or the place of a store. The run did not begin.
type ConfigError struct{ Err error }

// Error returns the message of Err.
func (e *ConfigError) Error() string { return fmt.Sprint(cmp.Or(e.Err, errConfig)) }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error { return &ConfigError{fmt.Errorf(format, args...)} }

// Notice is information for people that is not an error.
type Notice struct {
	Kind NoticeKind
	// Text is a sentence that begins in lower case, without a full stop. It may quote
	// files, servers and endpoints, including control characters.
	Text string
	// Session is the session that the notice is about, if any.
	Session session.Info
	// File is the file that the notice is about: an agent's file, or the file that was
	// saved.
	File string
	// Server is the event of a [NoticeServer].
	Server mcpbridge.Event
	// Tool is the tool of a [NoticeUnapproved].
	Tool string
}

// NoticeKind is the kind of a [Notice].
type NoticeKind string

// The kinds of notices. Those marked as usual report normal progress.
const (
	NoticeAnswers      NoticeKind = "answers"      // usual: which model answers, and where
	NoticeUnconfigured NoticeKind = "unconfigured" // the rehearsal model answers, because no endpoint is configured
	NoticeKey          NoticeKind = "key"          // the key is not sent to an endpoint that only a file names
	NoticeRehearsed    NoticeKind = "rehearsed"    // a real model is about to read output of the rehearsal model
	NoticeRetry        NoticeKind = "retry"        // the endpoint did not answer, and is asked again
	NoticeLoss         NoticeKind = "loss"         // something cannot be expressed in Chat Completions
	NoticeUnused       NoticeKind = "unused"       // an answer of [Answers] matches no call
	NoticeRule         NoticeKind = "rule"         // a rule matches no tool
	NoticeSandbox      NoticeKind = "sandbox"      // programs are not confined, because the system cannot do it

	NoticeFile    NoticeKind = "file"    // a warning about the agent's file, with its place, on one or more lines
	NoticeWaiting NoticeKind = "waiting" // usual: work starts that may take long; Text names it
	NoticeReady   NoticeKind = "ready"   // usual: the work that Text names is done
	NoticeAudit   NoticeKind = "audit"   // the audit log cannot be written, so calls and servers are not started
	NoticeAsking  NoticeKind = "asking"  // usual: an agent in a message is asked
	NoticeAsked   NoticeKind = "asked"   // usual: the agent has answered
	// NoticeUnapproved: a call of an agent in a message needed an approval that nobody could
	// give, so it was refused.
	NoticeUnapproved NoticeKind = "unapproved"

	// NoticeDeadline: somebody has not answered in time about a call; Text says who is asked next.
	NoticeDeadline NoticeKind = "deadline"

	NoticeServer NoticeKind = "server" // an event of an MCP server; progress is usual

	NoticeNew       NoticeKind = "new"        // usual: a session begins
	NoticeContinues NoticeKind = "continues"  // usual: a session continues
	NoticeOtherFile NoticeKind = "other_file" // the session belongs to another file
	NoticeArchived  NoticeKind = "archived"   // the session is archived
	NoticeDiffers   NoticeKind = "differs"    // the session began with other messages than the file has now
	NoticeSameName  NoticeKind = "same_name"  // a session of another file has the name of the new one
	NoticeNearName  NoticeKind = "near_name"  // the file has a session with a similar name
	NoticeMissing   NoticeKind = "missing"    // something cannot be exported or saved
	NoticeNotBeside NoticeKind = "not_beside" // stored outputs are not written, because the transcript does not go to a file
	NoticeNoAgent   NoticeKind = "no_agent"   // a transcript has no declarations, because the agent's file is gone
	NoticeKept      NoticeKind = "kept"       // the session of a run that did not begin stays, because somebody's words wait in it
	NoticeSaved     NoticeKind = "saved"      // the store is gone; the conversation was saved in File
)
