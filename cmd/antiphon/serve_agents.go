// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/trust"
)

// offered are the agents' files that are served.
type offered struct {
	flags *servedFlags
	what  string // each is to clients
	std   stdio
	env   environment
	cfg   host.Config // of all runs
	list  []offeredAgent
	tools offeredTools      // of the list
	said  map[string]string // by the file of a folder that is not served, why
	taken string            // the state of the folders before they were read
}

// offeredAgent is an agent's file that can be served.
type offeredAgent struct {
	name   string
	config host.Config
	file   *agentfile.File // closed: what it says
	by     string          // who answers
}

// offers asks about the files, and returns those that can be served. what is what each is
// to clients. A file of a folder that cannot be served is a warning.
func (c *servedFlags) offers(ctx context.Context, what string, std stdio, env environment) (o *offered, err error) {
	if c.MaxTurns < 0 || c.MaxTime < 0 || c.MaxTokens < 0 {
		return nil, usage(errors.New("limits and times cannot be negative"))
	}
	o = &offered{flags: c, what: what, std: std, env: env, said: map[string]string{}}
	o.taken = o.state()
	files, err := c.files(what)
	if err != nil {
		return nil, err
	}
	if o.cfg, err = c.config(ctx, std, env); err != nil {
		return nil, err
	}
	for _, file := range files {
		err := o.add(ctx, file)
		mayBeLeftOut := !slices.Contains(c.Files, file) && ctx.Err() == nil && !errors.As(err, new(*trust.UntrustedError))
		switch {
		case err == nil:
			o.say(o.list[len(o.list)-1])
		case mayBeLeftOut:
			o.notServed(file, err)
		default:
			return nil, err
		}
	}
	if len(o.list) == 0 {
		return nil, usage(errors.New("none of the files can be served"))
	}
	if err := o.tools.check(o.cfg.Rules); err != nil {
		return nil, usage(err)
	}
	for i := range o.list {
		o.list[i].config.OtherTools = o.tools.others(i, o.cfg.Rules)
	}
	return o, nil
}

// mostWatched bounds the files below a served folder that are looked at, besides those that it serves.
const mostWatched = 1000

// state describes what the agents of the folders are made from.
func (o *offered) state() string { return stateOfAgents(o.env, mostWatched, o.flags.folders()...) }

// add adds a file to the list, if it can be served.
func (o *offered) add(ctx context.Context, file string) error {
	a, err := o.flags.agent(ctx, o.cfg, file, o.std, o.env)
	if err != nil {
		return err
	}
	if a.by, err = o.flags.answeredBy(ctx, a.config); err != nil {
		return err
	}
	o.list = append(o.list, a)
	o.tools.add(a.file)
	delete(o.said, file)
	return nil
}

// say says that an agent is served.
func (o *offered) say(a offeredAgent) {
	fmt.Fprintf(o.std.err, "antiphon: the %s %s is %s, answered by %s\n", o.what, show.Visible(a.name), show.Visible(a.config.File), show.Visible(a.by))
}

// notServed says once why a file is not served, and what to do.
func (o *offered) notServed(file string, err error) {
	problem := leftOut(o.env, file, err)
	if o.said[file] != problem {
		o.said[file] = problem
		fmt.Fprintf(o.std.err, "antiphon: warning: %s is not served: %s\n", show.Visible(file), show.Printable(problem))
	}
}

// leftOut says in a line why a file of a folder is not served.
func leftOut(env environment, file string, err error) string {
	if errors.As(err, new(*trust.UntrustedError)) {
		return show.Unbroken(env.Hide(err.Error()))
	}
	text := bytes.TrimSpace(headOf(file, sniffed))
	if errors.As(err, new(*chatmd.Error)) && len(text) > 0 && text[0] != '<' && notAgent(file) == nil {
		return "it is not an agent's file, because it begins with text outside of any element"
	}
	problem, _, _ := strings.Cut(env.Hide(err.Error()), "\n")
	return problem
}

// folders are the folders whose files are served.
func (c *servedFlags) folders() (list []string) {
	for _, name := range c.Files {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			list = append(list, name)
		}
	}
	return list
}

// more adds the files of the folders that were not served until now and can be, and returns them. Nobody is asked,
// and --trust does not agree to what was not there when the server started. K1
func (o *offered) more(ctx context.Context) []offeredAgent {
	flags := *o.flags
	flags.Trust, flags.later = false, true
	o.flags = &flags
	before := len(o.list)
	there := map[string]bool{}
	for _, folder := range flags.folders() {
		files, err := filesOfFolder(folder)
		if err != nil {
			return nil // the pattern was right when the server started
		}
		for _, file := range files {
			there[file] = true
			i := slices.IndexFunc(o.list, func(a offeredAgent) bool { return a.name == modelName(file) })
			if i >= 0 {
				if other := o.list[i].config.File; other != file && !sameFile(other, file) {
					o.notServed(file, fmt.Errorf("the %s %s is %s; rename one, or start the server again", o.what, modelName(file), other))
				}
				continue
			}
			err := notAgent(file)
			if err == nil {
				err = o.add(ctx, file)
			}
			if ctx.Err() != nil {
				return o.list[before:]
			}
			if err != nil {
				o.notServed(file, err)
			}
		}
	}
	for file := range o.said {
		if !there[file] {
			delete(o.said, file)
		}
	}
	for i := before; i < len(o.list); i++ {
		o.list[i].config.OtherTools = o.tools.others(i, o.cfg.Rules)
	}
	return o.list[before:]
}

// offer makes the backend of the agents, if there are any. The person is asked about their files.
func (s *serving) offer(ctx context.Context, c *serveCommand, std stdio, env environment) (err error) {
	if len(c.Files) == 0 {
		return nil
	}
	if s.offered, err = c.offers(ctx, "model", std, env); err != nil {
		return err
	}
	errorLog, hide := log.New(std.err, "antiphon: ", 0), env.Hider()
	s.agents = &agents.Backend{Later: s.laterAgents, Queue: c.workers, KeepStreams: c.KeepStreams, Webhook: s.hook, Log: func(err error) { errorLog.Print(show.Unbroken(hide(err.Error()))) }}
	for _, a := range s.offered.list {
		s.agents.Agents = append(s.agents.Agents, s.agent(a))
	}
	return nil
}

// watch takes up new files of the folders until end is called.
func (s *serving) watch(ctx context.Context) (end func()) {
	if s.offered == nil || len(s.folders()) == 0 {
		return func() {}
	}
	return watchAgents(ctx, s.offered.taken, s.offered.state, func(ctx context.Context) {
		list, more := slices.Clone(s.laterAgents()), s.offered.more(ctx)
		for _, a := range more {
			list = append(list, s.agent(a))
		}
		s.later.Store(&list)
		for _, a := range more {
			s.offered.say(a)
		}
	})
}

// agent returns an agent as it is served.
func (s *serving) agent(a offeredAgent) agents.Agent {
	served := agents.Agent{Name: a.name, Description: a.file.Description(), Config: a.config}
	if s.hooks != nil {
		served.Hooks = s.hooks(a.name)
	}
	return served
}

// laterAgents are those that came after the server had started.
func (s *serving) laterAgents() []agents.Agent {
	if list := s.later.Load(); list != nil {
		return *list
	}
	return nil
}
