// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
)

// A client that keeps the history itself may send it back without what it did not
// understand: the response goes on in the stored session.
func TestRecall(t *testing.T) {
	w := serving(t, reader, `
turn
  call read_file {"path": "note.txt"}
turn
  say It says: {{output "read_file" 1}}
round
turn
  say Still: {{output "read_file" 1}}
again
turn
  say {{question}}
`, nil)
	write(t, w.dir, "note.txt", "Rain.")
	first := w.create(`{"model":"it","input":"What does it say?"}`)
	said := first.Output[1]
	for name, input := range map[string]string{
		"by references":  `{"type":"message","role":"user","content":[{"type":"input_text","text":"What does it say?"}]},{"type":"item_reference","id":"` + first.Output[0].ID() + `"},{"type":"item_reference","id":"` + said.ID() + `"}`,
		"without a call": `{"role":"user","content":"What does it say?"},` + said.JSON(),
		"without texts":  `{"role":"user","content":"What does it say?"},{"type":"item_reference","id":"` + first.Output[0].ID() + `"},{"role":"assistant","content":"It says: Rain."}`,
	} {
		r := w.create(`{"model":"it","input":[` + input + `,{"role":"user","content":"Sure?"}]}`)
		if got := kinds(r); got != "message:Still: Rain." || r.PreviousResponseID != "" {
			t.Errorf("%s: %s, after %q", name, got, r.PreviousResponseID)
		}
		w.same(r)
		if _, body := w.send(http.MethodGet, "responses/"+r.ID+"/input_items", ""); strings.Count(body, `"mcp_call"`) != 1 || strings.Count(body, `"role"`) != 3 {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// A request for approval can be answered after a reference to it, by a client that names no
// response. The same history can be sent again later.
func TestRecallApproval(t *testing.T) {
	for _, whole := range []bool{true, false} {
		recallApproval(t, whole)
	}
}

// recallApproval answers a request for approval with the whole history before it, or with the request alone.
func recallApproval(t *testing.T, whole bool) {
	t.Helper()
	w := serving(t, asking, "turn\n  say I open it.\n  call open_door {}\nturn\n  say Door: {{output \"open_door\" 1}}\nround\nturn\n  say Yes: {{output \"open_door\" 1}}\n", nil)
	first := w.create(`{"model":"it","input":"Go."}`)
	if got := kinds(first); got != "message:I open it. | mcp_approval_request:open_door" {
		t.Fatal(got)
	}
	reference := func(id string) string { return fmt.Sprintf(`{"type":"item_reference","id":%q}`, id) }
	request, before := first.Output[1].ID(), ""
	answer := reference(request) + fmt.Sprintf(`,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, request)
	if whole {
		before = `{"role":"user","content":"Go."},` + reference(first.Output[0].ID()) + ","
	}
	second := w.create(`{"model":"it","input":[` + before + answer + `]}`)
	if got := kinds(second); !strings.HasPrefix(got, "mcp_call:open_door | message:Door: opened") {
		t.Errorf("the whole history %v: %s", whole, got)
	}
	w.refused(http.MethodPost, "responses", `{"model":"it","input":[`+before+answer+`]}`, "already_answered")
	if whole {
		all := before + answer + "," + reference(second.Output[0].ID()) + "," + reference(second.Output[1].ID())
		third := w.create(`{"model":"it","input":[` + all + `,{"role":"user","content":"Really?"}]}`)
		if got := kinds(third); !strings.HasPrefix(got, "message:Yes: opened") {
			t.Error(got)
		}
	}
	for _, unknown := range []string{request + "9", "mcpr_none"} {
		w.refused(http.MethodPost, "responses", fmt.Sprintf(`{"model":"it","input":[{"type":"mcp_approval_request","id":%q,"server_label":"it","name":"open_door","arguments":"{}"},
			{"type":"mcp_approval_response","approval_request_id":%[1]q,"approve":true}]}`, unknown), "no call waits")
	}
}

// A history that differs from the stored one, or is not of this agent, or was deleted, is all
// there is. What differs is logged.
func TestRecallDiffers(t *testing.T) {
	var mu sync.Mutex
	var logged []string
	w := serving(t, "", "again\nturn\n  say {{question}}\n", func(b *agents.Backend) {
		b.Log = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, err.Error())
		}
		other := b.Agents[0]
		other.Name, other.Config.File = "other", strings.Replace(other.Config.File, "it.md", "other.md", 1)
		write(t, strings.TrimSuffix(other.Config.File, "other.md"), "other.md", "<config model=\"rehearsal:it.script\"/>\n")
		b.Agents = append(b.Agents, other)
	})
	first := w.create(`{"model":"it","input":"one"}`)
	ask := func(model, question string) *api.Response {
		return w.create(`{"model":"` + model + `","input":[{"role":"user","content":"` + question + `"},` + first.Output[0].JSON() + `,{"role":"user","content":"two"}]}`)
	}
	fresh := func(r *api.Response) bool { return strings.Split(r.ID, "_")[1] != strings.Split(first.ID, "_")[1] }
	if r := ask("it", "changed"); !fresh(r) || len(logged) != 1 || !strings.Contains(logged[0], first.ID) {
		t.Errorf("%s after %s: %q", r.ID, first.ID, logged)
	}
	whole := first.Output[0] // with its id, and other words: somebody has taken some out of it
	first.Output[0] = with(t, whole, "content", `[{"type":"output_text","text":"removed","annotations":[],"logprobs":[]}]`)
	if r := ask("it", "one"); !fresh(r) || len(logged) != 2 {
		t.Errorf("%s goes on with the words that were removed: %q", r.ID, logged)
	}
	first.Output[0], logged = whole, logged[:1]
	if r := ask("other", "one"); !fresh(r) || len(logged) != 1 {
		t.Errorf("%s after %s: %q", r.ID, first.ID, logged)
	}
	if r := ask("it", "one"); fresh(r) {
		t.Errorf("%s does not go on from %s", r.ID, first.ID)
	}
	if status, body := w.send(http.MethodDelete, "responses/"+first.ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if r := ask("it", "one"); !fresh(r) || len(logged) != 1 {
		t.Errorf("%s after %s: %q", r.ID, first.ID, logged)
	}
	_, body := w.send(http.MethodPost, "conversations", `{}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	first = w.create(`{"model":"it","input":"one","conversation":"` + talk.ID + `"}`)
	if r := ask("it", "one"); !fresh(r) { // a conversation grows by requests that name it
		t.Errorf("%s goes on in the conversation of %s", r.ID, first.ID)
	}
	var names []string
	for info, err := range w.b.Store.List(t.Context(), session.Query{Archived: true}) {
		if names = append(names, info.ID); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Sort(names); len(names) != 8 {
		t.Errorf("sessions %q", names)
	}
}

// with returns an item with a member set.
func with(t *testing.T, it item.Item, name string, value item.JSON) item.Item {
	t.Helper()
	changed, err := it.With(name, value)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
