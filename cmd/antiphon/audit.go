// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// auditLog returns the audit log, which is beside the agreements, or nil if the person
// wants none.
func auditLog(env environment) (*audit.Log, error) {
	path := env["ANTIPHON_AUDIT"]
	switch {
	case path == "off":
		return nil, nil
	case path == "":
		sessions, err := dataFile(env)
		if err != nil {
			return nil, usage(errors.New("the home folder, which holds the audit log, is not known; set HOME"))
		}
		path = filepath.Join(filepath.Dir(sessions), "audit.jsonl")
	case !filepath.IsAbs(path):
		return nil, usage(fmt.Errorf("ANTIPHON_AUDIT is %q; give the absolute path of a file, or off", path))
	}
	log := audit.Open(path)
	log.Program, log.Hide = "antiphon "+programVersion(), env.Hide
	return log, nil
}

// auditCommand is antiphon audit.
type auditCommand struct {
	Show   auditShowCommand   `cmd:"" help:"Show the log, newest last."`
	Verify auditVerifyCommand `cmd:"" help:"Check that no line was changed or removed."`
}

// Help is shown by antiphon audit --help.
func (auditCommand) Help() string {
	return `The log records who agreed to what, which rule allowed or denied a call, and
what was started and sent because of it. It has hashes of the arguments and of the
texts that were shown, not the texts. Each line has the hash of the line before.

ANTIPHON_AUDIT names another file; ANTIPHON_AUDIT=off writes no log.

Examples:
  antiphon audit show --since 2h
  antiphon audit show --session work --json
  antiphon audit verify
  antiphon audit verify --head HASH`
}

// opened returns the log for reading.
func (auditCommand) opened(env environment) (*audit.Log, error) {
	log, err := auditLog(env)
	if err == nil && log == nil {
		err = usage(errors.New("no audit log is written, because ANTIPHON_AUDIT is off"))
	}
	return log, err
}

// auditShowCommand is antiphon audit show.
type auditShowCommand struct {
	Session string `placeholder:"SESSION" help:"Only records of the session with this name or id, and of its subagents."`
	Since   string `placeholder:"TIME" help:"Only records since then: an age such as 2h or 7d, a day such as 2026-05-31, or a time such as 2026-05-31T12:00:00Z."`
	JSON    bool   `name:"json" help:"Print the lines of the log as they are in the file."`
	storeFlag
}

// Run shows the log.
func (c *auditShowCommand) Run(ctx context.Context, std stdio, env environment, all *auditCommand) error {
	log, err := all.opened(env)
	if err != nil {
		return err
	}
	since, err := pastTime(c.Since, time.Now())
	if err != nil {
		return err
	}
	id := ""
	if c.Session != "" {
		if id, err = c.session(ctx, env, log); err != nil {
			return err
		}
	}
	head, damaged := "", 0
	for line, err := range log.All() {
		if err != nil {
			return err
		}
		if line.Cut != "" {
			fmt.Fprintf(std.err, "!! %s\n", audit.Damage{Line: line.Number, What: line.Cut})
			break
		}
		head = line.Hash
		if line.Damage != "" {
			damaged++
			fmt.Fprintf(std.err, "!! %s\n", audit.Damage{Line: line.Number, What: line.Damage})
		}
		if line.JSON == nil || line.At.Before(since) || id != "" && !belongsTo(&line.Record, id) {
			continue
		}
		if c.JSON {
			fmt.Fprintf(toJSON(std.out), "%s\n", line.JSON)
		} else {
			fmt.Fprintln(std.out, env.Hide(recordText(&line.Record)))
		}
	}
	switch {
	case head == "":
		fmt.Fprintln(std.err, "antiphon: the audit log is empty")
	case damaged > 0:
		fmt.Fprintln(std.err, "antiphon: the log is damaged; antiphon audit verify lists where")
	default:
		fmt.Fprintln(std.err, "head: "+head)
	}
	return nil
}

// session returns the id of the session that --session names: in the log, which also knows
// sessions that are deleted or elsewhere, or in the store.
func (c *auditShowCommand) session(ctx context.Context, env environment, log *audit.Log) (string, error) {
	for line, err := range log.All() {
		if err == nil && belongsTo(&line.Record, c.Session) {
			return c.Session, nil
		}
	}
	store, err := c.open(ctx, env, false)
	if err == nil {
		var info session.Info
		info, err = find(ctx, store, c.Session, false)
		if err = errors.Join(err, store.Close()); err == nil {
			return info.ID, nil
		}
	}
	return "", usage(fmt.Errorf("--session: no record is about a session with the id %s, and no session with that name was found: %w", show.Printable(c.Session), err))
}

// belongsTo reports whether a record is about a session or one of its subagents.
func belongsTo(r *audit.Record, id string) bool {
	return r.Session == id || strings.HasPrefix(r.Session, id+"/")
}

// pastTime parses a time in the past; "" is the zero time.
func pastTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usage(fmt.Errorf("--since %q is not an age such as 2h or 7d, nor a day such as 2026-05-31", text))
}

// recordText describes a record for people.
func recordText(r *audit.Record) string {
	words := []string{r.At.Local().Format("2006-01-02 15:04:05"), fmt.Sprintf("%-10s", show.Visible(string(r.Kind)))}
	add := func(format, text string) {
		if text != "" {
			words = append(words, fmt.Sprintf(format, show.Visible(text)))
		}
	}
	brief := func(hash string) string { return hash[:min(len(hash), 12)] }
	ofFile := r.CallID == "" && len(r.Command) == 0 && r.What == "" // the file itself is what it is about
	if ofFile {
		add("%s", r.File)
		add("(%s)", brief(r.Claim))
	}
	add("%s", r.What)
	if len(r.Command) > 0 {
		words = append(words, commandText(r.Command))
	}
	add("%s", r.Tool)
	add("%s", r.CallID)
	if r.Kind == audit.KindReleased {
		add("to %s", r.Where)
	} else {
		add("in %s", r.Where)
	}
	add("sandbox %s", r.Sandbox)
	add("by %s", cmp.Or(r.By, string(r.Decided)))
	add("(%s)", r.From)
	add("rule: %s", r.Rule)
	add("arguments %s", brief(r.Arguments))
	add("shown %s", brief(r.Shown))
	add("session %s", r.Session)
	add("agent %s", r.Agent)
	if !ofFile {
		add("of %s", r.File)
	}
	text := strings.Join(words, "  ")
	for _, p := range r.Powers {
		text += "\n                      " + show.Visible(p.String())
	}
	return text
}

// commandText returns the words of a command as a list in JSON, so that a space in a word
// and one between words look different.
func commandText(command []string) string {
	list, err := json.Marshal(command, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return show.Visible(strings.Join(command, " ")) // a list of texts is always JSON
	}
	return show.Visible(string(list))
}

// auditVerifyCommand is antiphon audit verify.
type auditVerifyCommand struct {
	Head []string `placeholder:"HASH" sep:"," help:"A head that you kept: it must be the hash of a line. May be repeated."`
	JSON bool     `name:"json" help:"Print the outcome as JSON."`
}

var isHash = lazyregexp.New(`^[0-9a-f]{64}$`)

// Help is shown by antiphon audit verify --help.
func (auditVerifyCommand) Help() string {
	return `The exit code is 0 if the chain is whole, 1 if it is broken, 2 if there is no log. A last line that a
crash cut, or that is being written now, is reported and does not break the chain:
nothing was started because of it, and the next record replaces it.

The chain cannot show that the last lines are missing, nor that all of it was
written anew. Keep the head, which the command prints, where a program of yours
cannot change it, and give it with --head later.`
}

// Run verifies.
func (c *auditVerifyCommand) Run(std stdio, env environment, all *auditCommand) error {
	log, err := all.opened(env)
	if err != nil {
		return err
	}
	for _, head := range c.Head {
		if !isHash.MatchString(head) {
			return usage(fmt.Errorf("--head: %s is not a hash: 64 digits and letters from a to f", show.Printable(head)))
		}
	}
	report, err := log.Verify(c.Head...)
	if err != nil {
		return err
	}
	if _, err := os.Stat(log.Path()); errors.Is(err, fs.ErrNotExist) && len(c.Head) == 0 {
		return usage(fmt.Errorf("there is no audit log %s: nothing was recorded yet, or the file was removed; if you kept a head, --head HASH tells which", show.Printable(log.Path())))
	}
	if c.JSON {
		err = errors.Join(json.MarshalWrite(toJSON(std.out), report, lineOptions), newline(std.out))
	} else {
		for _, d := range report.Damage {
			fmt.Fprintln(std.out, d)
		}
		if report.Cut != nil {
			fmt.Fprintln(std.out, report.Cut)
		}
		if len(report.Damage) == 0 {
			fmt.Fprintf(std.out, "%s, no damage\nhead: %s\n", show.Plural(report.Lines, "line"), report.Head)
		}
	}
	if err == nil && len(report.Damage) > 0 {
		err = &exitError{exitFailed, errors.New("the audit log is damaged")}
	}
	return err
}
