// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Endpoint says who answers. What is not set is taken from the agent's file, then
// from the variables OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY and
// OPENAI_ACCOUNT. The zero value is safe: a model that somebody names is asked at
// the endpoint that is named with it, and where nobody names a model and no
// endpoint is configured, the rehearsal model answers.
type Endpoint struct {
	// Model is the model's name; "rehearsal", or "rehearsal:SCRIPT", is the
	// rehearsal model.
	Model string
	// BaseURL is where it is. The key of OPENAI_API_KEY goes there, and nowhere that
	// only a file names.
	BaseURL string
	// Profile is what kind of endpoint it is, such as "llama.cpp". Default: what the
	// address tells.
	Profile string
	// API is [endpoint.APIResponses] or [endpoint.APIChat]. Default: what the profile
	// prefers.
	API string
	// Transport is how turns travel: "http" with the whole history, which is the
	// default; "continue" or "websocket" with what is new.
	Transport string
	// Rehearsal lets the rehearsal model answer, whoever is named elsewhere.
	Rehearsal bool
	// Table has the profiles of endpoints and models. Nil is the built-in one.
	Table *endpoint.Table
}

// said is what an agent's file says of who is to answer.
type said struct {
	path                    string // for messages
	model, baseURL, profile string
	script                  func(path string) (*rehearsal.Script, error)
	tools                   []tool.Tool
}

// saidBy takes nil for no file.
func saidBy(file *agentfile.File) said {
	if file == nil {
		return said{}
	}
	return said{file.Path, file.Model(), file.BaseURL(), file.Profile(), file.Script, file.Tools}
}

// provider is who answers.
type provider struct {
	model agent.Model
	// name is the model's name in requests.
	name string
	// rehearsed says that the rehearsal model answers.
	rehearsed bool
	// who says who answers.
	who  Notice
	link *Link // nil for the rehearsal
	// notes warn a person.
	notes []Notice
	stop  func()
}

// provider chooses who answers. The rehearsal does when the configuration asks for
// it, when the file or OPENAI_MODEL asks for it and the configuration names nobody
// else, and when no model and no endpoint is named anywhere.
func (e *Endpoint) provider(file said, front *Front) (*provider, error) {
	if script, why, err := e.rehearses(file, front); err != nil {
		return nil, err
	} else if why != "" {
		return rehearse(file, script, why, front)
	}
	link, err := e.link(file, front)
	if err != nil {
		return nil, err
	}
	if link.Model == "" {
		if err := front.Environment.Filled("OPENAI_MODEL"); err != nil {
			return nil, err
		}
		return nil, invalid(`no model is named: give %s, set OPENAI_MODEL, or write <config model="NAME"/> in the file`, front.Terms.full("Endpoint.Model"))
	}
	model, stop := link.client(front)
	return &provider{model: model, name: link.Model, who: link.who(), link: link, notes: []Notice{{Kind: NoticeKey, Text: link.KeptBack}}, stop: stop}, nil
}

// providers are who answers the agents of a run: the one that a file describes,
// and those that it has as tools.
type providers struct {
	front *Front
	from  *Endpoint
	main  *provider // who answers the agent that is run
	notes []Notice  // each once
	stops []func()
}

func newProviders(from *Endpoint, front *Front) *providers {
	return &providers{front: front, from: from}
}

// of is an [agentfile.Models].
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

func (p *providers) index(note Notice) int {
	return slices.IndexFunc(p.notes, func(n Notice) bool { return n.Text == note.Text })
}

// close ends what was started for them.
func (p *providers) close() {
	for _, stop := range p.stops {
		stop()
	}
}

// tell notifies of who answers, with the kind of server that answered the session
// before.
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

// tellRehearsed warns that a real model is about to read what the rehearsal model
// said as its own words.
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
		case session.Given:
			count(b.Item)
		case session.Received:
			count(b.Item)
		}
	}
	if n > 0 {
		p.front.notify(NoticeRehearsed, "the rehearsal model said %s of this conversation; %s reads that as its own words. A new session or transcript begins without it.",
			many(n, "item", "items"), p.main.name)
	}
}

// Why the rehearsal model answers.
const (
	wanted   = "wanted"
	fallback = "fallback"
)

// Rehearses reports whether the rehearsal model answers a file, and whether it does
// only because no endpoint is configured. File may be nil.
func (e Endpoint) Rehearses(file *agentfile.File, front Front) (rehearsed, fallsBack bool, err error) {
	_, why, err := e.rehearses(saidBy(file), &front)
	return why != "", why == fallback, err
}

// rehearses says whether the rehearsal model answers, why, and by which script;
// "" means none. A model that somebody named is never replaced by the rehearsal:
// without an endpoint it is an [unreachable]. U1
func (e *Endpoint) rehearses(file said, front *Front) (script, why string, err error) {
	env := front.Environment
	named, byFlag := rehearsal.ParseModel(e.Model)
	script, byFile := rehearsal.ParseModel(file.model)
	byEnv := env["OPENAI_MODEL"] == rehearsal.Model && file.model == ""
	base, key, _ := e.address(file, env)
	switch {
	case e.Rehearsal && (e.BaseURL != "" || e.Model != "" && !byFlag):
		name := front.Terms.name
		return "", "", invalid("%s does not go with %s or %s", name("Endpoint.Rehearsal"), name("Endpoint.BaseURL"), name("Endpoint.Model"))
	case byFlag && named != "": // as all paths of a configuration, relative to the working directory
		full, err := filepath.Abs(named)
		return full, wanted, err
	case byFile && (e.Rehearsal || e.BaseURL == "" && e.Model == ""):
		return script, wanted, nil
	case byFlag, e.Rehearsal, byEnv && e.BaseURL == "" && e.Model == "":
		return "", wanted, nil
	case base != "" || !key.IsZero():
		return "", "", nil
	case e.Model == "" && file.model == "" && env["OPENAI_MODEL"] == "":
		return "", fallback, env.Filled("OPENAI_MODEL", "OPENAI_BASE_URL")
	}
	return "", "", &ConfigError{e.unreachable(file, front)}
}

// script is the text of the script that Model names; nil if it names none, or if it
// cannot be read, which a run reports.
func (e *Endpoint) script() []byte {
	path, _ := rehearsal.ParseModel(e.Model)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// unreachable is a model that was named and has no endpoint.
type unreachable struct {
	model, by string
	emptyKey  bool // OPENAI_API_KEY is set, and to nothing
	terms     Terms
}

func (e *Endpoint) unreachable(file said, front *Front) *unreachable {
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

// Error says which model it is, and how to go on.
func (u *unreachable) Error() string {
	key := "set OPENAI_API_KEY"
	if u.emptyKey {
		key = "OPENAI_API_KEY is empty: set it"
	}
	return fmt.Sprintf("no endpoint is configured for the model %q, which %s names; %s for OpenAI, give %s for another endpoint, or give %s to try without a model",
		u.model, u.by, key, u.terms.full("Endpoint.BaseURL"), u.terms.full("Endpoint.Rehearsal"))
}

// reachable refuses a model that nobody can answer for, before anything is made,
// started or asked for a run of the file at path. It reads the file once more, and
// only where neither the configuration nor a variable names an endpoint. What else
// is wrong with the file is left to the run, which reports it.
func (e *Endpoint) reachable(ctx context.Context, path string, options agentfile.Options, front *Front) error {
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

// Link is how an endpoint is reached.
type Link struct {
	BaseURL, Model string // as they were named; "" if they were not
	Key            endpoint.Key
	Account        string
	Profile        *endpoint.Profile // nil: what the address and the answers tell
	Known          endpoint.Profile  // what the address tells, or Profile
	Host           string
	Table          *endpoint.Table
	API            string
	Transport      string
	// KeptBack says that there is a key and why it is not sent, "" if it is sent or
	// there is none.
	KeptBack string
}

// who says who answers, and as what kind of endpoint it is treated.
func (l *Link) who() Notice {
	kind := "profile " + l.Known.Name
	if l.API == endpoint.APIChat {
		kind += ", Chat Completions"
	}
	return Notice{Kind: NoticeAnswers, Text: fmt.Sprintf("%s at %s answers (%s)", l.Model, l.Host, kind)}
}

// Link puts together what the configuration, a file and the environment say of the
// endpoint. File may be nil.
func (e Endpoint) Link(file *agentfile.File, front Front) (*Link, error) {
	return e.link(saidBy(file), &front)
}

func (e *Endpoint) link(file said, front *Front) (*Link, error) {
	env, table := front.Environment, e.Table
	if err := env.Filled("OPENAI_BASE_URL"); err != nil && e.BaseURL == "" && file.baseURL == "" {
		return nil, err
	}
	l := &Link{Table: table, Account: env["OPENAI_ACCOUNT"], Transport: e.Transport}
	var held bool
	if l.BaseURL, l.Key, held = e.address(file, env); held {
		l.KeptBack = "OPENAI_API_KEY is not sent to the base_url of the file; name it with " + front.Terms.name("Endpoint.BaseURL") + " to send it"
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
	if l.Model = e.Model; l.Model == "" {
		if _, rehearsed := rehearsal.ParseModel(file.model); !rehearsed {
			l.Model = file.model
		}
	}
	l.Model = cmp.Or(l.Model, env["OPENAI_MODEL"])
	if l.API == endpoint.APIChat && l.Transport != "" && l.Transport != "http" {
		return nil, invalid("%s is for the Responses API; Chat Completions has the whole history in each request", front.Terms.name("Endpoint.Transport"))
	}
	return l, nil
}

// client returns the client of the API that is to be spoken, and what ends it.
func (l *Link) client(front *Front) (agent.Model, func()) {
	onRetry := front.tellRetry
	if l.API == endpoint.APIChat {
		return &completions.Client{
			BaseURL: l.BaseURL, Key: l.Key, Account: l.Account, Profile: l.Profile, Table: l.Table,
			UserAgent: front.userAgent(), OnRetry: onRetry, OnLoss: front.tellLosses(),
		}, func() {}
	}
	client := &responses.Client{
		BaseURL: l.BaseURL, Key: l.Key, Account: l.Account, Profile: l.Profile, Table: l.Table,
		UserAgent: front.userAgent(), OnRetry: onRetry,
	}
	thread := &responses.Thread{Client: client}
	switch l.Transport {
	case "websocket":
		thread.Transport = responses.WebSocket
	case "continue":
	default:
		return client, func() {}
	}
	return thread, func() { _ = thread.Close() }
}

// tellLosses names what has no form in Chat Completions, each kind of thing once.
// Labels that no model reads, and what is only moved, are not worth a line: a
// reader would learn to pass over the one that matters.
func (f *Front) tellLosses() func([]completions.Loss) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(losses []completions.Loss) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range losses {
			said := "not sent, Chat Completions has no place for it: "
			if strings.HasPrefix(l.Path, "choices[") {
				if l.Kind == completions.LostContent {
					continue // the run tells it, and logs it
				}
				said = "not kept, a response has no place for it: "
			}
			if (l.Kind == completions.LostMember || l.Kind == completions.LostContent) && !told[said+l.What] {
				told[said+l.What] = true
				f.notify(NoticeLoss, "%s%s", said, l)
			}
		}
	}
}

// tellRetry tells of waits that a person would notice.
func (f *Front) tellRetry(err error, wait time.Duration, _ int) {
	var e *endpoint.Error
	if wait < time.Second || !errors.As(err, &e) {
		return
	}
	why := strings.ReplaceAll(string(e.Class), "_", " ")
	if e.Status != 0 {
		why += fmt.Sprintf(", status %d", e.Status)
	}
	f.notify(NoticeRetry, "no answer (%s), asking again in %s", why, wait.Round(10*time.Millisecond))
}

// address returns the base URL and the key that may go there. The key belongs
// to the person who runs the program: a file's own base_url gets it only where
// the environment names the same host; held says that it does not get it.
func (e *Endpoint) address(file said, env Environment) (base string, key endpoint.Key, held bool) {
	key = endpoint.NewKey(env["OPENAI_API_KEY"])
	fromEnv := env["OPENAI_BASE_URL"]
	if e.BaseURL != "" || file.baseURL == "" {
		return cmp.Or(e.BaseURL, fromEnv), key, false
	}
	if !key.IsZero() && !sameHost(file.baseURL, cmp.Or(fromEnv, endpoint.DefaultBaseURL)) {
		return file.baseURL, endpoint.Key{}, true
	}
	return file.baseURL, key, false
}

func sameHost(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host) && u.Scheme == v.Scheme
}

// improvised says what the rehearsal does without a script.
const improvised = "it calls each tool that only reads, once"

// rehearse starts the rehearsal's server on loopback and a client of it. The
// script's path is relative to the file; "" means none.
func rehearse(file said, script, why string, front *Front) (*provider, error) {
	server := &rehearsal.Server{ReadOnly: readOnly(file.tools)}
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
	if why == fallback { // a warning: what is made up may be taken for an answer
		p.who = Notice{Kind: NoticeFallback, Text: "no endpoint is configured, so the rehearsal model answers (" + improvised + "); for a real one name a model, and give " + front.Terms.name("Endpoint.BaseURL") + " or set OPENAI_API_KEY"}
	}
	return p, nil
}

// rehearsed is the client of a rehearsal. What it says of itself is the same for
// each run, whatever port the rehearsal has.
type rehearsed struct{ *responses.Client }

// About marks in logs that no model answered.
func (rehearsed) About() endpoint.About {
	return endpoint.About{API: endpoint.APIResponses, Rehearsal: true}
}

func readOnly(tools []tool.Tool) func(string) bool {
	names := map[string]bool{}
	if set, err := tool.NewSet(tools...); err == nil {
		for name, t := range set.All() {
			names[name] = tool.AnnotationsOf(t).ReadOnly
		}
	}
	return func(name string) bool { return names[name] }
}

// many says how many there are.
func many(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
