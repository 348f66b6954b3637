// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program serves an agent whose calls wait for people. A run that needs an
// approval stops, and the question is kept in the store. An answer over HTTP, an
// hour or a restart later, lets the next run continue. Start it with
//
//	go run ./examples/approve-http
//
// and open the address that it prints.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log"
	"net/http"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Desk is the server. Its only state is the store: every request opens the session
// again, so any number of processes could serve.
type Desk struct {
	Agent *agent.Agent
	Store session.Store
}

// Reply is the response to every request that runs the agent.
type Reply struct {
	Why     agent.StopReason        `json:"why"`
	Text    string                  `json:"text,omitempty"`
	Waiting []agent.PendingApproval `json:"waiting,omitempty"`
}

// Handler returns the handler of these routes:
//
//	POST /chat/{name}    the body is what the user says; the answer is a Reply
//	GET  /chat/{name}    a page with the calls that wait
//	POST /decide/{name}  the body is an agent.Decision, or a form of the page
func (d *Desk) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /chat/{name}", d.serve(d.chat))
	mux.HandleFunc("GET /chat/{name}", d.serve(d.page))
	mux.HandleFunc("POST /decide/{name}", d.serve(d.decide))
	// A page of another site must not answer on behalf of the person whose browser
	// shows it.
	return http.NewCrossOriginProtection().Handler(mux)
}

// serve opens the session in the path, and converts errors to HTTP statuses.
func (d *Desk) serve(f func(http.ResponseWriter, *http.Request, *session.Session) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		s, err := session.Open(r.Context(), d.Store, r.PathValue("name"))
		if err == nil {
			err = f(w, r, s)
		}
		switch {
		case err == nil:
		case errors.Is(err, session.ErrBusy), errors.Is(err, agent.ErrNoSuchApproval), errors.Is(err, agent.ErrNothingToSend):
			http.Error(w, err.Error(), http.StatusConflict) // another answer or another run came first
		default:
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

func (d *Desk) chat(w http.ResponseWriter, r *http.Request, s *session.Session) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return d.run(w, r, s, item.User(string(text)))
}

// run lets the agent continue as far as it can without a person.
func (d *Desk) run(w http.ResponseWriter, r *http.Request, s *session.Session, input ...item.Item) error {
	res, err := d.Agent.Run(r.Context(), s, input...)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(Reply{res.Why, res.Text, res.Pending})
}

// decide records the answer and runs the agent again. It does not check who answers:
// put your own login around the handler, and set By from it.
func (d *Desk) decide(w http.ResponseWriter, r *http.Request, s *session.Session) error {
	var answer agent.Decision
	if r.Header.Get("Content-Type") == "application/json" {
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
			return err
		}
	} else if err := json.Unmarshal([]byte(r.FormValue("decision")), &answer); err != nil {
		return err
	}
	answer.By, answer.From = "desk", "web"
	if err := agent.Decide(r.Context(), s, answer); err != nil {
		return err
	}
	if left, err := agent.PendingApprovals(r.Context(), s); err != nil || len(left) > 0 {
		w.Header().Set("Content-Type", "application/json")
		return errors.Join(err, json.NewEncoder(w).Encode(Reply{Why: agent.StopApprovalPending, Waiting: left}))
	}
	return d.run(w, r, s)
}

func (d *Desk) page(w http.ResponseWriter, r *http.Request, s *session.Session) error {
	waiting, err := agent.PendingApprovals(r.Context(), s)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return view.Execute(w, map[string]any{"Name": s.ID(), "Waiting": waiting})
}

// view shows the arguments unchanged: the person who answers must see what will run.
var view = template.Must(template.New("").Funcs(template.FuncMap{
	"answer": func(p agent.PendingApproval, allow bool) (string, error) {
		text, err := json.Marshal(agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: allow})
		return string(text), err
	},
}).Parse(`<!doctype html><title>Approvals</title>
{{$name := .Name}}{{range .Waiting}}<form method="post" action="/decide/{{$name}}">
<p>{{.Reason}}</p><pre>{{.Tool}} {{.Arguments}}</pre>
<button name="decision" value="{{answer . true}}">Allow</button> <button name="decision" value="{{answer . false}}">Refuse</button>
</form>{{else}}<p>Nothing waits.</p>{{end}}
`))

// script is the script of the mock model.
const script = `
turn
  say I remove them.
  call remove {"path":"notes"}
turn
  say {{if failed "remove" 1}}They are still there.{{else}}They are gone.{{end}}
again
turn
  call remove {"path":"more"}
turn
  say {{if failed "remove" -1}}I left it.{{else}}Done.{{end}}
`

// open returns a desk with a mock model.
func open() (d *Desk, stop func(), err error) {
	play, err := rehearsal.Parse("approve.script", []byte(script))
	if err != nil {
		return nil, nil, err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return nil, nil, err
	}
	remove := tool.Must("remove", "Removes a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		return "removed " + in.Path, nil // an example removes nothing
	})
	return &Desk{
		Agent: &agent.Agent{
			Model:   &responses.Client{BaseURL: url},
			Request: api.Request{Model: "rehearsal"},
			Tools:   []tool.Tool{remove},
			Policy:  agent.Policy{Pause: true}, // calls that need approval wait
		},
		Store: new(session.Memory), // or one of session/store, which survives a restart
	}, stop, nil
}

func main() {
	log.SetFlags(0)
	d, stop, err := open()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	const at = "127.0.0.1:8099"
	fmt.Printf("say something:  curl -d 'Remove my notes.' http://%s/chat/ann\nand answer at:  http://%s/chat/ann\n", at, at)
	log.Fatal(http.ListenAndServe(at, d.Handler()))
}
