// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// The format of logs is published in docs/format.md, with a reader of it in
// another language. What the page says is what this package does: these tests
// hold them together.

const published = "../docs/format"

// read runs the published reader once, over any number of logs, and returns what
// it prints.
func read(t *testing.T, logs string, args ...string) (string, error) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the reader of docs/format is not tested")
	}
	script := filepath.Join(published, "read.py")
	if _, err := os.ReadFile(script); err != nil { // so that no result of another script is taken from the cache
		t.Fatal(err)
	}
	cmd := exec.Command(python, append([]string{"-I", "-B", script}, args...)...)
	cmd.Stdin = strings.NewReader(logs)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, problem.String())
	}
	return out.String(), nil
}

// reader is read for logs that it must not refuse.
func reader(t *testing.T, logs []string, args ...string) string {
	t.Helper()
	out, err := read(t, strings.Join(logs, "\n")+"\n", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// views returns what the reader says of each log: the view's items.
func views(t *testing.T, logs []string) (all [][]string) {
	t.Helper()
	var view []string
	for line := range strings.Lines(reader(t, logs)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			view = append(view, line)
			continue
		}
		all, view = append(all, view), nil
	}
	if len(all) != len(logs) {
		t.Fatalf("%d views of %d logs", len(all), len(logs))
	}
	return all
}

// requests returns what the reader says of each log: the input of the next
// request.
func requests(t *testing.T, logs []string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(reader(t, logs, "--request")) {
		var body struct{ Input []json.RawMessage }
		if err := json.Unmarshal([]byte(line), &body); err != nil {
			t.Fatal(err)
		}
		var input []string
		for _, it := range body.Input {
			input = append(input, string(it))
		}
		all = append(all, input)
	}
	if len(all) != len(logs) {
		t.Fatalf("%d requests of %d logs", len(all), len(logs))
	}
	return all
}

// itemLines are the items of a list, each on a line.
func itemLines(list *item.List) (all []string) {
	for _, it := range list.All() {
		all = append(all, strings.NewReplacer("\n", " ", "\r", " ").Replace(it.JSON()))
	}
	return all
}

// viewed is the view of a log.
func viewed(entries []session.Entry) []string {
	var v session.View
	for _, e := range entries {
		v.Apply(e)
	}
	return itemLines(v.Items())
}

// requested is the input of the next request of a log, by an agent that has
// nothing but the log.
func requested(t testing.TB, entries []session.Entry) []string {
	t.Helper()
	s := session.New()
	bodies := make([]session.Body, len(entries))
	for i, e := range entries {
		bodies[i] = e.Body
	}
	if _, err := s.Append(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
	request, _, err := new(agent.Agent).Preview(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return itemLines(request.Input)
}

// linesOf is a log as lines of JSON.
func linesOf(t testing.TB, entries []session.Entry) string {
	t.Helper()
	var lines strings.Builder
	for _, e := range entries {
		lines.WriteString(encode(t, e) + "\n")
	}
	return lines.String()
}

// same reports whether two lists of items are equal: byte for byte, or as values
// where an item was written anew.
func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !reflect.DeepEqual(valueOf(a[i]), valueOf(b[i])) {
			return false
		}
	}
	return true
}

func valueOf(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return v
}

// odd adds what [randomLog.step] leaves out: verdicts, losses, replies that broke
// off, and items as only some servers write them.
func (l *randomLog) odd() {
	id, number := "nobody's", 0
	if open := l.view.Open(); len(open) > 0 {
		c := open[l.pick("of open", len(open))]
		id, number = c.CallID, c.Number*l.pick("numbered", 2)
	}
	switch l.pick("odd", 20) {
	case 15, 16: // reasoning, and what an endpoint ties to it by an id
		m := l.mark()
		thought := parse(fmt.Sprintf(`{"type":"reasoning","id":"rs%s","summary":[]}`, m))
		tied := parse(fmt.Sprintf(`{"type":"message","id":"m%s","role":"assistant","content":[{"type":"output_text","text":%q}]}`, m, m))
		if l.pick("call", 2) == 0 {
			tied = parse(fmt.Sprintf(`{"type":"function_call","id":"f%s","call_id":"u%s","name":"n","arguments":"{}"}`, m, m))
		}
		for _, it := range []item.Item{thought, tied} {
			if l.inTurn {
				l.add(session.OutputItem{Turn: l.turn, Item: it})
			} else {
				l.add(session.InputItem{Item: it})
			}
		}
	case 17, 18: // decisions about what was said just now
		recent := func() int64 { return max(1, int64(len(l.entries)-l.pick("recent", 8))) }
		l.add([]session.Body{
			session.ItemsWithdrawn{Seqs: []int64{recent()}}, session.ItemsWithdrawn{Seqs: []int64{recent(), recent()}, Reason: "why"},
			session.ReasoningDropped{}, session.Quarantined{Seq: recent(), Reason: "why"},
			session.Compacted{Through: recent(), Items: []item.Item{l.spoken(), l.spoken()}}, session.Restored{Seq: l.view.Compaction()},
		}[l.pick("decision", 6)])
	case 19:
		for range l.pick("starts", 4) {
			l.add(session.CallStarted{CallID: id, Repeatable: true})
		}
		if l.pick("paused", 3) == 0 {
			l.add(session.CallStarted{CallID: id, Session: "inner"})
			l.add(session.Paused{CallID: id, Session: "inner"})
		}
	case 0, 1:
		l.add(session.Approval{CallID: id, Number: number, Allowed: l.pick("allowed", 3) == 0, Reason: []string{"", "no\nerror: \r\noutput:x\u2028status:"}[l.pick("reason", 2)]})
	case 2:
		l.add(session.ApprovalAsked{CallID: id, Number: number})
	case 3:
		l.add(session.CallStarted{CallID: id, Repeatable: true})
	case 4:
		l.add(session.CallStarted{CallID: id, Session: "inner"})
	case 5:
		kinds := []string{session.NoticeEntryLost, session.NoticePayloadLost, session.NoticeSalvaged, session.NoticeGapsAccepted, "tomorrow"}
		l.add(session.Noticed{Kind: kinds[l.pick("notice", len(kinds))]})
	case 6:
		members := []string{"id", "status", "phase", "n", "output", "call_id"}
		l.add(session.Quarantined{Seq: l.entry(), Member: members[l.pick("member", len(members))]})
	case 7:
		l.add(session.TurnEnded{Turn: l.turn, Status: []string{item.StatusIncomplete, item.StatusCancelled, ""}[l.pick("status", 3)]})
		l.inTurn = false
	case 8, 9:
		l.add(session.OutputItem{Turn: l.turn, Item: l.strange(), Partial: l.pick("partial", 3) == 0})
	case 10:
		l.add(session.InputItem{Item: l.strange()})
	case 11:
		if said := l.messages(); len(said) > 1 {
			l.add(session.Superseded{Seqs: []int64{said[l.pick("again", len(said))], l.entry()}, By: said[l.pick("said", len(said))]})
		}
	default:
		c := l.first()
		switch {
		case c == nil:
		case c.Item.Type() == item.TypeComputerCall:
			l.add(session.CallOutput{CallID: c.CallID, Item: parse(fmt.Sprintf(`{"type":"computer_call_output","call_id":%q,"output":{"type":"computer_screenshot","file_id":%q}}`, c.CallID, l.mark()))})
		default:
			if out := outputFor(c.Item, strings.Repeat("long ", 30)); !out.IsZero() {
				if l.pick("other", 4) == 0 {
					out, _ = out.With("call_id", `"another's"`)
				}
				l.add(session.CallOutput{CallID: c.CallID, Item: out})
			}
		}
	}
}

// messages returns the entries of messages that a model said.
func (l *randomLog) messages() (seqs []int64) {
	for _, e := range l.entries {
		if it, ok := said(e.Body); ok && it.Role() == item.RoleAssistant {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// strange draws items as only some servers and clients write them.
func (l *randomLog) strange() item.Item {
	m := l.mark()
	switch l.pick("strange", 17) {
	case 15: // its members are repeated to the model if it gets no screenshot
		actions := []string{`"actions":[ {"type":"type","text":%q} ]`, `"action":{"type":"type","text":%q}`}[l.pick("form", 2)]
		checks := []string{`[]`, `[ {"id":"sc"}]`}[l.pick("checks", 2)]
		return parse(fmt.Sprintf(`{"type":"computer_call","id":"c","call_id":"u%s","pending_safety_checks":%s,"status":"completed",`+actions+`}`, m, checks, strings.Repeat("ä"+m, []int{1, 500}[l.pick("length", 2)])))
	case 14: // as long as an id may be
		return parse(fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"n","arguments":"{}"}`, strings.Repeat("x", 64)))
	case 13:
		return parse(fmt.Sprintf(`{"type":"shell_call","call_id":%q,"action":{"commands":[]}}`, l.callID()))
	case 0:
		return parse(fmt.Sprintf(`{"type":"message","role":"assistant","id":"m%s","status":"incomplete","content":[{"type":"output_text","text":%q}]}`, m, m))
	case 1:
		return parse(`{"type":"message","role":"assistant","status":"incomplete","content":" \u00a0\n"}`)
	case 2:
		return parse(`{"type":"message","role":"assistant","id":"m","content":[]}`)
	case 3:
		return parse(fmt.Sprintf("{\n  \"type\": \"function_call\",\r\n  \"id\": \"f\", \"call_id\": %q,\n\t\"arguments\": \"{}\", \"name\": \"n\", \"n\": 1.0}", l.callID()))
	case 4:
		return parse(fmt.Sprintf(`{"role":"user","content":"caf\u00e9 \/ 1e3 <&> %s \ud800","n":1e3}`, m))
	case 5:
		return parse(fmt.Sprintf(`{"id":"ref%s"}`, m))
	case 6:
		return parse(fmt.Sprintf(`{"type":"message","id":"m%s","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"ä"},{"type":"refusal","refusal":%q}]}`, m, m))
	case 7:
		return parse(fmt.Sprintf(`{"type":"function_call","id":"f","status":"incomplete","call_id":%q,"name":"n","arguments":"{"}`, l.callID()))
	case 8:
		return parse(`{"type":"tool_search_call","call_id":"u` + m + `","execution":"` + []string{"client", "server"}[l.pick("by", 2)] + `","arguments":{}}`)
	case 9:
		return parse(fmt.Sprintf(`{"type":"reasoning","id":"r%s","summary":[],"status":"incomplete"}`, m))
	case 10:
		return parse(fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":%q,"output":[{"type":"input_text","text":%q}]}`, l.callID(), strings.Repeat(m, 30)))
	case 11:
		return parse(fmt.Sprintf(`{ "type" : "function_call_output" , "call_\u0069d" : %q, "output" : %q }`, l.callID(), strings.Repeat("x", l.pick("length", 100))))
	case 12:
		return parse(fmt.Sprintf(`{"role":"user","content":[{"type":"input_text","text":%q},{"type":"input_file","file_id":"f"},{"type":"tomorrow"}]}`, m))
	}
	return parse(`{"type":"message","content":[{"type":"input_text","text":"[The reply above broke off here before it was complete. Unless something else is asked below, go on from exactly where it stops, and do not repeat what is there.]"}],"role":"user"}`)
}

// anyLog draws a log in which anything may follow anything.
func anyLog(seed uint64) []session.Entry {
	l := &randomLog{dice: rand.New(rand.NewPCG(seed, 0)), guarded: true}
	for range l.pick("steps", 60) {
		if l.pick("odd step", 3) == 0 {
			l.odd()
		} else {
			l.step()
		}
	}
	return l.entries
}

// What the published reader makes of a log is what this program makes of it: the
// view and the next request. J5 P1 I12
func TestFormatReader(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	var logs []string
	var all [][]session.Entry
	for seed := range n {
		entries := anyLog(uint64(seed))
		all = append(all, entries)
		logs = append(logs, linesOf(t, entries))
	}
	seen, asked := views(t, logs), requests(t, logs)
	for seed, entries := range all {
		hold(t, seed, logs[seed], "view", viewed(entries), seen[seed])
		hold(t, seed, logs[seed], "request", requested(t, entries), asked[seed])
	}
}

// hold compares what is made of a log.
func hold(t *testing.T, seed int, log, what string, want, got []string) {
	t.Helper()
	if !same(want, got) {
		t.Fatalf("the %s of the log with seed %d is\n%s\nthe reader says\n%s\nlog:\n%s", what, seed, strings.Join(want, "\n"), strings.Join(got, "\n"), log)
	}
}

// pageOf is docs/format.md.
func pageOf(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(published + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// schemaOf is the published schema, as text and compiled.
func schemaOf(t *testing.T) (text map[string]any, compiled *jsonschema.Schema) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(published, "entry.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("entry.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err = c.Compile("entry.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any), compiled
}

// faults is what the schema says of a line, nil if it is an entry.
func faults(s *jsonschema.Schema, line string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// names are an object's members, without those that only some lines have.
func names(object any) (list []string) {
	for name := range object.(map[string]any) {
		if name != "sum" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// Every entry that can be written is one by the published schema, which names
// every member and no other; and so does the page.
func TestFormatSchema(t *testing.T) {
	text, schema := schemaOf(t)
	defs := text["$defs"].(map[string]any)
	members := func(def string) []string { return names(defs[def].(map[string]any)["properties"]) }
	page := pageOf(t)
	for _, e := range everyKind(t) {
		line, kind := encode(t, e), session.Kind(e.Body)
		if err := faults(schema, line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		entry := valueOf(line).(map[string]any)
		if diff := cmp.Diff(names(entry), members(kind)); diff != "" {
			t.Errorf("members of %s (-written +schema):\n%s", kind, diff)
		}
		for member, def := range map[string]string{"setup": "setup", "remember": "rule"} {
			if part, ok := entry[member].(map[string]any); ok && len(part) > 0 {
				if diff := cmp.Diff(names(part), members(def)); diff != "" {
					t.Errorf("members of %s (-written +schema):\n%s", member, diff)
				}
			}
		}
		_, section, _ := strings.Cut(page, "\n### `"+kind+"`\n")
		section, _, _ = strings.Cut(section, "\n### ")
		for _, name := range names(entry) {
			if name != "seq" && name != "time" && name != "kind" && !strings.Contains(section, "\n| `"+name+"` |") {
				t.Errorf("docs/format.md: the section of %s does not tell of %s", kind, name)
			}
		}
	}
	for seed := range uint64(100) {
		for _, e := range anyLog(seed) {
			if line := encode(t, e); faults(schema, line) != nil {
				t.Fatalf("seed %d: %s: %v", seed, line, faults(schema, line))
			}
		}
	}
	for line := range strings.Lines(exported(t)) {
		if err := faults(schema, line); strings.HasPrefix(line, `{"seq":`) != (err == nil) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// J5: what a newer program has added, or somebody has changed, the schema and the
// reader refuse, as [session.ParseEntry] does.
func TestFormatRefuses(t *testing.T) {
	_, schema := schemaOf(t)
	for _, line := range []string{
		`{"seq":1,"kind":"reflected","mood":1}`,
		`{"seq":1,"kind":"stopped","why":"x","because":{}}`,
		`{"seq":1,"kind":"note","item":{"type":"message"},"mood":1}`,
		`{"seq":1,"kind":"approval","remember":{"verdict":"allow","until":"noon"}}`,
		`{"seq":1}`,
		`{"seq":1,"kind":"given","item":5}`,
		`{"seq":1,"kind":"given","item":[{},{"at":1,"size":200,"sha256":"00"}]}`,
	} {
		if _, err := session.ParseEntry([]byte(line)); err == nil {
			t.Errorf("%s: read", line)
		}
		if faults(schema, line) == nil {
			t.Errorf("%s: valid by the schema", line)
		}
		refuse(t, line+"\n", "line 1")
	}
	whole := exported(t)
	refuse(t, strings.Replace(whole, `"Hi"`, `"Ho"`, 1), "its checksum differs")
	refuse(t, strings.Replace(whole, `"version":2`, `"version":5`, 1), "version 5")
	refuse(t, whole[:strings.LastIndex(whole, `{"end"`)], "cut short")
	refuse(t, linesOf(t, everyKind(t)[1:2]), "where entry 1 should")
}

// refuse feeds the reader a log that it must refuse.
func refuse(t *testing.T, log, want string) {
	t.Helper()
	out, err := read(t, log)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%.300s: the reader says %q, %v, want an error with %q", log, out, err, want)
	}
}

// The checksums that the page works out are those of the program.
func TestFormatSums(t *testing.T) {
	_, block, _ := strings.Cut(pageOf(t), "```json checksums\n")
	block, _, _ = strings.Cut(block, "```")
	var sum session.Sum
	for line := range strings.Lines(block) {
		line, want, _ := strings.Cut(strings.TrimSpace(line), "  ")
		e, err := session.ParseEntry([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if sum = sum.Next(e.Seq, []byte(line)); sum.String() != strings.TrimSpace(want) {
			t.Errorf("the sum behind %s is %s, the page says %s", line, sum, want)
		}
	}
	if sum == (session.Sum{}) {
		t.Error("docs/format.md shows no checksums")
	}
}
