// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// randomLog draws logs. Every item bears a mark of its own, such as <12>, so
// that a test can tell what became of it. An output repeats the mark of the call
// it is for, as <for 12>.
type randomLog struct {
	t       *rapid.T
	dice    *rand.Rand // draws instead of t, where nothing is to be shrunk
	view    session.View
	entries []session.Entry
	marks   int
	turn    int
	inTurn  bool
	guarded bool // a guard may withdraw items
}

func (l *randomLog) add(b session.Body) {
	e := session.Entry{Seq: int64(len(l.entries) + 1), Body: b}
	l.entries = append(l.entries, e)
	l.view.Apply(e)
}

func (l *randomLog) pick(name string, n int) int {
	if l.dice != nil {
		return l.dice.IntN(n)
	}
	return rapid.IntRange(0, n-1).Draw(l.t, name)
}

func (l *randomLog) mark() string {
	l.marks++
	return fmt.Sprintf("<%d>", l.marks)
}

func parse(raw string) item.Item {
	it, err := item.ParseString(raw)
	if err != nil {
		panic(raw + ": " + err.Error())
	}
	return it
}

// callID draws an id: one of few, so that they meet again, or one that cannot be
// sent.
func (l *randomLog) callID() string {
	switch l.pick("id", 8) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("long", 20)
	case 2:
		return fmt.Sprintf("call_%d", l.marks+1) // like those that the view makes up
	}
	return fmt.Sprintf("call_%d", l.pick("of few", 4))
}

func (l *randomLog) call() item.Item {
	m := l.mark()
	switch l.pick("kind", 9) {
	case 0:
		return parse(fmt.Sprintf(`{"type":"custom_tool_call","call_id":%q,"name":"n","input":%q}`, l.callID(), m))
	case 1:
		return parse(fmt.Sprintf(`{"type":"computer_call","id":"c%s","call_id":"u%s","pending_safety_checks":[],"status":"completed"}`, m, m))
	case 2:
		return parse(fmt.Sprintf(`{"type":"mcp_approval_request","id":"u%s","server_label":"s","name":"n","arguments":"{}"}`, m))
	case 3:
		return parse(fmt.Sprintf(`{"type":"shell_call","call_id":"u%s","action":{"commands":[]}}`, m))
	case 4:
		return parse(fmt.Sprintf(`{"type":"apply_patch_call","call_id":"u%s","status":"completed","operation":{}}`, m))
	case 5:
		return parse(fmt.Sprintf(`{"type":"local_shell_call","id":"l","call_id":"u%s","action":{},"status":"completed"}`, m))
	}
	return parse(fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"n","arguments":%q}`, l.callID(), m))
}

// spoken draws what a model can say.
func (l *randomLog) spoken() item.Item {
	switch l.pick("spoken", 8) {
	case 0:
		return parse(fmt.Sprintf(`{"type":"reasoning","id":"rs%s","summary":[],"encrypted_content":"e"}`, l.mark()))
	case 1:
		return parse(fmt.Sprintf(`{"type":"web_search_call","id":"ws%s","status":"completed"}`, l.mark()))
	case 2:
		return parse(fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, l.mark()))
	case 3:
		m := l.mark()
		return parse(fmt.Sprintf(`{"type":"message","id":"msg%s","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q}]}`, m, m))
	}
	return l.call()
}

// heard draws what others can say.
func (l *randomLog) heard() item.Item {
	switch l.pick("heard", 5) {
	case 0:
		return item.System(l.mark())
	case 1:
		return item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: l.mark()}, &item.InputImage{ImageURL: "data:,x"})})
	case 2:
		return item.User("  \n")
	}
	return item.User(l.mark())
}

// first returns an open call that an output with its id reaches: the first of
// that id and kind.
func (l *randomLog) first() *session.OpenCall {
	var choice []session.OpenCall
	seen := map[string]bool{}
	for _, c := range l.view.Open() {
		if key := string(c.Item.Type()) + c.CallID; !seen[key] {
			seen[key] = true
			choice = append(choice, c)
		}
	}
	if len(choice) == 0 {
		return nil
	}
	return &choice[l.pick("call", len(choice))]
}

var markPattern = regexp.MustCompile(`<\d+>`)

func markOf(it item.Item) string { return markPattern.FindString(it.JSON()) }

// outputFor is an output of the call, the zero Item for kinds that have none.
func outputFor(call item.Item, mark string) item.Item {
	text := mark + "<for " + strings.Trim(markOf(call), "<>") + ">"
	out, ok, err := item.OutputFor(call, item.Text(text))
	if err != nil {
		panic(err)
	}
	if !ok {
		return item.Item{}
	}
	return out
}

func (l *randomLog) answer(given bool) {
	c := l.first()
	if c == nil {
		return
	}
	out := outputFor(c.Item, l.mark())
	switch {
	case out.IsZero():
		l.add(session.CallDropped{CallID: c.CallID})
	case given:
		l.add(session.InputItem{Item: out})
	default:
		l.add(session.CallOutput{CallID: c.CallID, Item: out})
	}
}

func (l *randomLog) orphan() {
	out := item.Must(&item.FunctionCallOutput{CallID: "nobody's", Output: item.Text(l.mark())})
	l.add(session.InputItem{Item: out})
	l.add(session.CallOutput{CallID: "nobody's", Item: out})
}

// hosted is a call that the endpoint answered itself.
func (l *randomLog) hosted() {
	m := l.mark()
	l.add(session.OutputItem{Turn: l.turn, Item: parse(fmt.Sprintf(`{"type":"shell_call","call_id":"h%s","action":{}}`, m))})
	l.add(session.OutputItem{Turn: l.turn, Item: parse(fmt.Sprintf(`{"type":"shell_call_output","call_id":"h%s","output":[]}`, m))})
}

// decide adds a decision to send something else than was sent so far.
func (l *randomLog) decide() {
	if l.guarded && l.pick("withdraw", 2) == 0 {
		l.add(session.ItemsWithdrawn{Seqs: []int64{l.entry(), l.entry()}, Reason: "why"})
		return
	}
	switch l.pick("decision", 7) {
	case 6:
		l.add(session.Superseded{Seqs: []int64{l.entry(), l.entry()}, By: l.entry()})
	case 0:
		l.add(session.ReasoningDropped{Reason: "why"})
	case 1, 2:
		l.add(session.Quarantined{Seq: l.entry(), Reason: "why"})
	case 3:
		if outputs := l.outputs(); len(outputs) > 1 && l.pick("sensible", 4) > 0 {
			n := 1 + l.pick("later", len(outputs)-1)
			l.add(session.Collapsed{Seqs: []int64{outputs[l.pick("earlier", n)]}, By: outputs[n]})
		} else {
			l.add(session.Collapsed{Seqs: []int64{l.entry(), l.entry()}, By: l.entry()})
		}
	case 4:
		l.compact()
	case 5:
		if l.pick("which", 3) > 0 {
			l.add(session.Restored{Seq: l.view.Compaction()})
		} else {
			l.add(session.Restored{Seq: l.entry()})
		}
	}
}

// entry draws the number of an entry, or of none.
func (l *randomLog) entry() int64 { return int64(l.pick("entry", len(l.entries)+2)) }

// outputs returns the entries of outputs.
func (l *randomLog) outputs() (seqs []int64) {
	for _, e := range l.entries {
		if it, ok := said(e.Body); ok && it.IsOutput() {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// compact replaces anything by anything, sensible or not.
func (l *randomLog) compact() {
	c := session.Compacted{Through: l.entry(), Kept: []int64{l.entry(), l.entry()}}
	if n := l.view.Items().Len(); n > 0 && l.pick("legal", 2) == 0 {
		c.Through, _ = l.view.Boundary(l.pick("at", n+1))
	}
	for range l.pick("items", 4) {
		it := l.heard()
		if l.pick("anything", 3) == 0 {
			it = l.spoken()
		}
		c.Items = append(c.Items, it)
	}
	if l.pick("failed", 6) == 0 {
		c.Failure = "why"
	}
	l.add(c)
}

// decision reports whether an entry lets the view change what was sent before.
func decision(b session.Body) bool {
	switch b.(type) {
	case session.ItemsWithdrawn, session.ReasoningDropped, session.Quarantined, session.Compacted, session.Restored, session.Collapsed, session.Superseded:
		return true
	}
	return false
}

// step adds something that may happen at any time, sensible or not.
func (l *randomLog) step() {
	switch l.pick("step", 22) {
	case 16, 20, 21:
		l.decide()
	case 17:
		l.aside()
	case 0, 1:
		l.add(session.InputItem{Item: l.heard()})
	case 2, 3:
		l.add(session.InputItem{Item: l.spoken()})
	case 4:
		l.answer(true)
	case 5:
		l.orphan()
	case 6:
		l.add(session.RunStarted{Resumes: l.pick("resumes", 2) == 0})
		l.inTurn = false
	case 7:
		l.add(session.Note{Item: item.User(l.mark() + "note")})
	case 8:
		if c := l.first(); c != nil {
			l.add(session.CallStarted{CallID: c.CallID})
		}
	case 9, 10:
		l.answer(false)
	default:
		l.talk()
	}
}

// aside adds what is said about calls, whether it is sensible or not. None of it
// is sent.
func (l *randomLog) aside() {
	id := "nobody's"
	if c := l.first(); c != nil {
		id = c.CallID
	}
	l.add([]session.Body{
		session.ApprovalAsked{CallID: id},
		session.Approval{CallID: id, Allowed: true, Edited: "{}"},
		session.SubagentUsage{CallID: id, Session: "inner", Turns: 1},
		session.Paused{CallID: id, Session: "inner"},
		session.CallStarted{CallID: id, Arguments: "{}"},
	}[l.pick("aside", 5)])
}

// talk lets the model go on.
func (l *randomLog) talk() {
	switch choice := l.pick("talk", 8); {
	case !l.inTurn:
		l.turn++
		l.inTurn = true
		l.add(session.TurnStarted{Turn: l.turn})
	case choice == 0:
		l.hosted()
	case choice == 1:
		l.inTurn = false
		l.add(session.TurnEnded{Turn: l.turn, Status: item.StatusFailed})
	case choice <= 3:
		l.inTurn = false
		l.add(session.TurnEnded{Turn: l.turn, Status: item.StatusCompleted})
	default:
		l.add(session.OutputItem{Turn: l.turn, Item: l.spoken()})
	}
}

// draw makes a log, cuts it off at any entry as a crash would, and lets the
// next run answer what is open, as an agent does.
func draw(t *rapid.T) *randomLog { return drawn(t, false) }

func drawn(t *rapid.T, guarded bool) *randomLog {
	whole := &randomLog{t: t, guarded: guarded}
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		whole.step()
	}
	kept := rapid.IntRange(0, len(whole.entries)).Draw(t, "kept")
	l := &randomLog{t: t, marks: whole.marks, turn: whole.turn}
	for _, e := range whole.entries[:kept] {
		l.add(e.Body)
	}
	l.add(session.RunStarted{})
	if rapid.Bool().Draw(t, "says more") {
		l.add(session.InputItem{Item: l.heard()})
	}
	for len(l.view.Open()) > 0 {
		l.answer(false)
	}
	l.add(session.TurnStarted{Turn: l.turn + 1})
	return l
}

// G2 P1: what was withdrawn is never sent again, and what is left pairs up. The
// account of it agrees, and the log grows as any.
func TestAnyWithdrawal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawn(t, true)
		if err := agenttest.CheckPairing(items(&l.view)...); err != nil {
			t.Fatalf("%v\nin %s", err, bytesOf(&l.view))
		}
		withdrawn := map[int64]bool{}
		for _, e := range l.entries {
			if b, ok := e.Body.(session.ItemsWithdrawn); ok {
				for _, seq := range b.Seqs {
					withdrawn[seq] = withdrawn[seq] || seq < e.Seq
				}
			}
		}
		for i, it := range items(&l.view) {
			seq, _ := l.view.Seq(i)
			if withdrawn[seq] && !l.standsIn(i) && (!it.IsOutput() || !strings.Contains(it.JSON(), "withheld by a check")) {
				t.Fatalf("entry %d is sent: %s", seq, it.JSON())
			}
		}
		for _, logged := range session.Explain(slices.Values(l.entries)).Log {
			if withdrawn[logged.Seq] && logged.Kind != "compacted" && logged.Disposition == session.Sent {
				t.Fatalf("%+v", logged)
			}
		}
		var again session.View
		before := ""
		for _, e := range l.entries {
			again.Apply(e)
			now := strings.TrimSuffix(bytesOf(&again), "]")
			if !decision(e.Body) && !strings.HasPrefix(now, before) {
				t.Fatalf("entry %d changed what was sent before:\n%s\nto\n%s", e.Seq, before, now)
			}
			before = now
		}
	})
}

func bytesOf(v *session.View) string { return v.Items().JSON() }

func items(v *session.View) []item.Item {
	var list []item.Item
	for _, it := range v.Items().All() {
		list = append(list, it)
	}
	return list
}

// P1 P3 P4 R6: whatever happened, the next request is well paired.
func TestAnyLogPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		if err := agenttest.CheckPairing(items(&l.view)...); err != nil {
			t.Fatalf("%v\nin %s", err, bytesOf(&l.view))
		}
	})
}

// I12: the same log gives the same bytes, and a longer one begins with them,
// up to a recorded decision.
func TestAnyLogGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		var again session.View
		before := ""
		for _, e := range l.entries {
			again.Apply(e)
			now := strings.TrimSuffix(bytesOf(&again), "]")
			if !decision(e.Body) && !strings.HasPrefix(now, before) {
				t.Fatalf("entry %d changed what was sent before:\n%s\nto\n%s", e.Seq, before, now)
			}
			before = now
		}
		if diff := cmp.Diff(bytesOf(&l.view), bytesOf(&again)); diff != "" {
			t.Fatalf("folded again (-first +again):\n%s", diff)
		}
	})
}

// standsIn reports whether what is sent at an index replaces other items.
func (l *randomLog) standsIn(i int) bool {
	seq, _ := l.view.Seq(i)
	_, compacted := l.entries[seq-1].Body.(session.Compacted)
	return compacted
}

// said returns the item that an entry says.
func said(b session.Body) (item.Item, bool) {
	switch b := b.(type) {
	case session.InputItem:
		return b.Item, true
	case session.OutputItem:
		return b.Item, true
	case session.CallOutput:
		return b.Item, true
	}
	return item.Item{}, false
}

// counted counts the marks of the items.
func counted(list []item.Item) map[string]int {
	n := map[string]int{}
	for _, it := range list {
		if m := markOf(it); m != "" {
			n[m+string(it.Type())]++
		}
	}
	return n
}

// refused reports whether an item is a marker instead of another, or the
// repair of one that keeps its text.
func refused(s string) bool { return strings.Contains(s, "the endpoint refused it") }

// collapsed reports whether an item is a marker instead of an output that was
// repeated.
func collapsed(it item.Item) bool {
	return it.IsOutput() && strings.Contains(it.JSON(), "a later call read the same")
}

// P1 C2: nothing is lost and nothing doubled. What is not sent is a blank, a note
// or a withdrawn call, or Repairs names it; or a compaction stands for it, which can
// be taken back.
func TestAnyLogIsSentOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		for l.view.Compaction() > 0 {
			l.add(session.Restored{Seq: l.view.Compaction()})
		}
		var repaired []item.Item
		for _, r := range l.view.Diagnostics() {
			if r.Item.Type() != item.TypeMessage || !refused(r.Reason) {
				repaired = append(repaired, r.Item)
			}
		}
		sent, repairs := counted(items(&l.view)), counted(repaired)
		short := 0
		for _, it := range items(&l.view) {
			if collapsed(it) {
				short++
			}
		}
		withdrawn := map[string]bool{}
		want := map[string]int{}
		for _, e := range l.entries {
			if it, ok := said(e.Body); ok {
				want[markOf(it)+string(it.Type())]++
			} else if b, ok := e.Body.(session.CallDropped); ok {
				withdrawn[b.CallID] = true
			}
		}
		for key, n := range want {
			mark := markPattern.FindString(key)
			switch got := sent[key] + repairs[key]; {
			case mark == "", got == n:
			case withdrawn["u"+mark] && got == 0:
			case strings.HasSuffix(key, "_output") && got == n-1 && short > 0:
				short--
			default:
				t.Fatalf("%s: said %d times, sent %d times, left out %d times\n%s", key, n, sent[key], repairs[key], bytesOf(&l.view))
			}
		}
		if short > 0 {
			t.Fatalf("%d markers stand for nothing", short)
		}
	})
}

// callOf names the type of call that an output is for.
func callOf(out item.Item) string {
	call := strings.TrimSuffix(string(out.Type()), "_output")
	return strings.Replace(call, "approval_response", "approval_request", 1)
}

var forPattern = regexp.MustCompile(`<for (\d+)>`)

// L2 L3: each call has its own output and no other, in the order of the calls;
// whoever speaks next does so behind them.
func TestAnyLogKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		calls := map[string]string{} // by type and id as sent
		var open, answered []string
		for _, it := range items(&l.view) {
			out := forPattern.FindStringSubmatch(it.JSON())
			if it.IsOutput() && (refused(it.JSON()) || collapsed(it)) {
				mark := calls[callOf(it)+it.CallID()]
				out = []string{mark, strings.Trim(mark, "<>")}
			}
			if it.IsOutput() && out == nil { // by the endpoint, behind its call
				open = open[:len(open)-1]
				continue
			}
			switch {
			case it.IsCall():
				calls[string(it.Type())+it.CallID()] = markOf(it)
				open = append(open, markOf(it))
			case out != nil:
				mark := "<" + out[1] + ">"
				if got := calls[callOf(it)+it.CallID()]; got != mark {
					t.Fatalf("the output for %s is at the id of %q\n%s", mark, got, bytesOf(&l.view))
				}
				answered = append(answered, mark)
			case it.Type() == item.TypeMessage && it.Role() != item.RoleAssistant:
				if len(open) != len(answered) {
					t.Fatalf("%v speaks between calls and their outputs\n%s", markOf(it), bytesOf(&l.view))
				}
			}
		}
		if diff := cmp.Diff(strings.Join(open, " "), strings.Join(answered, " ")); diff != "" {
			t.Fatalf("order of calls and outputs (-calls +outputs):\n%s\n%s", diff, bytesOf(&l.view))
		}
	})
}

// R1: items stand in the order in which they were said, but for what others
// say while the model is speaking: that comes behind its reply.
func TestAnyLogKeepsSpeech(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		type place struct {
			at, after, seq int
			mark           string
		}
		var places []place
		turn := 0
		for _, e := range l.entries {
			i := int(e.Seq)
			switch b := e.Body.(type) {
			case session.TurnStarted:
				turn = i
			case session.TurnEnded, session.RunStarted:
				turn = 0
			case session.InputItem:
				if at := i; !b.Item.IsOutput() {
					if turn > 0 {
						at = turn
					}
					places = append(places, place{at, 1, i, markOf(b.Item)})
				}
			case session.OutputItem:
				if at := i; !b.Item.IsOutput() {
					if turn > 0 {
						at = turn
					}
					places = append(places, place{at, 0, i, markOf(b.Item)})
				}
			}
		}
		slices.SortStableFunc(places, func(a, b place) int {
			return slices.Compare([]int{a.at, a.after, a.seq}, []int{b.at, b.after, b.seq})
		})
		sent := map[string]bool{}
		var got, want []string
		for i, it := range items(&l.view) {
			if m := markOf(it); m != "" && !it.IsOutput() && !l.standsIn(i) {
				sent[m] = true
				got = append(got, m)
			}
		}
		for _, p := range places {
			if sent[p.mark] {
				want = append(want, p.mark)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-said +sent):\n%s", diff)
		}
	})
}

// E4 R6 P2: of a reply that broke off no call is sent that has no output and was
// not started; the message before it is.
func TestAnyBrokenReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &randomLog{t: t}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			l.step()
		}
		l.add(session.RunStarted{})
		for len(l.view.Open()) > 0 {
			l.answer(false)
		}
		l.add(session.TurnStarted{Turn: l.turn})
		started, said := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(0, 8).Draw(t, "items") {
			it := l.spoken()
			l.add(session.OutputItem{Turn: l.turn, Item: it})
			switch {
			case it.IsCall() && l.pick("early", 3) == 0:
				l.add(session.CallStarted{CallID: it.CallID()})
			case it.Type() == item.TypeMessage:
				said[markOf(it)] = true
			}
		}
		for _, c := range l.view.Open() {
			started[markOf(c.Item)] = c.Started
		}
		if rapid.Bool().Draw(t, "crash") {
			l.add(session.RunStarted{})
		} else {
			l.add(session.TurnEnded{Turn: l.turn, Status: item.StatusFailed})
		}
		for _, c := range l.view.Open() {
			if !started[markOf(c.Item)] {
				t.Fatalf("%s is still open", c.Item.JSON())
			}
		}
		for len(l.view.Open()) > 0 {
			l.answer(false)
		}
		l.add(session.TurnStarted{Turn: l.turn + 1})
		sent := map[string]int{}
		for _, it := range items(&l.view) {
			if !it.IsOutput() {
				sent[markOf(it)]++
			}
		}
		for mark, ran := range started {
			if sent[mark] > 0 && !ran {
				t.Fatalf("call %s is sent\n%s", mark, bytesOf(&l.view))
			}
		}
		for mark := range said {
			if sent[mark] != 1 {
				t.Fatalf("message %s is sent %d times\n%s", mark, sent[mark], bytesOf(&l.view))
			}
		}
		if err := agenttest.CheckPairing(items(&l.view)...); err != nil {
			t.Fatal(err)
		}
	})
}
