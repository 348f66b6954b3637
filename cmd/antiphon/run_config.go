// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/homedir"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// config returns the configuration that the flags describe. It checks the flags
// themselves; [host.Open] checks the rest.
func (c *runCommand) config(ctx context.Context, env environment) (cfg host.Config, err error) {
	if err := cmp.Or(lastByNumber(&c.Session, &c.Last), c.check()); err != nil {
		return cfg, err
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return cfg, err
	}
	if err := c.checkFiles(env); err != nil {
		return cfg, err
	}
	options, err := fileOptions()
	if err != nil {
		return cfg, err
	}
	cfg = host.Config{
		File: c.File, Workspace: options.Workspace, Home: options.Home, Cache: answersFolder(env),
		Session: c.Session, Last: c.Last, Among: c.among, Owner: c.Owner, Tags: c.Tag,
		Endpoint: c.endpoint(table), Rules: c.rules(), Sandbox: c.Sandbox, Hosts: c.Hosts, Pause: c.Pause, Hint: c.hint, ApprovalTime: c.ApprovalTime, Approvers: c.Approvers,
		Limits:   agent.Limits{MaxTurns: c.MaxTurns, MaxTime: c.MaxTime, MaxTokens: c.MaxTokens, MaxCost: c.MaxCost, MaxRepeats: c.MaxRepeats},
		Parallel: c.Parallel, CollapseReads: c.CollapseReads, Outputs: c.Spill, KeepAgent: c.KeepAgent,
	}
	var problems [5]error
	cfg.Answer, problems[4] = c.mustBe(ctx)
	cfg.Price, problems[0] = c.price()
	if cfg.Prices, err = pricesFor(env["ANTIPHON_PRICES"]); err != nil {
		return cfg, usage(fmt.Errorf("ANTIPHON_PRICES: %w", err))
	}
	cfg.Compaction, problems[1] = c.compaction()
	cfg.MaxOutput, problems[2] = limitOf("--max-output", c.MaxOutput)
	cfg.MaxTurnOutput, problems[3] = limitOf("--max-turn-output", c.MaxTurnOutput)
	for _, problem := range problems {
		if problem != nil {
			return cfg, problem
		}
	}
	if c.ApproveFrom != "" {
		if cfg.Answers, err = unlessEnded(ctx, func() (*host.Answers, error) { return host.ReadAnswers(c.ApproveFrom, "--approve-from") }); err != nil {
			return cfg, usage(err)
		}
	}
	return cfg, c.place(env, &cfg)
}

// place sets where the conversation is kept.
func (c *runCommand) place(env environment, cfg *host.Config) (err error) {
	switch {
	case c.inSession():
		cfg.Place, cfg.StoreOptions, err = c.storeFlag.at(env, true)
		cfg.Permit = func(found session.Info) error { return c.checkOut(env, found.ID) }
	case c.InPlace:
		cfg.Transcript = c.File
	case sameFile(c.File, c.Out):
		err = usage(fmt.Errorf("--out %s is the agent's file itself; give --in-place to append to it", c.Out))
	default:
		cfg.Transcript = c.Out
	}
	return err
}

// approvalFlags say how long a person is asked about a call.
type approvalFlags struct {
	ApprovalTime time.Duration `name:"approval-time" placeholder:"TIME" help:"How long a question about a call waits for each of --approvers. After the last of them the call does not run, and the model reads that nobody answered. Default: it waits for ever."`
	Approvers    []string      `placeholder:"NAME" sep:"," help:"With --approval-time: the people who are asked, one after the other. Anybody may answer: antiphon sessions approve."`
}

// checkApprovals checks the flags. A run that lets calls wait has ended, so no time runs.
func (f *approvalFlags) checkApprovals(pauses bool) error {
	switch {
	case f.ApprovalTime < 0 || len(f.Approvers) > 0 && f.ApprovalTime == 0 || slices.Contains(f.Approvers, ""):
		return usage(errors.New("--approvers are names that are not empty and need --approval-time, which cannot be negative"))
	case f.ApprovalTime > 0 && pauses:
		return usage(errors.New("--approval-time: with --pause the run ends, and nothing counts the time of a call that waits. Leave one of them out, or leave the work to a worker, which has the flag too"))
	}
	return nil
}

// check checks the flags.
func (c *runCommand) check() error {
	if c.MaxTurns < 0 || c.MaxTime < 0 || c.MaxTokens < 0 || c.MaxCost < 0 || c.Parallel < 0 || c.MaxRepeats < 0 {
		return usage(errors.New("--max-turns, --max-time, --max-tokens, --max-cost, --max-repeats and --parallel cannot be negative"))
	}
	if c.MaxRepeats == 1 {
		return usage(errors.New("--max-repeats 1 would stop at the first call, which repeats nothing: give 2 or more"))
	}
	if math.IsNaN(c.MaxCost) || math.IsInf(c.MaxCost, 0) {
		return usage(errors.New("--max-cost is not a number"))
	}
	if err := c.checkApprovals(c.Pause); err != nil {
		return err
	}
	if c.Pause && c.Out == "" && !c.InPlace && !c.inSession() {
		return usage(errors.New("--pause needs --session NAME, --out FILE or --in-place, to keep the waiting calls"))
	}
	if efforts := []string{"", api.EffortNone, api.EffortMinimal, api.EffortLow, api.EffortMedium, api.EffortHigh, api.EffortXHigh, api.EffortMax}; !slices.Contains(efforts, c.Effort) {
		return usage(fmt.Errorf("--effort is %q, want one of %s", c.Effort, strings.Join(efforts[1:], ", ")))
	}
	if t := c.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return usage(fmt.Errorf("--temperature is %v, want a number from 0 to 2, such as 0.7", *t))
	}
	if info, err := os.Stat(c.Out); err == nil && info.IsDir() {
		return usage(fmt.Errorf("--out %s is a folder; name a file, such as %s", c.Out, filepath.Join(c.Out, "talk.md")))
	}
	if err := c.checkKept(); err != nil {
		return err
	}
	if err := plan.CheckPatterns(slices.Concat(c.Allow, c.Ask, c.Deny)...); err != nil {
		return usage(fmt.Errorf("--allow, --ask, --deny: %w", err))
	}
	return nil
}

// checkKept refuses flags that have no effect, because the conversation is not kept
// where they apply.
func (c *runCommand) checkKept() error {
	if c.KeepAgent && (c.Out == "" || c.inSession()) {
		return usage(errors.New("--keep-agent needs --out FILE, where FILE is the transcript to continue"))
	}
	if c.inSession() {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--store", c.Store != ""}, {"--no-attach", c.NoAttach}, {"--force", c.Force}, {"--owner", c.Owner != ""}, {"--tag", len(c.Tag) > 0}} {
		if flag.given {
			return usage(fmt.Errorf("%s needs --session NAME or --last", flag.name))
		}
	}
	return nil
}

// maxSchema is the largest size of a file for --schema or --profiles.
const maxSchema = 4 << 20

// readAtMost reads a file that a person named, unless it is larger than most bytes. The error begins
// with the path.
func readAtMost(ctx context.Context, path string, most int) ([]byte, error) {
	data, err := unlessEnded(ctx, func() ([]byte, error) { // a pipe waits for its writer
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, int64(most)+1))
	})
	if why := (*fs.PathError)(nil); errors.As(err, &why) {
		err = why.Err
	}
	if err == nil && len(data) > most {
		err = fmt.Errorf("the file has more than %d MiB", most>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// mustBe reads --schema.
func (c *runCommand) mustBe(ctx context.Context) (*agent.Answer, error) {
	if c.Schema == "" {
		if c.SchemaText {
			return nil, usage(errors.New("--schema-text needs --schema FILE"))
		}
		return nil, nil
	}
	text, err := readAtMost(ctx, c.Schema, maxSchema)
	if err != nil {
		return nil, usage(fmt.Errorf("--schema %w", err))
	}
	schema, err := tool.ParseSchema(item.JSON(text))
	if err != nil {
		return nil, usage(fmt.Errorf("--schema %s: %w", c.Schema, err))
	}
	if kind := schema.Kind(); kind != "" && kind != "object" && !c.SchemaText {
		return nil, usage(fmt.Errorf(`--schema %s: the schema is of type %s, and endpoints accept an object: make the answer a member, as in {"type":"object","properties":{"answer":{"type":%q}},"required":["answer"],"additionalProperties":false}, or add --schema-text`, c.Schema, kind, kind))
	}
	return &agent.Answer{Schema: schema, Instruct: c.SchemaText}, nil
}

// inSession reports whether the run is kept in a session of a store.
func (c *runCommand) inSession() bool { return c.Session != "" || c.Last }

// checkFiles refuses files that are not agent files, with a hint.
func (c *runCommand) checkFiles(env environment) error {
	for _, path := range []string{c.File, c.Out} {
		if isExport(path) && !(c.inSession() && path == c.Out) {
			return usage(fmt.Errorf("%s is an exported session, not an agent; antiphon sessions import %s --for AGENT makes a session from it that you can continue", path, path))
		}
	}
	if c.File == "-" {
		return usage(errors.New("give the agent's file: piped input is the prompt, as in antiphon run FILE -"))
	}
	if err := cmp.Or(absentAgent(c.File, agentNames(env)), notAgent(c.File)); err != nil {
		return usage(err)
	}
	return nil
}

// hint returns the text that the model reads when nobody could approve a call.
func (c *runCommand) hint(tool string) string {
	if c.Pause { // only for subagents, whose sessions a transcript does not keep
		return "The user can allow it with --allow " + tool + ", or run with --session NAME, so that the call can wait."
	}
	return "The user can allow it with --allow " + tool + "."
}

// compaction parses --compact.
func (c *runCommand) compaction() (host.Compaction, error) {
	as := host.Compaction{By: c.CompactBy}
	switch c.Compact {
	case "":
	case "auto":
		as.Auto = true
	case "off":
		as.Off = true
	default:
		n, err := strconv.ParseInt(c.Compact, 10, 64)
		if err != nil || n <= 0 {
			return as, usage(fmt.Errorf("--compact is %q, want auto, off or a number of tokens", c.Compact))
		}
		as.At = n
	}
	return as, nil
}

// price parses --price, or returns nil.
func (c *runCommand) price() (*agent.Price, error) {
	if c.Price == "" {
		return nil, nil
	}
	price, err := parsePrice(c.Price)
	if err != nil {
		return nil, usage(fmt.Errorf("--price is %q, want three numbers such as 1.25,0.125,10", c.Price))
	}
	return &price, nil
}

// limitOf parses an output limit; nil means that none is given.
func limitOf(flag, text string) (*output.Limit, error) {
	switch text {
	case "":
		return nil, nil
	case "none":
		return new(output.Limit), nil
	}
	limit, err := output.ParseLimit(text)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", flag, err))
	}
	return &limit, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// fileOptions returns the folders that ChatMarkdown files can name.
func fileOptions() (agentfile.Options, error) {
	workspace, err := os.Getwd()
	if err != nil {
		return agentfile.Options{}, err
	}
	home, err := homedir.Folder()
	if err != nil {
		home = "" // only files with ${home} need one
	}
	return agentfile.Options{Workspace: filepath.Clean(workspace), Home: home}, nil
}

// answersFolder returns the folder for answers of agents in messages. It is in the
// user's cache folder, and never beside a file, which may come from somebody else.
// It is "" if the user has no such folder; then answers are not stored.
func answersFolder(env environment) string { return cacheFolder(env, "answers") }

// cacheFolder returns a folder in the user's cache folder, or "" if there is none.
func cacheFolder(env environment, name string) string {
	dir := env["XDG_CACHE_HOME"]
	if !filepath.IsAbs(dir) {
		switch runtime.GOOS {
		case "windows":
			dir = env["LOCALAPPDATA"]
		case "darwin", "ios":
			dir = filepath.Join(env["HOME"], "Library", "Caches")
		default:
			dir = filepath.Join(env["HOME"], ".cache")
		}
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "antiphon", name)
}

// Validate refuses an empty --session and an empty prompt, for example from an unset
// variable: the run would not be kept, or would send the file's question instead.
func (c *runCommand) Validate(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Positional != nil && p.Positional.Name == "prompt" && strings.TrimSpace(c.Prompt) == "" {
			return errors.New("the prompt is empty: give it a text, or leave it out")
		}
		if p.Flag != nil && p.Flag.Name == "session" && c.Session == "" {
			return errors.New("--session needs a name, and this one is empty")
		}
	}
	return nil
}
