// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// A worker runs an agent until a call waits for a person. A desk, another process, lists
// such calls over HTTP and takes the answers, and the worker goes on. Start them with
//
//	go run ./examples/go/approve desk
//	go run ./examples/go/approve work
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
)

const name = "payments" // of the session
const script = `
turn
  call pay {"Euros": 40}
turn
  say The shop said: {{if failed "pay" 1}}{{error "pay" 1}}{{else}}{{output "pay" 1}}{{end}}
`

type sum struct{ Euros int }

func pay(_ context.Context, s sum) (string, error) {
	return fmt.Sprintf("%d euros are paid", s.Euros), nil
}

// work continues the conversation, or begins it.
func work(ctx context.Context, db session.Store, out io.Writer) error {
	s, err := session.Open(ctx, db, name)
	if err != nil {
		return err
	}
	play, err := rehearsal.Parse("approve.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	a := &agent.Agent{
		Model: &responses.Client{BaseURL: url}, Request: api.Request{Model: "rehearsal"},
		Tools:  []tool.Tool{tool.Must("pay", "Pays the shop.", pay)},
		Policy: agent.Policy{Pause: true}, // calls that ask wait in the log
	}
	var input []item.Item
	if len(s.Log()) == 0 {
		input = append(input, item.User("Pay for the tea."))
	}
	res, err := a.Run(ctx, s, input...)
	if err != nil {
		return err
	}
	for _, p := range res.Pending {
		fmt.Fprintf(out, "waits: %s %s\n", p.Tool, p.Arguments)
	}
	_, err = fmt.Fprintf(out, "%s %s\n", res.Why, res.Text)
	return err
}

// desk lists the calls that wait, after it has taken the answers that a POST brings.
func desk(db session.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var decisions []agent.Decision
		s, err := session.Open(r.Context(), db, name)
		if err == nil && r.Method == http.MethodPost {
			err = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&decisions)
		}
		if err == nil && len(decisions) > 0 {
			err = agent.Decide(r.Context(), s, decisions...)
		}
		if err == nil {
			var pending []agent.PendingApproval
			if pending, err = agent.PendingApprovals(r.Context(), s); err == nil {
				err = json.NewEncoder(w).Encode(pending)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	db, err := store.Open(ctx, "approve.db", store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if len(os.Args) > 1 && os.Args[1] == "desk" {
		log.Fatal(http.ListenAndServe("127.0.0.1:8097", http.NewCrossOriginProtection().Handler(desk(db))))
	}
	if err := work(ctx, db, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
