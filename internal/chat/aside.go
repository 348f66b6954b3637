// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file asks the model something about the conversation, beside it: for a title, and for what the person may say next. Both
// are off unless the person wants them, because each is a request more.

const (
	// byModel is the value of the settings that switch such requests on.
	byModel = "model"
	// mostAside is how much of the conversation such a request sends, in bytes.
	mostAside = 16 << 10
	// mostTitle and mostSuggested are how long a title and a prompt may be, in characters.
	mostTitle, mostSuggested = 80, 200
)

// asides are the values of these settings.
var asides = []string{"none", byModel}

const (
	titleTask = "Below is a conversation between a person and a model. Write a title for it, in the language of the person: " +
		"at most eight words that tell it from other conversations. Answer with the title alone, on one line, without quotes."
	suggestTask = "Below is the end of a conversation between a person and a model. Write what the person will most likely say next, " +
		"in their language and manner: one short line, such as a request or an answer to a question of the model. Answer with that line alone, without quotes."
)

// title gives the session a title. Without a text, the model writes one.
func (t *dialogue) title(ctx context.Context, text string) error {
	if err := t.kept(); err != nil {
		return err
	}
	if text == "" {
		title, cost, err := t.titleByModel(ctx)
		if err != nil {
			return err
		}
		return t.entitle(ctx, title, cost)
	}
	if len([]rune(text)) > mostTitle {
		return fmt.Errorf("a title has at most %d characters", mostTitle)
	}
	return t.entitle(ctx, text, "")
}

// titleByModel asks the model for a title, and returns it with what it cost.
func (t *dialogue) titleByModel(ctx context.Context) (title, cost string, err error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer t.face.working(stop, nil)()
	t.face.Wait("title", "a title")
	defer t.face.Done("title")
	asks, err := t.beside(work, titleTask, false)
	if err != nil {
		return "", "", fmt.Errorf("no title: %w", err)
	}
	res, err := asks()
	if failure := t.spend(ctx, res); failure != nil || err != nil {
		return "", "", fmt.Errorf("no title: %w", cmp.Or(err, failure))
	}
	if title = lineIn(res.Text, mostTitle); title == "" {
		return "", "", errors.New("no title: the model's answer has no text")
	}
	u := res.Totals
	return title, show.UsedText(u.All(), u.Nested, show.Tokens{Input: u.InputTokens, Cached: u.CachedTokens, Output: u.OutputTokens, Total: u.TotalTokens}), nil
}

// entitle stores a title, and says what it cost.
func (t *dialogue) entitle(ctx context.Context, title, cost string) error {
	if err := t.host.Store.Label(ctx, t.info.ID, session.Labels{Title: &title}); err != nil {
		return err
	}
	t.info.Title, t.untitled = title, false
	fmt.Fprintf(t.std.Err, "antiphon: the title of the conversation is: %s%s\n", show.Printable(t.env.Hide(title)), cost)
	return nil
}

// lineIn returns the first line with words of an answer, without quotes around it and what cannot be seen.
func lineIn(answer string, most int) string {
	for line := range strings.Lines(answer) {
		line = strings.Trim(strings.TrimSpace(line), "\"'`*#“”„«» ")
		if line = strings.TrimSpace(show.Visible(line)); line != "" {
			return show.Shorten(line, most)
		}
	}
	return ""
}

// beside prepares a request to the model of the conversation about what was said: it has no tools, and nothing of it becomes part
// of the conversation. The function makes it, in any goroutine; spend then notes what it used.
func (t *dialogue) beside(ctx context.Context, task string, end bool) (asks func() (*agent.Result, error), err error) {
	a, err := t.host.Agent(ctx)
	if err != nil {
		return nil, err
	}
	if len(a.Guards) > 0 {
		return nil, errors.New("the agent has guards, and they would not read this request")
	}
	side := &agent.Agent{Model: a.Model, Prices: a.Prices, Retry: a.Retry, Limits: a.Limits}
	side.Limits.MaxTurns, side.Limits.AnswerNow = 1, false
	side.Request.Model, side.Request.Store, side.Request.ServiceTier = a.Request.Model, a.Request.Store, a.Request.ServiceTier
	side.Request.Instructions = task
	text := saidSoFar(t.host.Session.Entries(), end)
	return func() (*agent.Result, error) { return side.Run(ctx, session.New(), item.User(text)) }, nil
}

// spend records what a request beside the conversation used, so that it counts.
func (t *dialogue) spend(ctx context.Context, res *agent.Result) error {
	if res == nil {
		return nil
	}
	used := res.All()
	if used.Tokens == 0 && used.Cost == 0 {
		return nil
	}
	list, err := t.host.Session.Append(context.WithoutCancel(ctx), session.SubagentUsage{Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost})
	for _, e := range list {
		t.count(e)
	}
	t.tell()
	return err
}

// entitleOnce asks for a title after the first answer of a conversation that began here, if the settings say so and nobody has given it
// one.
func (t *dialogue) entitleOnce(ctx context.Context) {
	if !t.untitled || !t.replied || t.env["ANTIPHON_TITLES"] != byModel {
		return
	}
	t.untitled = false
	if err := t.entitleByModel(ctx); err != nil {
		t.warn(err)
	}
}

func (t *dialogue) entitleByModel(ctx context.Context) error {
	if given, err := t.titleGiven(ctx); given || err != nil {
		return err
	}
	title, cost, err := t.titleByModel(ctx)
	if err != nil {
		return err
	}
	if given, err := t.titleGiven(ctx); given || err != nil { // while the model was asked
		return err
	}
	return t.entitle(ctx, title, cost)
}

// titleGiven reports whether somebody has given the conversation a title, perhaps elsewhere: it is not the one of its first message.
func (t *dialogue) titleGiven(ctx context.Context) (bool, error) {
	info, err := t.host.Store.Info(ctx, t.info.ID)
	return info.Title != session.TitleOf(slices.Collect(t.host.Session.Entries())), err
}

// foresight is a request for what the person may say next.
type foresight struct {
	stop context.CancelFunc
	over chan struct{}
	res  *agent.Result
}

// foresee asks what the person may say next, if the settings say so and the model has answered. The answer stands in the empty draft
// until they say something, and is not said by itself.
func (t *dialogue) foresee(ctx context.Context) {
	if !t.replied || t.conf.Plain || t.env["ANTIPHON_SUGGEST"] != byModel {
		return
	}
	t.replied = false
	work, stop := context.WithCancel(ctx)
	asks, err := t.beside(work, suggestTask, true)
	if err != nil {
		stop()
		return
	}
	f := &foresight{stop: stop, over: make(chan struct{})}
	t.foresight = f
	go func() {
		defer close(f.over)
		var err error
		if f.res, err = asks(); err == nil && work.Err() == nil {
			t.face.suggest(sayable(f.res.Text))
		}
	}()
}

// foreseen ends that request, because the person has said something or leaves.
func (t *dialogue) foreseen(ctx context.Context) {
	f := t.foresight
	if t.foresight = nil; f == nil {
		return
	}
	f.stop()
	<-f.over
	t.face.suggest("")
	if err := t.spend(ctx, f.res); err != nil {
		t.warn(err)
	}
}

// sayable returns the prompt that an answer suggests: "" if it would do more than say something, as commands, shell lines and
// names behind an @ do.
func sayable(answer string) string {
	text := lineIn(answer, mostSuggested)
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!") || len(namesIn(text)) > 0 {
		return ""
	}
	return text
}

// saidSoFar returns what person and model said, as far as the next request would send it, without calls and their outputs: the
// beginning, or the end.
func saidSoFar(entries iter.Seq[session.Entry], end bool) string {
	var parts []string
	for _, one := range session.Explain(entries).Request {
		if one.Item.Type() != item.TypeMessage || one.Item.Instructs() {
			continue
		}
		m, err := item.As[item.Message](one.Item)
		if err != nil {
			continue
		}
		who := "Model"
		text := m.Content.Display()
		if one.Item.Role() != item.RoleAssistant {
			who, text = "Person", typedText(m.Content)
		}
		if strings.TrimSpace(text) != "" {
			parts = append(parts, fmt.Sprintf("%s:\n    %s\n", who, lineEnds.Replace(text)))
		}
	}
	all := strings.Join(parts, "\n")
	switch {
	case len(all) <= mostAside:
		return all
	case end:
		return strings.ToValidUTF8(all[len(all)-mostAside:], "")
	}
	return strings.ToValidUTF8(all[:mostAside], "")
}
