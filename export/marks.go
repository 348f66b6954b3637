// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func (t *talk) mark(e session.Entry, kind, title, text string) *row {
	return t.add(&row{seq: e.Seq, time: e.Time, mark: &mark{kind: kind, title: title, text: text}})
}

// progress handles the entries about the beginning and end of runs and turns.
func (t *talk) progress(e session.Entry, changed bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		if t.turn != nil {
			t.breakOff(e, "The program stopped within the turn.")
		}
		for _, c := range t.open {
			c.lost = c.lost || c.started && len(c.session) == 0
		}
		if b.Resumes {
			t.mark(e, "run", "The run continues in another process", t.setupText(changed)).mark.facts = t.setupFacts(changed)
		} else if t.runs++; t.runs > 1 {
			t.mark(e, "run", "Run "+strconv.Itoa(t.runs), t.setupText(changed)).mark.facts = t.setupFacts(changed)
		} else if changed {
			t.mark(e, "run", "Run", t.setupText(true)).mark.facts = t.setupFacts(true)
		}
	case session.TurnStarted:
		if changed {
			t.mark(e, "run", "Turn "+strconv.Itoa(b.Turn)+" has another setup", t.setupText(true)).mark.facts = t.setupFacts(true)
		}
		t.turn = &turn{number: b.Turn, begun: e.Time, continues: b.Continues}
		t.sums.turns++
	case session.TurnEnded:
		t.endTurn(e, b)
	case session.Delivered:
		t.mark(e, "run", "Delivered"+session.DecidedBy(b.By, b.From, ""), b.Problem)
	case session.StopAsked:
		t.mark(e, "stop", "Stop requested", joined(words(b.Why), b.Detail))
	case session.Stopped:
		t.mark(e, "stop", "Run ended", joined(words(b.Why), b.Detail))
	}
}

// setupText returns the model of the following turns.
func (t *talk) setupText(changed bool) string {
	if !changed {
		return ""
	}
	return t.made.String()
}

// setupFacts returns the other details of how the following turns are made.
func (t *talk) setupFacts(changed bool) (facts []fact) {
	if !changed {
		return nil
	}
	for name, value := range t.made.Details() {
		facts = append(facts, fact{Name: name, Value: value})
	}
	return facts
}

// answeredBy returns the model that answered a turn according to the endpoint, if it
// differs from the requested one, and the service tier.
func (t *talk) answeredBy(b session.TurnEnded) string {
	made := &t.made
	if b.Setup != nil {
		made = b.Setup
	}
	who := made.String()
	if made.IsZero() {
		who = b.Model
	}
	if who != "" && !slices.Contains(t.by, who) {
		t.by = append(t.by, who)
	}
	text := ""
	if b.Setup != nil {
		text = "a hook sent the request to " + b.Setup.String()
	}
	if b.Model != "" && b.Model != made.Model && !made.Rehearsal {
		text = joined(text, "by "+b.Model)
	}
	if b.ServiceTier != "" && b.ServiceTier != "default" {
		text = joined(text, "service tier "+b.ServiceTier)
	}
	return text
}

// words turns a name into words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (t *talk) endTurn(e session.Entry, b session.TurnEnded) {
	took := time.Duration(0)
	if t.turn != nil && !e.Time.IsZero() && !t.turn.begun.IsZero() {
		took = e.Time.Sub(t.turn.begun)
	}
	if b.Usage != nil {
		t.sums.add(b.Usage)
	}
	t.sums.cost += b.Cost
	title := "Turn"
	if b.Turn > 0 {
		title += " " + strconv.Itoa(b.Turn)
	}
	kind := "turn"
	if b.Status != item.StatusCompleted && b.Status != "" {
		kind = "problem"
		title += " " + words(b.Status)
	}
	text := joined(b.Reason, t.answeredBy(b), usageText(b.Usage), costOf(b.Cost), tookText(took))
	if b.BrokeOff() {
		t.brokeOff()
		title = strings.TrimSuffix(title, " "+words(b.Status)) + " broke off"
		if b.Status == item.StatusCancelled {
			title += " (cancelled)"
		}
	}
	t.turn = nil
	t.mark(e, kind, title, text)
}

// breakOff ends a turn without an end, before an entry or at the end of the log.
func (t *talk) breakOff(e session.Entry, text string) {
	t.brokeOff()
	r := t.mark(session.Entry{Time: e.Time}, "problem", "Turn "+strconv.Itoa(t.turn.number)+" has no end", text)
	if e.Seq > 0 {
		r.id = "before" + strconv.FormatInt(e.Seq, 10)
	}
	t.turn = nil
}

// brokeOff records that the current reply broke off: its calls that were not started
// never will be.
func (t *talk) brokeOff() {
	t.sums.broken++
	if t.turn == nil {
		return
	}
	for _, r := range t.turn.rows {
		if r.call != nil && !r.call.started && len(r.call.outputs) == 0 {
			r.call.never = true
		}
		if len(r.notes) == 0 {
			r.notes = append(r.notes, badge{"warn", "of a reply that broke off"})
		}
	}
}

// decision handles the entries that change what is sent.
func (t *talk) decision(e session.Entry) {
	switch b := e.Body.(type) {
	case session.ReasoningDropped:
		t.mark(e, "context", "Reasoning so far is not sent any more", b.Reason)
	case session.ItemsWithdrawn:
		list := make([]string, len(b.Seqs))
		for i, seq := range b.Seqs {
			list[i] = strconv.FormatInt(seq, 10)
			t.noteOn(seq, badge{"warn", "not sent: withdrawn"})
		}
		by := ""
		if b.By != "" {
			by = ", by " + b.By
		}
		t.mark(e, "problem", "Withdrawn"+by+": "+strings.Join(list, ", "), b.Reason)
	case session.Quarantined:
		if b.Member != "" {
			t.noteOn(b.Seq, badge{"", "sent without " + b.Member + ", which the endpoint refused"})
			t.mark(e, "context", fmt.Sprintf("Entry %d is sent without its member %s", b.Seq, b.Member), b.Reason)
			break
		}
		t.noteOn(b.Seq, badge{"warn", "not sent: refused by the endpoint"})
		t.mark(e, "problem", fmt.Sprintf("Entry %d is not sent any more", b.Seq), b.Reason)
	case session.Compacted:
		t.compacted(e, b)
	case session.Restored:
		t.mark(e, "context", "Restored", fmt.Sprintf("The items that the compaction of entry %d replaced are sent again.", b.Seq))
	case session.Collapsed:
		list := make([]string, len(b.Seqs))
		for i, seq := range b.Seqs {
			list[i] = strconv.FormatInt(seq, 10)
			t.noteOn(seq, badge{"", fmt.Sprintf("sent as a marker: entry %d has the same content", b.By)})
		}
		t.mark(e, "context", "Repeated reads", fmt.Sprintf("Markers are sent for %s: entry %d has the same content.", strings.Join(list, ", "), b.By))
	case session.Noticed:
		t.mark(e, "problem", "Notice", b.Text)
	case session.Superseded:
		for _, seq := range b.Seqs {
			t.noteOn(seq, badge{"", fmt.Sprintf("not sent: entry %d repeats it from the beginning", b.By)})
			if r := t.said[seq]; r != nil {
				r.again = true
			}
		}
	default:
		t.mark(e, "context", strings.ReplaceAll(session.Kind(b), "_", " "), "")
	}
}

func (t *talk) noteOn(seq int64, b badge) {
	if r := t.said[seq]; r != nil {
		r.notes = append(r.notes, b)
	}
}

// howCompacted describes the kinds of compaction.
var howCompacted = map[string]string{
	session.BySummary:  "a summary by a model",
	session.ByEndpoint: "the endpoint's own compaction",
	session.ByDropping: "a remark",
}

func (t *talk) compacted(e session.Entry, b session.Compacted) {
	how, known := howCompacted[b.By]
	if !known {
		how = b.By
	}
	if b.Usage != nil {
		t.sums.add(b.Usage)
	}
	t.sums.cost += b.Cost
	text := fmt.Sprintf("Instead of everything up to entry %d, %s is sent.", b.Through, how)
	if b.Before > 0 {
		text += fmt.Sprintf(" About %s tokens became %s.", number(b.Before), number(b.After))
	}
	if took := joined(usageText(b.Usage), costOf(b.Cost)); took != "" {
		text += " It took " + took + "."
	}
	t.mark(e, "context", "Compacted", text).mark.items = b.Items
}

func (s *sums) add(u *api.Usage) {
	s.input += u.InputTokens
	s.output += u.OutputTokens
	if u.InputDetails != nil {
		s.cached += u.InputDetails.CachedTokens
	}
	if u.OutputDetails != nil {
		s.reasoning += u.OutputDetails.ReasoningTokens
	}
}

// usageText describes a reply's tokens, or returns "" if they are not known.
func usageText(u *api.Usage) string {
	if u == nil {
		return ""
	}
	var s sums
	s.add(u)
	return joined(aside(s.input, "in", s.cached, "cached"), aside(s.output, "out", s.reasoning, "reasoning"))
}

// aside returns a number and, if part is not 0, the part of it with its own name.
func aside(n int64, what string, part int64, of string) string {
	s := number(n) + " " + what
	if part > 0 {
		s += " (" + number(part) + " " + of + ")"
	}
	return s
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	said := texts[:0]
	for _, s := range texts {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, " · ")
}

// number formats n with thousands separators.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// costOf formats a cost, in the unit of the prices.
func costOf(cost float64) string {
	if cost == 0 {
		return ""
	}
	return "cost " + strconv.FormatFloat(cost, 'g', 4, 64)
}

// tookText formats a duration for people.
func tookText(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// sizeText formats a number of bytes.
func sizeText(n int) string {
	switch {
	case n < 1000:
		return plural(int64(n), "byte")
	case n < 1000_000:
		return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1000_000, 'f', 1, 64) + " MB"
}
