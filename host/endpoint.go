// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	_ "github.com/antiphon-go/antiphon/completions" // registers the dialect
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Endpoint selects the model and the endpoint. For each empty field, the agent's
// file is used, and then the variables OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY
// and OPENAI_ACCOUNT. The zero value is safe: it uses the model and the endpoint
// that are named elsewhere, and if no model is named and no endpoint is configured,
// the rehearsal model answers.
type Endpoint struct {
	// Model is the model's name. "rehearsal" or "rehearsal:SCRIPT" selects the
	// rehearsal model, a mock model.
	Model string
	// BaseURL is the endpoint's base URL. The key of OPENAI_API_KEY is sent to it,
	// but not to a URL that only a file names.
	BaseURL string
	// Several is set if agents of several files use this endpoint. Then BaseURL alone does not
	// replace the rehearsal model that a file names.
	Several bool
	// Profile is the kind of endpoint, such as "llama.cpp". Empty means that it is
	// detected from the address.
	Profile string
	// API is the name of a wire API, such as [endpoint.APIResponses] or
	// [endpoint.APIChat]; [dialect.Names] lists them. Empty means the profile's
	// first.
	API string
	// Transport is how turns are sent: "http" sends the whole history and is the default;
	// "continue" and "websocket" send only the new items.
	Transport string
	// Rehearsal selects the rehearsal model, whatever the file and the environment name.
	Rehearsal bool
	// Calls reports which tools the rehearsal model may call besides those of the file that
	// only read, such as tools that somebody else runs. It may be nil.
	Calls func(tool string) bool
	// Table has the profiles of endpoints and models. Nil means the built-in table.
	Table *endpoint.Table
}

// said holds an agent's file's settings for the model and the endpoint.
type said struct {
	path                    string // for messages
	model, baseURL, profile string
	script                  func(path string) (*rehearsal.Script, error)
	tools                   []tool.Tool
	slip                    string // see slipOf
}

// saidBy returns the settings of a file. A nil file has none.
func saidBy(file *agentfile.File) said {
	if file == nil {
		return said{}
	}
	return said{file.Path, file.Model(), file.BaseURL(), file.Profile(), file.Script, file.Tools, slipOf(file)}
}

// whoAnswers are the attributes of <config> that name a model or an endpoint.
const whoAnswers = "model base_url profile"

// slipOf returns what is wrong with an attribute of <config> that was probably meant to name the model
// or the endpoint, or "".
func slipOf(file *agentfile.File) string {
	if file.Doc == nil || file.Doc.Config == nil {
		return ""
	}
	for _, a := range file.Doc.Config.Attrs {
		if meant := chatmd.Suggest(a.Name, whoAnswers); meant != "" && meant != a.Name {
			return fmt.Sprintf("<config> has no attribute %s, so the file names no model; did you mean %s?", a.Name, meant)
		}
	}
	return ""
}

// provider is the model that answers, and its endpoint.
type provider struct {
	model agent.Model
	// name is the model's name in requests.
	name string
	// rehearsed is set if the rehearsal model answers.
	rehearsed bool
	// who names the model and the endpoint.
	who  Notice
	link *Link // nil for the rehearsal model
	// notes are warnings for the user.
	notes []Notice
	stop  func()
}

// provider selects the model. It selects the rehearsal model if the configuration
// asks for it, if the file or OPENAI_MODEL asks for it and the configuration names
// nothing else, or if no model and no endpoint is named anywhere.
func (e *Endpoint) provider(file said, front *FrontEnd) (*provider, error) {
	if script, why, err := e.rehearses(file, front); err != nil {
		return nil, err
	} else if why != "" {
		return rehearse(file, script, why, e.Calls, front)
	}
	link, err := e.named(file, front)
	if err != nil {
		return nil, err
	}
	model, stop := link.client(front)
	return &provider{model: model, name: link.Model, who: link.who(), link: link, notes: []Notice{{Kind: NoticeKey, Text: link.KeptBack}}, stop: stop}, nil
}

// providers are the providers of a run's agents: the agent that a file describes,
// and the agents that it uses as tools.
type providers struct {
	front *FrontEnd
	from  *Endpoint
	main  *provider // the provider of the agent that is run
	notes []Notice  // without duplicates
	stops []func()
}

func newProviders(from *Endpoint, front *FrontEnd) *providers {
	return &providers{front: front, from: from}
}

// of implements [agentfile.Models].
func (p *providers) of(file *agentfile.File) (agent.Model, string, error) {
	who, err := p.from.provider(saidBy(file), p.front)
	if err != nil {
		return nil, "", err
	}
	p.main = cmp.Or(p.main, who)
	p.stops = append(p.stops, who.stop)
	for _, note := range append([]Notice{who.who}, who.notes...) {
		if note.Text != "" && p.index(note) < 0 {
			p.notes = append(p.notes, note)
		}
	}
	return who.model, who.name, nil
}

// index returns the index of a note with the same text, or -1. Several agents of a
// run often use the same model, which is reported once.
func (p *providers) index(note Notice) int {
	return slices.IndexFunc(p.notes, func(n Notice) bool { return n.Text == note.Text })
}

// close releases the providers' resources.
func (p *providers) close() {
	for _, stop := range p.stops {
		stop()
	}
}

// tell notifies the user of the models and endpoints, including the kind of server
// that answered the session before.
func (p *providers) tell(sess *session.Session) {
	if m := p.main; m != nil && m.link != nil {
		agent.Recall(m.model, sess)
		if i := p.index(m.who); i >= 0 {
			m.link.Known.Name = m.model.(agent.Describer).About().Profile
			p.notes[i] = m.link.who()
		}
	}
	for _, note := range p.notes {
		p.front.tell(note)
	}
}

// tellRehearsed warns that a real model is about to read items of the rehearsal
// model as its own.
func (p *providers) tellRehearsed(sess *session.Session) {
	if p.main == nil || p.main.rehearsed {
		return
	}
	n := 0
	count := func(it item.Item) {
		if rehearsal.Said(it) {
			n++
		}
	}
	for e := range sess.Entries() {
		switch b := e.Body.(type) {
		case session.InputItem:
			count(b.Item)
		case session.OutputItem:
			count(b.Item)
		}
	}
	if n > 0 {
		p.front.notify(NoticeRehearsed, "the rehearsal model said %s of this conversation; %s reads that as its own words. A new session or transcript begins without it.",
			many(n, "item", "items"), p.main.name)
	}
}

// Reasons for using the rehearsal model.
const (
	wanted   = "wanted"
	fallback = "fallback"
)

// Rehearses reports whether the rehearsal model answers for a file, and whether only
// because no endpoint is configured. File may be nil.
func (e Endpoint) Rehearses(file *agentfile.File, front FrontEnd) (rehearsed, fallsBack bool, err error) {
	_, why, err := e.rehearses(saidBy(file), &front)
	return why != "", why == fallback, err
}

// check returns an error for an unknown profile or wire API. The rehearsal model needs
// neither, but a wrong name would otherwise be found only with a real model.
func (e *Endpoint) check(front *FrontEnd) error {
	if _, script := rehearsal.ParseModel(e.Model); e.Rehearsal && (e.BaseURL != "" || e.Model != "" && !script) {
		name := front.Terms.name
		return invalid("%s does not go with %s or %s", name("Endpoint.Rehearsal"), name("Endpoint.BaseURL"), name("Endpoint.Model"))
	}
	if e.Profile != "" {
		if _, err := e.Table.ByName(e.Profile); err != nil {
			return invalid("%s: %w", front.Terms.name("Endpoint.Profile"), err)
		}
	}
	if e.API != "" && e.API != "auto" {
		if _, err := dialect.ByName(e.API); err != nil {
			return invalid("%s: %w", front.Terms.name("Endpoint.API"), err)
		}
	}
	return nil
}

// rehearses returns whether and why the rehearsal model answers, and its script; an
// empty why means that it does not. The rehearsal model never replaces a model that
// was named: without an endpoint the error is an [unreachable]. U1
func (e *Endpoint) rehearses(file said, front *FrontEnd) (script, why string, err error) {
	if err := e.check(front); err != nil {
		return "", "", err
	}
	env := front.Environment
	named, byFlag := rehearsal.ParseModel(e.Model)
	script, byFile := rehearsal.ParseModel(file.model)
	byEnv := env["OPENAI_MODEL"] == rehearsal.Model && file.model == ""
	base, key, _ := e.address(file, env)
	switch {
	case byFlag && named != "": // relative to the working directory, like all paths of a configuration
		full, err := filepath.Abs(named)
		return full, wanted, err
	case byFile && (e.Rehearsal || e.Model == "" && (e.BaseURL == "" || e.Several)):
		return script, wanted, nil
	case byFlag, e.Rehearsal, byEnv && e.BaseURL == "" && e.Model == "":
		return "", wanted, nil
	case base != "" || !key.IsZero():
		return "", "", nil
	case e.Several && e.Model == "" && file.model == "" && file.slip != "": // nobody sees a warning
		return "", "", invalid("%s: %s", file.path, file.slip)
	case e.Model == "" && file.model == "" && env["OPENAI_MODEL"] == "":
		return "", fallback, env.Filled("OPENAI_MODEL", "OPENAI_BASE_URL")
	}
	return "", "", &ConfigError{e.unreachable(file, front)}
}

// script returns the text of the script that Model names. It returns nil if Model
// names no script, or if the script cannot be read; a run reports that error.
func (e *Endpoint) script() []byte {
	path, is := rehearsal.ParseModel(e.Model)
	if !is || path == "" {
		return nil
	}
	f, _, err := private.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, rehearsal.MaxScript))
	if err != nil {
		return nil
	}
	return text
}

// ErrNoEndpoint means that a model was named and has no endpoint here, such as one that needs
// a key which the environment does not have, or that an endpoint was named and no model.
var ErrNoEndpoint = errors.New("no endpoint is configured")

// noModel reports an endpoint for which no model was named.
type noModel struct{ terms SettingNames }

// Is reports whether target is [ErrNoEndpoint].
func (*noModel) Is(target error) bool { return target == ErrNoEndpoint }

// Error says how to name a model.
func (e *noModel) Error() string {
	return fmt.Sprintf(`no model is configured: give %s, set OPENAI_MODEL, or write <config model="NAME"/> in the file`, e.terms.full("Endpoint.Model"))
}

// unreachable reports a model that was named but has no endpoint.
type unreachable struct {
	model, by string
	emptyKey  bool // OPENAI_API_KEY is set, but empty
	terms     SettingNames
}

// unreachable returns the error for the first model that is named: in the
// configuration, in the file, or in OPENAI_MODEL.
func (e *Endpoint) unreachable(file said, front *FrontEnd) *unreachable {
	env := front.Environment
	u := &unreachable{model: e.Model, by: front.Terms.name("Endpoint.Model"), terms: front.Terms}
	if u.model == "" {
		u.model, u.by = file.model, file.path
	}
	if u.model == "" {
		u.model, u.by = env["OPENAI_MODEL"], "OPENAI_MODEL"
	}
	_, u.emptyKey = env["OPENAI_API_KEY"]
	return u
}

// Is reports whether target is [ErrNoEndpoint].
func (*unreachable) Is(target error) bool { return target == ErrNoEndpoint }

// Error names the model and says what to do next.
func (u *unreachable) Error() string {
	key := "set OPENAI_API_KEY"
	if u.emptyKey {
		key = "OPENAI_API_KEY is empty: set it"
	}
	if keep := u.terms["Key"]; keep != "" {
		key += " (or keep a key: " + keep + ")"
	}
	return fmt.Sprintf("no endpoint is configured for the model %q, which %s names; %s for OpenAI, give %s for another endpoint, or give %s to try without a model",
		u.model, u.by, key, u.terms.full("Endpoint.BaseURL"), u.terms.full("Endpoint.Rehearsal"))
}

// reachable returns an error if a model has no endpoint, before a run of the file at
// path creates, starts or asks anything. It loads the file once more, and only if
// neither the configuration nor a variable names an endpoint. It leaves other errors
// in the file to the run.
func (e *Endpoint) reachable(ctx context.Context, path string, options agentfile.Options, front *FrontEnd) error {
	if _, _, err := e.rehearses(said{path: path, model: "any"}, front); !errors.As(err, new(*unreachable)) {
		return nil
	}
	options.Profiles, options.Check = e.Table, true
	file, err := agentfile.Load(ctx, path, options)
	if err != nil {
		return nil
	}
	defer file.Close()
	_, err = file.AgentBy(func(f *agentfile.File) (agent.Model, string, error) {
		_, _, err := e.rehearses(saidBy(f), front)
		return &responses.Client{}, rehearsal.Model, err
	}, nil)
	if errors.As(err, new(*unreachable)) {
		return err
	}
	return nil
}

// Link is the address of an endpoint and how to use it.
type Link struct {
	BaseURL, Model string // as configured; "" if not
	Key            endpoint.Key
	Account        string
	Profile        *endpoint.Profile // nil means detected from the address and the answers
	Known          endpoint.Profile  // Profile, or the profile detected from the address
	Host           string
	Table          *endpoint.Table
	API            string          // the name of Dialect
	Dialect        dialect.Dialect // the wire API
	Transport      string
	// Kept is set if Key is one that is kept for this place, and not that of OPENAI_API_KEY.
	Kept bool
	// KeptBack says why a key is not sent. It is "" if the key is sent or there is none.
	KeptBack string
}

// who returns the notice that names the model, the host and the kind of endpoint.
func (l *Link) who() Notice {
	kind := "profile " + l.Known.Name
	if l.API != endpoint.APIResponses {
		kind += ", " + l.Dialect.Info().Title
	}
	return Notice{Kind: NoticeAnswers, Text: fmt.Sprintf("%s at %s answers (%s)", l.Model, l.Host, kind)}
}

// Link returns the endpoint's settings from the configuration, a file and the
// environment. File may be nil.
func (e Endpoint) Link(file *agentfile.File, front FrontEnd) (*Link, error) {
	return e.link(saidBy(file), &front)
}

func (e *Endpoint) link(file said, front *FrontEnd) (*Link, error) {
	env, table := front.Environment, e.Table
	if err := env.Filled("OPENAI_BASE_URL"); err != nil && e.BaseURL == "" && file.baseURL == "" {
		return nil, err
	}
	l := &Link{Table: table, Account: env["OPENAI_ACCOUNT"], Transport: e.Transport}
	var held bool
	if l.BaseURL, l.Key, held = e.address(file, env); held {
		l.KeptBack = "OPENAI_API_KEY is not sent to the base_url of the file; name it with " + front.Terms.name("Endpoint.BaseURL") + " to send it"
	}
	kept, found := env.kept(cmp.Or(l.BaseURL, endpoint.DefaultBaseURL))
	if held && found {
		l.KeptBack = "OPENAI_API_KEY is not sent to an endpoint of the settings that is not the usual one; it gets the key that is kept for it, and there is none"
	}
	l.Kept = !l.Key.IsZero() && l.Key.Reveal() == kept.Reveal()
	if what := notAKey(l.Key.Reveal()); what != "" {
		where := "OPENAI_API_KEY"
		if l.Kept {
			where = "the key that is kept for " + cmp.Or(l.BaseURL, endpoint.DefaultBaseURL)
		}
		return nil, invalid("%s %s; copy the key again. Nothing was sent", where, what)
	}
	u, err := endpoint.URL(cmp.Or(l.BaseURL, endpoint.DefaultBaseURL), "/")
	if err != nil {
		return nil, err
	}
	known := table.Detect(u)
	if name := cmp.Or(e.Profile, file.profile); name != "" {
		if known, err = table.ByName(name); err != nil {
			return nil, invalid("%s: %w", front.Terms.name("Endpoint.Profile"), err)
		}
		l.Profile = &known
	}
	l.Known, l.Host = known, u.Host
	l.API = e.API
	if l.API == "" || l.API == "auto" {
		l.API = known.APIs[0]
	}
	if l.Dialect, err = dialect.ByName(l.API); err != nil {
		return nil, invalid("%s: %w", front.Terms.name("Endpoint.API"), err)
	}
	if l.Model = e.Model; l.Model == "" {
		if _, rehearsed := rehearsal.ParseModel(file.model); !rehearsed {
			l.Model = file.model
		}
	}
	l.Model = cmp.Or(l.Model, env["OPENAI_MODEL"])
	if info := l.Dialect.Info(); l.Transport == "continue" && !info.Continue || l.Transport == "websocket" && !info.WebSocket {
		return nil, invalid("%s is for the Responses API; %s has the whole history in each request", front.Terms.name("Endpoint.Transport"), info.Title)
	}
	return l, nil
}

// named is like link, and returns an error if no model is named.
func (e *Endpoint) named(file said, front *FrontEnd) (*Link, error) {
	l, err := e.link(file, front)
	if err != nil || l.Model != "" {
		return l, err
	}
	if err := front.Environment.Filled("OPENAI_MODEL"); err != nil {
		return nil, err
	}
	return nil, &ConfigError{&noModel{front.Terms}}
}

// notAKey says why a text cannot be a key, without showing it, or returns "".
func notAKey(text string) string {
	odd := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	switch n := len(text); {
	case strings.Contains(text, "…"):
		return "contains …, so it is an example or a part of a key"
	case odd >= 0:
		return fmt.Sprintf("has a character at byte %d that no key has", odd+1)
	case n > 1 && text[0] == text[n-1] && strings.ContainsAny(text[:1], `"'`):
		return "is in quotes, which are not part of a key"
	}
	return ""
}

// Config returns the configuration of a client.
func (l *Link) Config() *dialect.Config {
	return &dialect.Config{BaseURL: l.BaseURL, Key: l.Key, Account: l.Account, Profile: l.Profile, Table: l.Table}
}

// Address returns the base URL, without secrets, of the endpoint that the agent of the
// configuration's File asks, and the model that it is asked for. Both are "" if the rehearsal
// model answers. Nothing is started or asked, and the file needs no consent.
func Address(ctx context.Context, cfg Config) (address, model string, err error) {
	options := cfg.options()
	options.Check = true
	file, err := agentfile.Load(ctx, cfg.File, options)
	if err != nil {
		return "", "", &ConfigError{err}
	}
	defer file.Close()
	own := saidBy(file)
	if _, why, err := cfg.Endpoint.rehearses(own, &cfg.FrontEnd); err != nil || why != "" {
		return "", "", err
	}
	link, err := cfg.Endpoint.named(own, &cfg.FrontEnd)
	if err != nil {
		return "", "", err
	}
	return link.Config().Transport().About(link.API).URL, link.Model, nil
}

// client returns the client of the wire API, and a function that closes it.
func (l *Link) client(front *FrontEnd) (agent.Model, func()) {
	config := l.Config()
	config.UserAgent, config.OnRetry, config.OnLoss = front.userAgent(), front.tellRetry, front.tellLosses(l.Dialect.Info().Title)
	model := dialect.Open(l.Dialect, config)
	client, ok := model.(*responses.Client)
	if !ok {
		return model, func() {}
	}
	chain := &responses.Chain{Client: client}
	switch l.Transport {
	case "websocket":
		chain.Transport = responses.WebSocket
	case "continue":
	default:
		return client, func() {}
	}
	return chain, func() { _ = chain.Close() }
}

// tellLosses returns a function that reports what a wire API cannot express, once
// for each kind. Labels that models do not read and values that were only moved are
// not reported, so that important losses stand out.
func (f *FrontEnd) tellLosses(api string) func([]dialect.Loss) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(losses []dialect.Loss) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range losses {
			said := "not sent, " + api + " has no form for it: "
			if l.Reply {
				if l.Kind == dialect.LostContent {
					continue // the run reports and logs it
				}
				said = "not kept, a response has no form for it: "
			}
			if (l.Kind == dialect.LostMember || l.Kind == dialect.LostContent) && !told[said+l.What] {
				told[said+l.What] = true
				f.notify(NoticeLoss, "%s%s", said, l)
			}
		}
	}
}

// tellRetry reports waits that a user would notice.
func (f *FrontEnd) tellRetry(err error, wait time.Duration, _ int) {
	var e *endpoint.Error
	if wait < time.Second || !errors.As(err, &e) {
		return
	}
	why := strings.ReplaceAll(string(e.Class), "_", " ")
	if e.Status != 0 {
		why += fmt.Sprintf(", status %d", e.Status)
	}
	f.notify(NoticeRetry, "no answer (%s), retrying in %s", why, wait.Round(10*time.Millisecond))
}

// address returns the base URL and the key to send there. The key belongs to the
// user who runs the program. A base_url in a file gets that of the environment only if
// the environment names the same place, or one above it; held is true if it does not get
// it. A key that is kept for the place goes there in any case.
func (e *Endpoint) address(file said, env Environment) (base string, key endpoint.Key, held bool) {
	key = endpoint.NewKey(env["OPENAI_API_KEY"])
	own := cmp.Or(env["OPENAI_BASE_URL"], endpoint.DefaultBaseURL)
	base = cmp.Or(e.BaseURL, file.baseURL, env["OPENAI_BASE_URL"])
	at := cmp.Or(base, endpoint.DefaultBaseURL)
	if kept, found := env.kept(at); found && (key.IsZero() || !below(at, own)) {
		return base, kept, kept.IsZero() && !key.IsZero()
	}
	if e.BaseURL == "" && file.baseURL != "" && !key.IsZero() && !below(file.baseURL, own) {
		return base, endpoint.Key{}, true
	}
	return base, key, false
}

// Keyed returns the base URLs of the endpoints for which the environment has a key, without
// the keys.
func (e Endpoint) Keyed(env Environment) (places []string) {
	if env["OPENAI_API_KEY"] != "" {
		places = append(places, cmp.Or(e.BaseURL, env["OPENAI_BASE_URL"], endpoint.DefaultBaseURL))
	}
	for name, key := range env {
		if at, ok := strings.CutPrefix(name, keptPrefix); ok && key != "" && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	slices.Sort(places)
	return places
}

// Configured returns a function that reports whether a file's base URL sends nothing to
// a place that the person has not named: no file's base URL is used, or the environment
// names the same place, or one above it. It is for [agentfile.Options].
func (e Endpoint) Configured(env Environment) func(baseURL string) bool {
	return func(base string) bool {
		own := e.BaseURL != "" || e.Rehearsal
		if _, rehearsed := rehearsal.ParseModel(e.Model); rehearsed {
			own = true
		}
		return own || below(base, cmp.Or(env["OPENAI_BASE_URL"], endpoint.DefaultBaseURL))
	}
}

// below reports whether a URL of a file is a configured one, or below it. The path counts,
// because on a gateway it says whose account is used, and who may read the conversation. The
// scheme counts, because a key must not be sent over http to a host that was named with https.
func below(given, configured string) bool {
	u, errA := url.Parse(given)
	v, errB := url.Parse(configured)
	switch {
	case errA != nil || errB != nil || u.Host == "" || u.User != nil || u.Scheme != v.Scheme || !strings.EqualFold(u.Host, v.Host):
		return false
	case given == configured:
		return true
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return false
	}
	rest, ok := strings.CutPrefix(strings.TrimRight(u.EscapedPath(), "/")+"/", strings.TrimRight(v.EscapedPath(), "/")+"/")
	rest = "/" + strings.TrimRight(rest, "/")
	strange := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.~", r)
	}
	return ok && path.Clean(rest) == rest && !strings.ContainsFunc(rest, strange)
}

// improvised describes the rehearsal model without a script.
const improvised = "it calls each tool that only reads, once"

// rehearse starts the rehearsal model's server on loopback and returns a client for
// it. The script's path is relative to the file; "" means no script. It may also call the
// tools that more reports, which may be nil.
func rehearse(file said, script, why string, more func(string) bool, front *FrontEnd) (*provider, error) {
	reads := readOnly(file.tools)
	server := &rehearsal.Server{ReadOnly: func(name string) bool { return reads(name) || more != nil && more(name) }}
	by := improvised
	if script != "" {
		var err error
		if server.Script, err = file.script(script); err != nil {
			return nil, &ConfigError{err}
		}
		by = "scripted by " + script
	}
	base, stop, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	client := &responses.Client{BaseURL: base, IdleTimeout: time.Minute}
	p := &provider{model: rehearsed{client}, name: rehearsal.Model, rehearsed: true, stop: stop}
	p.who = Notice{Kind: NoticeAnswers, Text: "the rehearsal model answers (" + by + "): no key, no network, no cost"}
	if why == fallback { // a warning, since made-up text may be taken for an answer
		p.who = Notice{Kind: NoticeUnconfigured, Text: "no endpoint is configured, so the rehearsal model answers (" + improvised + "); for a real one name a model, and give " + front.Terms.name("Endpoint.BaseURL") + " or set OPENAI_API_KEY"}
	}
	return p, nil
}

// rehearsed is the client of a rehearsal. Its description is the same for each run,
// whatever the port.
type rehearsed struct{ *responses.Client }

// About records in logs that no real model answered.
func (rehearsed) About() endpoint.About {
	return endpoint.About{API: endpoint.APIResponses, Rehearsal: true}
}

// readOnly returns a function that reports whether a tool only reads. It returns
// false for unknown names, so that the rehearsal model does not call them.
func readOnly(tools []tool.Tool) func(string) bool {
	names := map[string]bool{}
	if set, err := tool.NewSet(tools...); err == nil {
		for name, t := range set.All() {
			names[name] = tool.AnnotationsOf(t).ReadOnly
		}
	}
	return func(name string) bool { return names[name] }
}

// many returns a count with its noun.
func many(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
