// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/antiphon-go/antiphon/contrib/temporal"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// program is the name of the program, for logs. Its version is part of the definitions
// of agents, because the tools that are compiled into it are.
const program = "antiphon-temporal"

// longestPoll is how long a step waits itself for the result of a polling tool. For a longer
// time, a timer of the workflow costs less.
const longestPoll = time.Second

// workCommand is antiphon-temporal work.
type workCommand struct {
	Agents []string `required:"" sep:"none" placeholder:"DIR" help:"A folder with agents' files (*.md): the worker runs these and nothing else. May be repeated, for folders with earlier versions."`

	Trust     string `placeholder:"FILE" help:"The agreements that antiphon trust has written, trust.jsonl in its data folder. Without it only files without powers run."`
	TrustAll  bool   `name:"trust-all" help:"Agree to everything that the files of --agents may do."`
	Workspace string `placeholder:"DIR" help:"The folder that $${workspace} in files stands for. Default: the file's own."`

	Model   string `placeholder:"NAME" help:"The model, for all agents. Default: the file's, or $$OPENAI_MODEL."`
	BaseURL string `name:"base-url" placeholder:"URL" help:"The endpoint. Default: $$OPENAI_BASE_URL, or the file's."`

	Deployment string `placeholder:"NAME" help:"The worker deployment that this worker is a version of; needs --build."`
	Build      string `placeholder:"ID" help:"The build id of this version."`
	Pinned     bool   `help:"Workflows stay with the version that they began on. Default: they move to the current version."`
	Current    bool   `help:"Make this version the current one when the worker has started."`

	Attempts      int           `placeholder:"N" help:"Park a session after N attempts that failed in a row. Default: 5."`
	ApprovalTime  time.Duration `name:"approval-time" placeholder:"TIME" help:"How long a call waits for an approval. Then it does not run, and the model reads that nobody answered. Default: for ever."`
	Concurrency   int           `placeholder:"N" help:"Perform at most N steps at once. Default: 100."`
	Grace         time.Duration `placeholder:"TIME" help:"When it is interrupted, wait so long for the steps that are under way. Default: 1m."`
	AddAttributes bool          `name:"add-search-attributes" help:"Add the search attributes AntiphonSession, AntiphonAgent, AntiphonStatus and AntiphonWhy to the namespace."`
}

// Run runs a worker.
func (c *workCommand) Run(ctx context.Context, all *commands, std stdio) error {
	if (c.Deployment == "") != (c.Build == "") || (c.Pinned || c.Current) && c.Build == "" {
		return errors.New("--deployment and --build belong together, and --pinned and --current need them")
	}
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	if c.AddAttributes {
		if err := e.AddSearchAttributes(ctx); err != nil {
			return fmt.Errorf("--add-search-attributes: %w", err)
		}
	}
	files, err := c.files()
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("--agents %s: there is no file *.md", strings.Join(c.Agents, ", "))
	}
	if err != nil {
		return err
	}
	e.Attempts, e.ApprovalTime = c.Attempts, c.ApprovalTime
	e.Open = func(ctx context.Context, id, agent string) (*temporal.Opened, error) {
		return c.open(ctx, catalog(e), std, id, agent)
	}
	w, err := e.Worker(ctx, c.options())
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop() // before the store is closed
	if c.Current {
		if err := c.makeCurrent(ctx, e.Client); err != nil {
			return err
		}
	}
	fmt.Fprintf(std.err, "works on the sessions of %s, with %d agents\n", catalog(e).Place(), len(files))
	<-ctx.Done()
	fmt.Fprintln(std.err, "stops when the steps that are under way have ended")
	return nil
}

func (c *workCommand) options() (o worker.Options) {
	o.MaxConcurrentActivityExecutionSize = 100
	if c.Concurrency > 0 {
		o.MaxConcurrentActivityExecutionSize = c.Concurrency
	}
	o.WorkerStopTimeout = c.Grace
	if c.Build != "" {
		o.DeploymentOptions = worker.DeploymentOptions{UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: c.Deployment, BuildID: c.Build}}
		if c.Pinned {
			o.DeploymentOptions.DefaultVersioningBehavior = workflow.VersioningBehaviorPinned
		}
	}
	return o
}

// makeCurrent makes the version current, once the server knows it by its first poll.
func (c *workCommand) makeCurrent(ctx context.Context, con client.Client) (err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if _, err = con.WorkerDeploymentClient().GetHandle(c.Deployment).SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: c.Build}); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("--current: %w", err)
}

// files returns the agents' files, by name.
func (c *workCommand) files() (list []string, err error) {
	for _, dir := range c.Agents {
		if _, err := os.ReadDir(dir); err != nil {
			return nil, fmt.Errorf("--agents: %w", err)
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.md"))
		if err != nil {
			return nil, fmt.Errorf("--agents: %w", err)
		}
		list = append(list, found...)
	}
	return list, nil
}

// find returns the file of an agent: by its name, such as clerk, or by its name and the
// hash of its definition, such as clerk@6f1c…, with which a run goes on. The file may
// have another name then, for operators who keep earlier versions.
func (c *workCommand) find(ctx context.Context, std stdio, agent string) (file, resolved string, err error) {
	files, err := c.files()
	if err != nil {
		return "", "", err
	}
	name, hash, begun := strings.Cut(agent, "@")
	// The file of the name comes first: usually it is the one.
	slices.SortStableFunc(files, func(a, b string) int { return rank(a, name) - rank(b, name) })
	var changed error
	for _, file := range files {
		if !begun && rank(file, name) > 0 {
			break
		}
		d, _, err := host.Pack(ctx, host.Config{FrontEnd: front(std), File: file, Workspace: c.Workspace})
		if err != nil {
			changed = errors.Join(changed, err)
			continue
		}
		now, err := d.Hash()
		if err != nil {
			return "", "", err
		}
		if !begun || now == hash {
			return file, name + "@" + now, nil
		}
	}
	switch {
	case changed != nil:
		return "", "", fmt.Errorf("%w: %w", temporal.ErrMissing, changed)
	case begun:
		return "", "", fmt.Errorf("%w: the definition %.12s of the agent %s, with which the run began; put the file as it was into a folder of --agents", temporal.ErrMissing, hash, name)
	}
	return "", "", fmt.Errorf("%w: the agent %q is not in --agents %s", temporal.ErrMissing, agent, strings.Join(c.Agents, ", "))
}

func rank(file, name string) int {
	if strings.TrimSuffix(filepath.Base(file), ".md") == name {
		return 0
	}
	return 1
}

func front(std stdio) host.FrontEnd {
	return host.FrontEnd{Environment: host.Environ(std.environ), Program: program}
}

// open opens a session for a step.
func (c *workCommand) open(ctx context.Context, in store.Store, std stdio, id, agent string) (*temporal.Opened, error) {
	info, err := in.Info(ctx, id)
	if err != nil {
		return nil, missing(err)
	}
	// The store says whose session it is, and not whoever woke its workflow.
	own := strings.TrimSuffix(filepath.Base(info.Path), ".md")
	if name, _, _ := strings.Cut(cmp.Or(agent, own), "@"); name != own {
		return nil, fmt.Errorf("%w: the agent %q; the session belongs to %q", temporal.ErrMissing, name, own)
	}
	agent = cmp.Or(agent, own)
	file, resolved, err := c.find(ctx, std, agent)
	if err != nil {
		return nil, err
	}
	h, err := host.Open(ctx, host.Config{
		FrontEnd: front(std), File: file, Session: id, Store: in, Workspace: c.Workspace, Pause: true, Park: longestPoll,
		Owner: info.Owner, Endpoint: host.Endpoint{Model: c.Model, BaseURL: c.BaseURL, Several: true}, Trust: c.agreed,
		Permit: func(found session.Info) error {
			if found.ID != id {
				return fmt.Errorf("%w: the session %s was deleted", temporal.ErrMissing, id)
			}
			return nil
		},
	})
	if err != nil {
		return nil, missing(err)
	}
	a, err := h.Agent(ctx)
	if err != nil {
		return nil, missing(errors.Join(err, h.Close()))
	}
	return &temporal.Opened{Agent: a, Session: h.Session, Name: resolved, Close: h.Close}, nil
}

// missing marks the errors that another attempt would not cure.
func missing(err error) error {
	var config *host.ConfigError
	var untrusted *trust.UntrustedError
	if errors.As(err, &config) || errors.As(err, &untrusted) || errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("%w: %w", temporal.ErrMissing, err)
	}
	return err
}

// agreed answers for the operator what a file may do: what --trust has, or everything
// with --trust-all. What is in the store of sessions decides nothing.
func (c *workCommand) agreed(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
	if c.TrustAll {
		a, err := trust.Everything(ctx, claim)
		a.Decided, a.From = session.DeciderFlag, "--trust-all"
		return a, err
	}
	if c.Trust != "" {
		if grant, known, err := trust.Open(c.Trust).Find(claim); err != nil || known {
			if err != nil {
				return trust.Agreement{}, err
			}
			return grant.Agreement(), nil
		}
	}
	return trust.Agreement{}, &trust.UntrustedError{Claim: claim}
}
