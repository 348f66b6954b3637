// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// tenants are two projects of one server, whose histories are random. What each says holds
// its own word.
type tenants struct {
	t      *testing.T
	random *rand.Rand
	base   string
	client *http.Client
	keys   map[string]string
	ids    map[string][]string // that a project has seen, by project
	steps  int
	models []string
	front  bool           // sessions are served
	files  bool           // they upload files
	key    string         // the Idempotency-Key of what is sent, or ""
	used   map[string]int // keys, by project
}

// front is where the routes of sessions begin.
const front = sessions.Path

const (
	red  = "red"
	blue = "blue"
)

func other(project string) string {
	if project == red {
		return blue
	}
	return red
}

// guarded serves projects behind keys.
func guarded(t *testing.T, make func(project string) server.Backend) *tenants {
	t.Helper()
	return guardedBy(t, func(project string) *server.Server { return &server.Server{Backend: make(project)} })
}

// sessionsOf serves the sessions of a project.
func sessionsOf(t *testing.T, in store.Store, project string) *sessions.Handler {
	return &sessions.Handler{Store: in, Owner: project, Log: func(err error) { t.Log("logged:", err) }}
}

func guardedBy(t *testing.T, make func(project string) *server.Server) *tenants {
	t.Helper()
	keys := access.OpenKeys(filepath.Join(t.TempDir(), "keys.json"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &tenants{t: t, random: rand.New(rand.NewPCG(seed, 1)), keys: map[string]string{}, ids: map[string][]string{}, used: map[string]int{}, models: []string{"it"}}
	for _, project := range []string{red, blue} {
		sent, _, err := keys.Create(t.Context(), access.Key{Name: project, Project: project, Scopes: access.Scopes})
		if err != nil {
			t.Fatal(err)
		}
		w.keys[project] = sent
	}
	g := &access.Guard{Keys: keys, Server: func(project string) (*server.Server, error) {
		return make(project), nil
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := goServe(ctx, g, l)
	transport := new(http.Transport)
	w.base, w.client = "http://"+l.Addr().String()+"/v1/", &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func goServe(ctx context.Context, g *access.Guard, l net.Listener) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l, nil) }()
	return ended
}

func (w *tenants) send(project, method, path, body string) (int, string) {
	w.t.Helper()
	base := w.base
	if strings.HasPrefix(path, front) {
		base = strings.TrimSuffix(base, "/v1/")
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.keys[project])
	if path == "files" && method == "POST" {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=BOUND")
	}
	if w.key != "" {
		r.Header.Set("Idempotency-Key", w.key)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(text), wordOf(other(project))) {
		w.t.Fatalf("%s sees what is not its own: %s %s %s: %s", project, method, path, body, text)
	}
	return resp.StatusCode, string(text)
}

// wordOf is a word that only a project says.
func wordOf(project string) string { return "the-word-of-" + project }

// any returns one of a project's ids that begins with a prefix, or "".
func (w *tenants) any(project, prefix string) string {
	var list []string
	for _, id := range w.ids[project] {
		if strings.HasPrefix(id, prefix) {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[w.random.IntN(len(list))]
}

// keep remembers the ids in an answer, which may be a stream.
func (w *tenants) keep(project, text string) {
	if _, first, stream := strings.Cut(text, "data: "); stream {
		first, _, _ = strings.Cut(first, "\n")
		if ev, err := api.ParseEventString(first); err == nil {
			if r, err := ev.Response(); err == nil {
				w.remember(project, r.ID)
			}
		}
		return
	}
	object, err := item.Parse([]byte(text))
	if err != nil {
		return
	}
	w.remember(project, object.ID())
	for _, name := range []string{"output", "data"} {
		v, _ := object.Member(name)
		list, err := item.ParseList(string(v))
		if err != nil {
			continue
		}
		for _, it := range list {
			w.remember(project, it.ID())
		}
	}
}

func (w *tenants) remember(project, id string) {
	if id != "" && !slices.Contains(w.ids[project], id) {
		w.ids[project] = append(w.ids[project], id)
	}
}

// form is the body of a file that is uploaded.
func form(word string) string {
	return "--BOUND\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n" +
		"--BOUND\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + word + ".txt\"\r\n\r\n" + word + "\r\n--BOUND--\r\n"
}

// act does something with objects of its own.
func (w *tenants) act(project string) {
	w.steps++
	message := fmt.Sprintf(`{"role":"user","content":"%s %d"}`, wordOf(project), w.steps)
	previous, conversation, thing := w.any(project, "resp_"), w.any(project, "conv_"), w.any(project, "msg_")
	model := w.models[w.random.IntN(len(w.models))]
	method, path, body := "POST", "responses", ""
	if w.random.IntN(2) == 0 {
		w.used[project]++
		w.key = fmt.Sprintf("key-%d", w.used[project]) // projects use the same ones
		defer func() { w.key = "" }()
	}
	kinds := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	if w.front {
		kinds = append(kinds, 9, 10, 11, 12)
	}
	if w.files {
		kinds = append(kinds, 13, 14)
	}
	talk := w.any(project, "api-")
	switch kinds[w.random.IntN(len(kinds))] {
	case 0, 1:
		body = fmt.Sprintf(`{"model":%q,"input":[%s],"background":%v}`, model, message, w.random.IntN(3) == 0)
	case 2:
		body = fmt.Sprintf(`{"model":%q,"input":[%s],"stream":true,"background":%v}`, model, message, w.random.IntN(2) == 0)
	case 3:
		body = fmt.Sprintf(`{"model":%q,"input":[%s],"previous_response_id":%q}`, model, message, previous)
	case 4:
		body = fmt.Sprintf(`{"model":%q,"input":[%s],"conversation":%q}`, model, message, conversation)
	case 5:
		body = fmt.Sprintf(`{"model":%q,"input":[{"type":"item_reference","id":%q},%s]}`, model, thing, message)
	case 6:
		path, body = "conversations", fmt.Sprintf(`{"items":[%s],"metadata":{"of":%q}}`, message, wordOf(project))
	case 7:
		path, body = "conversations/"+conversation+"/items", fmt.Sprintf(`{"items":[%s]}`, message)
	case 8:
		method, path = "GET", "responses/"+previous+"/input_items?limit=100"
	case 9:
		method, path = "GET", front+"?limit=100"
	case 10:
		method, path = "GET", front+"/"+talk+"/events?follow=false"
	case 11:
		path, body = front+"/"+talk+"/input", fmt.Sprintf(`{"input":"%s %d"}`, wordOf(project), w.steps)
	case 12:
		method, path = "GET", front+"/"+talk
	case 13:
		path, body = "files", form(wordOf(project))
	case 14:
		body = fmt.Sprintf(`{"model":"it","input":[{"role":"user","content":[{"type":"input_file","file_id":%q}]}]}`, w.any(project, "file-"))
	}
	if strings.HasPrefix(path, front+"/") && talk == "" {
		return
	}
	if strings.Contains(path, "//") || strings.Contains(body, `_id":""`) || strings.Contains(body, `"conversation":""`) || strings.Contains(body, `"id":""`) {
		return
	}
	if status, text := w.send(project, method, path, body); status == http.StatusOK {
		w.keep(project, text)
	} else if status >= 500 {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
	}
}

// guess asks for an object of the other project by every route, and for one that does not
// exist: the answers must be the same.
func (w *tenants) guess(project, id string) {
	unknown := strings.Map(func(r rune) rune {
		switch { // of the same form
		case r >= 'a' && r < 'z', r >= 'A' && r < 'Z', r >= '2' && r < '7':
			return r + 1
		}
		return r
	}, id)
	kind := strings.IndexAny(id, "_-") + 1
	unknown = id[:kind] + unknown[kind:]
	input := fmt.Sprintf(`{"role":"user","content":%q}`, wordOf(project))
	for _, route := range []struct{ method, path, body string }{
		{"GET", "responses/ID", ""},
		{"GET", "responses/ID?stream=true", ""},
		{"GET", "responses/ID/input_items", ""},
		{"POST", "responses/ID/cancel", ""},
		{"DELETE", "responses/ID", ""},
		{"GET", "conversations/ID", ""},
		{"POST", "conversations/ID", `{"metadata":{}}`},
		{"DELETE", "conversations/ID", ""},
		{"GET", "conversations/ID/items", ""},
		{"POST", "conversations/ID/items", `{"items":[` + input + `]}`},
		{"GET", "conversations/ID/items/ID", ""},
		{"DELETE", "conversations/ID/items/ID", ""},
		{"POST", "responses", `{"model":"it","input":[` + input + `],"previous_response_id":"ID"}`},
		{"POST", "responses", `{"model":"it","input":[` + input + `],"conversation":"ID"}`},
		{"POST", "responses", `{"model":"it","input":[{"type":"item_reference","id":"ID"},` + input + `]}`},
		{"POST", "responses", `{"model":"it","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_ID_1","approve":true}]}`},
		{"POST", "responses", `{"model":"it","previous_response_id":"ID","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_x","approve":true}]}`},
		{"POST", "responses", `{"model":"it","input":[{"role":"user","content":[{"type":"input_file","file_id":"ID"}]}]}`},
		{"GET", "files/ID", ""},
		{"GET", "files?after=ID", ""},
		{"GET", "files/ID/content", ""},
		{"DELETE", "files/ID", ""},
		{"GET", "models/ID", ""},
		{"GET", front + "/ID", ""},
		{"GET", front + "/ID/events?follow=false", ""},
		{"GET", front + "/own/events?follow=false&session=ID", ""},
		{"GET", front + "?after=ID", ""},
		{"POST", front + "/ID/input", `{"input":"` + wordOf(project) + `"}`},
		{"POST", front + "/ID/stop", `{}`},
		{"POST", front + "/ID/approvals", `{"call_id":"c","number":1,"approve":true}`},
		{"POST", front + "/own/approvals", `{"session":"ID","call_id":"c","number":1,"approve":true}`},
	} {
		if !w.files && strings.Contains(route.body, "file_id") {
			continue // it is for the model
		}
		ask := func(id string) (int, string) {
			replace := func(s string) string { return strings.ReplaceAll(s, "ID", id) }
			status, text := w.send(project, route.method, replace(route.path), replace(route.body))
			return status, strings.ReplaceAll(text, id, "ID")
		}
		status, text := ask(id)
		none, same := ask(unknown)
		if status < 400 || status >= 500 || status != none || text != same {
			w.t.Fatalf("%s tells %s of %s: %d %s\nand of nothing: %d %s", route.method+" "+route.path, project, id, status, text, none, same)
		}
	}
}

// isolated runs random histories of two projects. Nothing of one is visible to the other,
// by any route, with any id that the other has. V3
func (w *tenants) isolated(steps int) {
	few := func() bool { return min(len(w.ids[red]), len(w.ids[blue])) < steps/8 }
	for n := 0; n < steps || few() && n < 10*steps; n++ { // in a few steps a project may have had no luck
		project := []string{red, blue}[w.random.IntN(2)]
		w.act(project)
		if theirs := w.ids[other(project)]; len(theirs) > 0 && w.random.IntN(4) == 0 {
			w.guess(project, theirs[w.random.IntN(len(theirs))])
		}
	}
	for _, project := range []string{red, blue} { // nothing of the guesses changed anything
		for _, id := range w.ids[project] {
			path := ""
			switch {
			case strings.HasPrefix(id, "resp_"):
				path = "responses/" + id
			case strings.HasPrefix(id, "conv_"):
				path = "conversations/" + id
			case strings.HasPrefix(id, "file-"):
				path = "files/" + id
			case strings.HasPrefix(id, "api-"):
				path = front + "/" + id
			default:
				continue
			}
			if status, text := w.send(project, "GET", path, ""); status != http.StatusOK {
				w.t.Errorf("%s lost %s: %d %s", project, id, status, text)
			}
		}
		if len(w.ids[project]) < steps/8 {
			w.t.Errorf("%s has seen only %d ids", project, len(w.ids[project]))
		}
	}
}

func TestProjectsOfModels(t *testing.T) {
	w := guarded(t, func(string) server.Backend {
		return server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
			for _, it := range r.Items { // cut, because an answer that quotes the answers before it doubles each time
				text := it.JSON()
				_ = w.Text(strings.ToValidUTF8(text[:min(len(text), 500)], ""))
			}
			w.Usage(api.Usage{})
			return w.Complete()
		})
	})
	w.isolated(steps(t, 300))
}

func TestProjectsOfAgents(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "it.script", "turn\n  say {{question}}\nagain\nturn\n  say {{question}}\n")
	write(t, dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n")
	in, err := store.Open(t.Context(), filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, project := range []string{red, blue} { // the names are the same, and the sessions are not
		if err := in.Create(t.Context(), session.Info{ID: "api-of-" + project, Name: "own", Path: "/" + project, Owner: project}); err != nil {
			t.Fatal(err)
		}
	}
	w := guardedBy(t, func(project string) *server.Server {
		return &server.Server{Sessions: sessionsOf(t, in, project), Backend: &agents.Backend{
			Store: in, Owner: project, Log: func(err error) { t.Log("logged:", err) },
			Agents: []agents.Agent{{Name: "it", Config: host.Config{File: filepath.Join(dir, "it.md"), Trust: trust.Everything, Sandbox: "full"}}},
		}}
	})
	w.front, w.files = true, true
	w.isolated(steps(t, 80))
}

// Agents and upstreams in one server are as separate by project as each of them. V3
func TestProjectsBeside(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "it.script", "turn\n  say {{question}}\nagain\nturn\n  say {{question}}\n")
	write(t, dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n")
	in, err := store.Open(t.Context(), filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	upstream := agenttest.NewServer(t)
	upstream.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply { // it says whose words it received
		if r.Method == http.MethodGet {
			return agenttest.Raw(http.StatusOK, "application/json", `{"object":"list","data":[]}`)
		}
		said := "of nobody"
		for _, project := range []string{red, blue} {
			if strings.Contains(string(r.Body), wordOf(project)) {
				said = wordOf(project)
			}
		}
		return agenttest.Completed(item.Assistant(said))
	})
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	up := &gateway.Backend{Upstreams: []gateway.Upstream{{Config: &dialect.Config{BaseURL: upstream.URL, HTTP: &http.Client{Transport: transport}}}}}
	w := guardedBy(t, func(project string) *server.Server {
		b := &agents.Backend{
			Store: in, Owner: project, Log: func(err error) { t.Log("logged:", err) },
			Agents: []agents.Agent{{Name: "it", Config: host.Config{File: filepath.Join(dir, "it.md"), Trust: trust.Everything, Sandbox: "full"}}},
		}
		return &server.Server{Backend: b, Sessions: sessionsOf(t, in, project), Beside: &server.Server{Backend: up, Store: &gateway.Store{In: in, Owner: project}}}
	})
	w.models, w.front, w.files = []string{"it", "other"}, true, true
	w.isolated(steps(t, 80))
}

func steps(t *testing.T, n int) int {
	t.Helper()
	if testing.Short() {
		return n / 4
	}
	return n
}
