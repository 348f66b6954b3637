// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/trust"
)

// stage says what a worker may run, and opens it. It is where a simulation, which has no
// files and no sockets, differs from a worker.
type stage interface {
	// agreed returns the hashes of the definitions that the worker may run, and fits
	// those among them that it can run as far as it knows.
	agreed() ([]string, error)
	fits() ([]string, error)
	// lacks says why the worker cannot run a definition, or returns "".
	lacks(ctx context.Context, hash string) (why string, err error)
	// otherVersion says that a definition belongs to another version of the program, or
	// returns "". Nobody needs to have agreed to the definition.
	otherVersion(ctx context.Context, hash string) (why string, err error)
	// url returns the endpoint of a definition, or "" if it is not known yet.
	url(hash string) string
	// opener returns what opens the session of a piece of work, and its endpoint; nil if
	// the worker cannot run it.
	opener(ctx context.Context, w queue.Work) (open opener, url string, err error)
}

// opener opens a session. It calls locked when it has locked it, as [host.Config].Locked
// says. A session that is open and cannot run comes with the error, and is closed behind the
// work: else somebody might leave more work between the two, which would be lost.
type opener func(ctx context.Context, locked func(context.Context, session.Info) error) (conversation, error)

// conversation is an open session: a [host.Host].
type conversation interface {
	Stream(ctx context.Context, text string) iter.Seq2[agent.Event, error]
	Result() *agent.Result
	StopAfterTurn()
	Close() error
}

// files is the stage of a worker: its Agents, and hosts for them.
type files struct {
	*Worker
	log   *slog.Logger
	known map[string]agentfile.Definition
	unfit map[string]string // why the worker cannot run other definitions
	urls  map[string]string // the endpoints of definitions
	same  map[string]bool   // definitions of this version of the program to which nobody agreed
}

func (f *files) agreed() ([]string, error) { return f.Agents.Hashes() }

func (f *files) fits() ([]string, error) {
	hashes, err := f.Agents.Hashes()
	return slices.DeleteFunc(hashes, func(hash string) bool { return f.unfit[hash] != "" }), err
}

func (f *files) lacks(ctx context.Context, hash string) (why string, err error) {
	_, why, err = f.definition(ctx, hash)
	return why, err
}

// definition returns a definition, or why this worker cannot run it.
func (f *files) definition(ctx context.Context, hash string) (d agentfile.Definition, why string, err error) {
	if why, ok := f.unfit[hash]; ok {
		return d, why, nil
	}
	if d, ok := f.known[hash]; ok {
		return d, "", nil
	}
	d, err = definition(ctx, f.Config.Store, hash)
	var bad *definitionError
	switch {
	case errors.As(err, &bad):
		return d, noDefinition + err.Error(), nil
	case err != nil:
		return d, "", err
	}
	if why := f.notThis(d); why != "" {
		f.unfit[hash] = why
		return d, why, nil
	}
	f.known[hash] = d
	return d, "", nil
}

// otherVersion keeps only its answer, because a definition to which nobody agreed may be large
// and is not needed again.
func (f *files) otherVersion(ctx context.Context, hash string) (why string, err error) {
	if f.same[hash] {
		return "", nil
	}
	if why, ok := f.unfit[hash]; ok {
		if strings.HasPrefix(why, noVersion) {
			return why, nil
		}
		return "", nil
	}
	d, err := definition(ctx, f.Config.Store, hash)
	var bad *definitionError
	if errors.As(err, &bad) {
		return "", nil // it is read again next time: it may be in the store then
	}
	if err != nil {
		return "", err
	}
	if why = f.notThis(d); why != "" {
		f.unfit[hash] = why
	} else {
		f.same[hash] = true
	}
	return why, nil
}

// notThis says that a definition belongs to another version of the program, or returns "".
// Another version may have other tools under the same names. D3
func (f *files) notThis(d agentfile.Definition) string {
	if d.Program == f.Config.Program {
		return ""
	}
	return noVersion + excerpt.Name(orUnknown(d.Program)) + " with which it began; this one is " + orUnknown(f.Config.Program)
}

func orUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}

func (f *files) url(hash string) string { return f.urls[hash] }

func (f *files) opener(ctx context.Context, w queue.Work) (open opener, url string, err error) {
	d, why, err := f.definition(ctx, w.Agent)
	if err != nil || why != "" {
		return nil, "", err
	}
	workspace, err := f.workspace(w.Session, w.Needs)
	if err != nil {
		return nil, "", nil // the folder has gone since
	}
	path, ask, err := f.Agents.open(d, workspace, f.Config.Workspace)
	if errors.Is(err, errUntrusted) {
		return nil, "", nil // the agreement was revoked since
	}
	if err != nil {
		f.unfit[w.Agent] = needed + "another worker: " + f.sayable(err)
		f.log.Error("a definition cannot be used", "agent", w.Agent, "error", f.sayable(err))
		return nil, "", nil
	}
	cfg := f.config(path, w.Session, ask)
	cfg.Pause, cfg.Workspace = !w.Refuse, workspace
	url, known := f.urls[w.Agent]
	if !known {
		url, _, err = host.Address(ctx, cfg)
		if errors.Is(err, host.ErrNoEndpoint) {
			f.unfit[w.Agent] = needed + "a worker with an endpoint for it; here, " + f.sayable(err)
			return nil, "", nil
		}
		f.urls[w.Agent] = url // if it is wrong in another way, the run says so
	}
	place := repositoryOf(w.Needs)
	return func(ctx context.Context, locked func(context.Context, session.Info) error) (conversation, error) {
		cfg.Locked = locked
		if place != "" {
			p, err := f.checkoutOf(w.Session).open(ctx, cfg, place)
			if err != nil {
				return nil, err // and not a nil *placed
			}
			return p, f.prepare(ctx, &p.opened)
		}
		h, err := host.Open(ctx, cfg)
		if err != nil {
			return nil, err // and not a nil *opened
		}
		o := &opened{Host: h}
		return o, f.prepare(ctx, o)
	}, url, nil
}

// opened is an open session.
type opened struct {
	*host.Host
	live func(agent.Event) // is told of the run; or nil
}

func (o *opened) tell(ev agent.Event) {
	if o.live != nil {
		o.live(ev)
	}
}

func (f *files) prepare(ctx context.Context, o *opened) (err error) {
	if f.Prepare != nil {
		o.live, err = f.Prepare(ctx, o.Host)
	}
	return err
}

// usual are the kinds of notices that only say that everything works as expected. That the
// session belongs to another file is expected, too: to the one that the definition was
// made from.
var usual = []host.NoticeKind{
	host.NoticeAnswers, host.NoticeWaiting, host.NoticeReady, host.NoticeAsking, host.NoticeAsked, host.NoticeServer, host.NoticeNew,
	host.NoticeContinues, host.NoticeOtherFile, host.NoticeUnconfigured,
}

// longestPoll is how long a run waits itself for the result of a polling tool. For a longer
// time, to begin it again costs less than a place in the worker.
const longestPoll = time.Second

// config returns the configuration of a run.
func (f *files) config(path, id string, ask func(context.Context, trust.Claim) (trust.Agreement, error)) host.Config {
	cfg := f.Config
	cfg.File, cfg.Session, cfg.Last, cfg.Place, cfg.Transcript, cfg.Owner, cfg.Tags = path, id, false, "", "", "", nil
	cfg.Trust, cfg.Pause, cfg.Park = ask, true, longestPoll
	// What decides about later runs is asked about before a tool writes to it.
	cfg.Protected = append(slices.Clip(cfg.Protected), f.Agents.Folder, f.Agents.Agreed.Path())
	permit := cfg.Permit
	cfg.Permit = func(found session.Info) error {
		if found.ID != id { // it was deleted, and would begin anew
			return errGone
		}
		if permit != nil {
			return permit(found)
		}
		return nil
	}
	if cfg.Notify == nil {
		cfg.Notify = func(n host.Notice) {
			level := slog.LevelWarn
			if slices.Contains(usual, n.Kind) {
				level = slog.LevelDebug
			}
			f.log.Log(context.Background(), level, "notice", "session", id, "kind", string(n.Kind), "text", f.sayable(errors.New(n.Text)))
		}
	}
	return cfg
}
