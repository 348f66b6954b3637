// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// Runner runs the agents that stand in messages.
type Runner struct {
	// Models selects the model of each agent.
	Models Models
	// Settings distinguishes stored answers where the model's name and the file do
	// not: it includes the endpoint and flags that affect replies. See
	// [Options.Answers].
	Settings string
	// Connect starts the servers that the file's tools need. It may be nil.
	Connect func(context.Context, *File) error
	// Adjust may change the agents, as in [File.AgentBy]. It may be nil.
	Adjust func(*File, *agent.Agent) error
	// Used is called with the usage of each agent that ran. The usage does not include
	// agents in its own messages: Used is called for each of those too. It may be nil.
	Used func(*File, agent.Usage)
	// Notify is called with each agent before it runs. It may be nil.
	Notify func(*File)
}

// AgentError is the failure of an agent in a message.
type AgentError struct {
	File string // of the agent
	Err  error
}

// Error names the agent's file.
func (e *AgentError) Error() string { return fmt.Sprintf("the agent %s: %v", e.File, e.Err) }

// Unwrap returns the cause.
func (e *AgentError) Unwrap() error { return e.Err }

// maxNested is the maximum nesting depth of agents in messages.
const maxNested = 16

// ask returns the answer of an agent in a message.
func (s *sources) ask(ctx context.Context, ref chatmd.Ref) ([]byte, string, error) {
	if !ref.Local {
		return nil, "", errors.New("agents from the network are not run; download the file and add the flag local")
	}
	path, err := s.places.of(ref.Base).find(ref.Src)
	if err != nil {
		return nil, "", err
	}
	if at := slices.Index(s.o.loading, path); at >= 0 {
		return nil, "", errors.New("the agent asks itself: " + strings.Join(append(slices.Clone(s.o.loading[at:]), path), " → "))
	}
	if len(s.o.loading) >= maxNested {
		return nil, "", fmt.Errorf("agents are nested more than %d deep in each other's messages", maxNested)
	}
	if !s.o.Check && s.o.Runner == nil {
		return nil, "", errors.New("agents are not run here")
	}
	o := s.o
	o.loading, o.named, o.Allow = append(slices.Clip(o.loading), path), placeIn(ref), elsewhere(o.Allow)
	file, err := Load(ctx, path, o)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if len(ref.Input) == 0 && !file.asks() {
		return nil, "", fmt.Errorf("%s has no question to answer: add a <user> message to it, or write the question between <agent …> and </agent>", path)
	}
	if s.o.Check {
		s.deferred = true
		return nil, "", nil
	}
	answer, err := s.answer(ctx, file, ref.Input)
	if err != nil {
		return nil, "", &AgentError{path, err}
	}
	s.keep(ref, answer)
	return []byte(answer), "", nil
}

// asks reports whether the messages hold more than instructions and replies. An
// agent without a question is not worth a request.
func (f *File) asks() bool {
	return f.Partial || slices.ContainsFunc(f.Items, func(it item.Item) bool {
		return !it.Instructs() && it.Role() != item.RoleAssistant
	})
}

// answer returns the user's stored answer, or runs the agent and stores its answer.
// It does not use answers beside the file, because the contents of a downloaded
// folder may come from anybody. If the folder for answers cannot be written, the
// only cost is the time of the next run.
func (s *sources) answer(ctx context.Context, file *File, input []item.Part) (string, error) {
	r := s.o.Runner
	task, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(input...)})
	if err != nil {
		return "", err
	}
	a, err := file.AgentBy(r.Models, nil)
	if err != nil {
		return "", err
	}
	key, err := file.key(a, r.Settings, task)
	if err != nil {
		return "", err
	}
	s.used = append(s.used, file.used...) // by agents in its own messages
	kept := keptAnswers(s.o.Answers)
	if text, ok := kept.load(key); ok {
		return text, nil
	}
	s.sayUnread()
	var given []item.Item
	if len(input) > 0 {
		given = append(given, task)
	}
	text, used, refused, err := r.run(ctx, file, given)
	s.used = append(s.used, used)
	if r.Used != nil {
		r.Used(file, used)
	}
	if err != nil {
		return "", err
	}
	if refused { // another time somebody may allow the calls that this answer lacks
		return text, nil
	}
	if err := kept.save(key, text); err != nil {
		s.warnings = append(s.warnings, fmt.Errorf("the answer of %s is not kept: %w [warning]", file.Path, err))
	}
	return text, nil
}

// run asks an agent and returns its last reply, its usage, and whether a call was refused. The
// usage does not include the agents in its own messages, which ran when it was loaded.
func (r *Runner) run(ctx context.Context, file *File, input []item.Item) (text string, used agent.Usage, refused bool, err error) {
	if r.Notify != nil {
		r.Notify(file)
	}
	if r.Connect != nil {
		if err := r.Connect(ctx, file); err != nil {
			return "", used, false, err
		}
	}
	a, err := file.AgentBy(r.Models, r.Adjust)
	if err != nil {
		return "", used, false, err
	}
	sess, err := file.Session(ctx)
	if err != nil {
		return "", used, false, err
	}
	res, err := a.Run(ctx, sess, input...)
	used = res.All()
	switch {
	case err != nil:
		return "", used, false, err
	case res.Why != agent.StopEndTurn:
		return "", used, false, errors.New(strings.TrimSuffix(fmt.Sprintf("the agent did not answer: %s: %s", res.Why, res.Detail), ": "))
	case res.Text == "":
		return "", used, false, errors.New("the agent's answer is empty")
	default:
		return res.Text, used, res.Totals.RefusedCalls > 0, nil
	}
}

// key returns a key for an answer that covers everything the answer depends on: the
// agent's file and its imports, its tools and their folders, the model and its
// settings, and the task.
func (f *File) key(a *agent.Agent, settings string, task item.Item) (string, error) {
	h := sha256.New()
	request := a.Request
	request.Input = nil
	text, err := request.MarshalJSON()
	if err != nil {
		return "", err
	}
	addTexts(h, "antiphon answer 2", settings, string(text), task.JSON())
	if err := f.digest(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// digest adds the content of a file, without its name.
func (f *File) digest(h hash.Hash) error {
	addTexts(h, f.doc().Source())
	for _, src := range f.doc().Imports {
		addTexts(h, string(src.Text))
	}
	for _, it := range f.Items {
		it, err := it.Whole()
		if err != nil {
			return err
		}
		addTexts(h, it.JSON())
	}
	if name, rehearsed := rehearsal.ParseModel(f.Model()); rehearsed && name != "" {
		_, text, err := f.scriptText(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		addTexts(h, string(text))
	}
	for _, t := range f.Tools { // another version of the program may have different tools
		text, err := item.ToolJSON(t.Definition())
		if err != nil {
			return err
		}
		addTexts(h, string(text))
	}
	if f.files != nil && len(f.Tools)+len(f.servers) > 0 { // an equal file in another folder sees other files
		for _, r := range f.files.Roots() {
			addTexts(h, r.Name, r.Path)
		}
	}
	for _, d := range f.servers { // started in this folder, so that the same words may start another program
		addTexts(h, d.server.Dir)
	}
	for _, n := range f.nested {
		if err := n.file.digest(h); err != nil {
			return err
		}
	}
	return nil
}

// addTexts writes texts to h so that two different lists never produce the same
// bytes.
func addTexts(h hash.Hash, texts ...string) {
	for _, s := range texts {
		fmt.Fprintf(h, "%d:", len(s))
		h.Write([]byte(s))
	}
}
