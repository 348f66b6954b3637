// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program runs one agent in many processes. Each process performs one effect
// with [agent.Agent.Step] and ends; many are killed in the middle. They share only
// the log. Start it with
//
//	go run ./examples/handover
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	_ "modernc.org/sqlite"
)

// script is the script of the rehearsal model: three orders, one after another.
const script = `
turn
  say One crate of tea, then.
  call order {"what":"tea"}
turn
  call order {"what":"rice"}
  call order {"what":"salt"}
turn
  say Tea: {{if failed "order" 1}}perhaps{{else}}{{output "order" 1}}{{end}},
  say rice: {{if failed "order" 2}}perhaps{{else}}{{output "order" 2}}{{end}},
  say salt: {{if failed "order" 3}}perhaps{{else}}{{output "order" 3}}{{end}}.
`

func main() {
	log.SetFlags(0)
	worker := flag.String("worker", "", "be the worker of this name: perform one effect and end")
	dir := flag.String("dir", "", "the folder of the session and of the orders")
	url := flag.String("url", "", "the model's endpoint")
	kills := flag.Int("kills", 8, "how many workers are killed")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "which ones, and when")
	flag.Parse()
	var err error
	if *worker != "" {
		err = work(context.Background(), *dir, *url)
	} else {
		var came result
		if came, err = direct(*kills, rand.New(rand.NewPCG(*seed, 1)), os.Stdout); err == nil {
			fmt.Printf("\nanswer:  %s\nordered: %s\nthe log: %d run(s), %d times interrupted, %d entries\n",
				came.answer, strings.Join(came.orders, ", "), came.runs, came.interrupted, came.entries)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// work is the main function of a worker: it reads the log, performs one effect and
// prints it.
func work(ctx context.Context, dir, url string) error {
	s, done, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer done()
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url},
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{order(dir)},
		Policy:  agent.Policy{Allow: []string{"order"}},
		Limits:  agent.Limits{MaxTurns: 50},
	}
	effect, err := a.Step(ctx, s)
	if err != nil && !errors.Is(err, agent.ErrNothingToSend) { // it means that the previous worker was killed after everything was done
		return err
	}
	text, err := plan.Marshal(effect)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}

// order is a tool with an external effect: it writes a line to a file.
func order(dir string) tool.Tool {
	type in struct {
		What string `json:"what"`
	}
	return tool.Must("order", "Orders goods.", func(_ context.Context, in in) (string, error) {
		f, err := os.OpenFile(filepath.Join(dir, "orders"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		time.Sleep(20 * time.Millisecond) // so that some workers are killed here
		_, err = fmt.Fprintln(f, in.What)
		return "a crate of " + in.What, err
	})
}

func open(ctx context.Context, dir string) (*session.Session, func() error, error) {
	keep, err := store.Open(ctx, filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Open(ctx, keep, "handover")
	if err != nil {
		return nil, nil, errors.Join(err, keep.Close())
	}
	return s, keep.Close, nil
}

// result is the outcome: the state in the log, and the orders.
type result struct {
	answer                     string
	orders                     []string
	runs, interrupted, entries int
}

// direct begins the conversation, starts one worker after another, kills some, and
// returns the outcome.
func direct(kills int, dice *rand.Rand, out io.Writer) (came result, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "handover")
	if err != nil {
		return came, err
	}
	defer os.RemoveAll(dir)
	play, err := rehearsal.Parse("handover.script", []byte(script))
	if err != nil {
		return came, err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return came, err
	}
	defer stop()
	s, done, err := open(ctx, dir)
	if err != nil {
		return came, err
	}
	_, err = s.Append(ctx, session.InputItem{Item: item.User("Order tea, rice and salt.")})
	if err = errors.Join(err, done()); err != nil {
		return came, err
	}
	for n := 0; ; n++ {
		name := []string{"north", "south"}[n%2]
		var patience time.Duration
		if kills > 0 && dice.IntN(3) > 0 {
			patience, kills = time.Duration(1+dice.IntN(60))*time.Millisecond, kills-1
		}
		effect, err := hire(name, dir, url, patience)
		switch {
		case errors.Is(err, errKilled):
			fmt.Fprintf(out, "%-6s killed after %v\n", name, patience)
			continue
		case err != nil:
			return came, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "%-6s %s\n", name, effect)
		if e, err := plan.Unmarshal([]byte(effect)); err != nil {
			return came, err
		} else if _, ok := e.(plan.Stop); ok {
			return report(ctx, dir)
		}
	}
}

var errKilled = errors.New("it was killed")

// hire runs a worker, and kills it after patience; 0 means no limit.
func hire(name, dir, url string, patience time.Duration) (effect string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	var out, failure strings.Builder
	worker := exec.Command(program, "-worker", name, "-dir", dir, "-url", url) //nolint:noctx // its time limit begins when it has started
	worker.Stdout, worker.Stderr = &out, &failure
	if err := worker.Start(); err != nil {
		return "", err
	}
	if patience > 0 {
		late := time.AfterFunc(patience, func() { _ = worker.Process.Kill() })
		defer late.Stop()
	}
	if err := worker.Wait(); err != nil {
		if failure.Len() > 0 {
			return "", errors.New(strings.TrimSpace(failure.String()))
		}
		return "", errKilled
	}
	return strings.TrimSpace(out.String()), nil
}

// report reads the log and the orders.
func report(ctx context.Context, dir string) (came result, err error) {
	s, done, err := open(ctx, dir)
	if err != nil {
		return came, err
	}
	defer done()
	for e := range s.Entries() {
		came.entries++
		switch b := e.Body.(type) {
		case session.RunStarted:
			if b.Resumes {
				came.interrupted++
			} else {
				came.runs++
			}
		case session.OutputItem:
			if m, err := item.As[item.Message](b.Item); err == nil && !b.Partial {
				came.answer = strings.ReplaceAll(m.Content.Display(), "\n", " ")
			}
		}
	}
	orders, err := os.ReadFile(filepath.Join(dir, "orders"))
	if err != nil && !os.IsNotExist(err) {
		return came, err
	}
	came.orders = strings.Fields(string(orders))
	return came, nil
}
