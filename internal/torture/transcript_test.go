// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// transcriptVariable makes the test binary a worker on a transcript.
const transcriptVariable = "ANTIPHON_TORTURE_TRANSCRIPT"

// scribe is what a worker on a transcript is told. It dies before its Kill-th
// append, or works with files that cannot grow beyond Full bytes.
type scribe struct {
	Dir, URL, Say string
	Kill, Full    int
}

// liveInFile is the whole life of a worker on a transcript: one run.
func liveInFile(text string) int {
	var w scribe
	err := json.Unmarshal([]byte(text), &w)
	if err == nil {
		err = w.run(context.Background())
	}
	switch {
	case errors.Is(err, session.ErrBusy):
		return 3
	case err != nil && !errors.Is(err, agent.ErrNothingToSend):
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (w *scribe) run(ctx context.Context) error {
	if w.Full > 0 {
		if err := limitFiles(uint64(w.Full)); err != nil {
			return err
		}
	}
	ledger, talk := trust.OpenLedger(filepath.Join(w.Dir, "ledger")), filepath.Join(w.Dir, "talk.md")
	f, store, err := agentfile.OpenTranscript(ctx, filepath.Join(w.Dir, "agent.md"), talk, agentfile.Options{
		Known: func(trust.Source) (trust.Left, bool) {
			left, err := ledger.Left(talk)
			return left, err == nil
		},
		Leave: ledger.Leave,
	})
	if err != nil {
		return err
	}
	defer f.Close()
	left := w.Kill
	s, err := session.Open(ctx, storetest.StepStore(store, func(step storetest.Step) error {
		if strings.HasPrefix(step.String(), "append/") && w.Kill > 0 {
			if left--; left == 0 {
				die()
			}
		}
		return nil
	}), "talk")
	if err != nil {
		return err
	}
	a := f.Agent(&responses.Client{BaseURL: w.URL})
	a.Request.Model, a.Policy.Allow = "m", []string{"*"}
	a.Tools = []tool.Tool{tool.Must("work", "Works.", func(ctx context.Context, in struct {
		N string `json:"n"`
	}) (string, error) {
		ran, err := os.OpenFile(filepath.Join(w.Dir, "ran"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = ran.WriteString(in.N + "\n")
		return "worked " + in.N + strings.Repeat(" and more", 20), errors.Join(err, ran.Close())
	})}
	for ev, err := range a.Stream(ctx, s, item.User(w.Say)) {
		if err != nil {
			return err
		}
		if e, ok := ev.(agent.Recorded); ok {
			if said, ok := e.Body.(session.OutputItem); ok { // what anybody was told of
				fmt.Println(said.Item.JSON())
			}
		}
	}
	return nil
}

// TestKillsOfTranscripts proves that a run on a transcript can be killed before
// any write, find a full disk, and have its last write torn: what was told is
// there, no tool runs twice, each request pairs and begins with the bytes of the
// one before, and a last run comes to its end. Of two writers one is refused. J1
// J2 P1 I12 M3 M9
func TestKillsOfTranscripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a signal that kills at once: skipped")
	}
	for seed := range uint64(max(4, wanted(t)/10)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newFileWorld(t, seed).play() })
	}
}

type fileWorld struct {
	t    *testing.T
	r    *rand.Rand
	dir  string
	srv  *agenttest.Server
	told []string
	n    int
}

func newFileWorld(t *testing.T, seed uint64) *fileWorld {
	w := &fileWorld{t: t, r: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), srv: agenttest.NewServer(t)}
	if err := os.WriteFile(filepath.Join(w.dir, "agent.md"), []byte("<user>Begin.</user>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.srv.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		message := func(text string) item.Item {
			return item.Must(&item.Message{ID: fmt.Sprintf("m%d", n), Role: item.RoleAssistant, Status: item.StatusCompleted, Content: item.Parts(&item.OutputText{Text: text, Annotations: "[]"})})
		}
		reasoning := item.Must(&item.Reasoning{ID: fmt.Sprintf("rs%d", n), Summary: []item.Part{}, EncryptedContent: "e"})
		call := func(i int) item.Item {
			return item.Call(fmt.Sprintf("c%d_%d", n, i), "work", fmt.Sprintf(`{"n":"%d_%d"}`, n, i))
		}
		if n%3 == 2 {
			return agenttest.Completed(reasoning, message(fmt.Sprintf("Done %d.", n)))
		}
		return agenttest.Completed(reasoning, message(fmt.Sprintf("I work %d.", n)), call(1), call(2))
	})
	return w
}

// live starts workers and returns their exit codes, -1 for one that was killed.
func (w *fileWorld) live(jobs ...scribe) (codes []int) {
	type life struct {
		cmd      *exec.Cmd
		out, err *strings.Builder
	}
	var lives []life
	for _, j := range jobs {
		w.n++
		j.Dir, j.URL, j.Say = w.dir, w.srv.URL, fmt.Sprintf("This is run %d.", w.n)
		text, err := json.Marshal(j)
		if err != nil {
			w.t.Fatal(err)
		}
		l := life{exec.Command(os.Args[0]), new(strings.Builder), new(strings.Builder)}
		l.cmd.Env = append(os.Environ(), transcriptVariable+"="+string(text))
		l.cmd.Stdout, l.cmd.Stderr = l.out, l.err
		if err := l.cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		lives = append(lives, l)
	}
	for i, l := range lives {
		_ = l.cmd.Wait() // the code says it
		code := l.cmd.ProcessState.ExitCode()
		if code > 0 && code != 3 && jobs[i].Full == 0 {
			w.t.Errorf("a worker: exit code %d\n%s", code, l.err)
		}
		for line := range strings.Lines(l.out.String()) {
			w.told = append(w.told, strings.TrimSuffix(line, "\n"))
		}
		codes = append(codes, code)
	}
	return codes
}

// items are those of the file, as bytes.
func (w *fileWorld) items() map[string]int {
	f, err := agentfile.Load(w.t.Context(), filepath.Join(w.dir, "talk.md"), agentfile.Options{})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	items := map[string]int{}
	for _, it := range f.Items {
		items[it.JSON()]++
	}
	return items
}

func (w *fileWorld) play() {
	out := filepath.Join(w.dir, "talk.md")
	for range 6 {
		jobs := []scribe{{Kill: 1 + w.r.IntN(24)}}
		switch n := w.r.IntN(10); {
		case n < 2:
			text, _ := os.ReadFile(out) // not there at first
			jobs = []scribe{{Full: len(text) + w.r.IntN(3000) + 200}}
		case n < 4:
			jobs = append(jobs, scribe{})
		}
		w.live(jobs...)
		if f, err := os.OpenFile(out, os.O_APPEND|os.O_WRONLY, 0); err == nil && w.r.IntN(3) == 0 {
			// A write that was under way, of which a part came to the disk.
			half := "<assistant id=\"half\" status=\"completed\">\nThis was never told.\n</assistant>\n"
			_, err = f.WriteString(half[:1+w.r.IntN(len(half)-len("/assistant>\n")-1)])
			if err = errors.Join(err, f.Close()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	codes := w.live(scribe{})
	if codes[0] != 0 {
		w.t.Fatalf("the last run: exit code %d", codes[0])
	}
	items := w.items()
	for _, told := range w.told {
		if items[told] != 1 {
			w.t.Errorf("%d times in the transcript: %s", items[told], told)
		}
	}
	ran := map[string]int{}
	text, err := os.ReadFile(filepath.Join(w.dir, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if ran[line]++; ran[line] > 1 {
			w.t.Errorf("ran twice: %s", line)
		}
	}
	var before []item.Item
	for n, r := range w.srv.Requests() {
		var now []item.Item
		for _, it := range r.Parse(w.t).Input.All() {
			now = append(now, it)
		}
		if err := agenttest.CheckPairing(now...); err != nil {
			w.t.Errorf("request %d: %v", n, err)
		}
		for i, it := range before {
			if i >= len(now) || now[i] != it {
				w.t.Fatalf("request %d does not begin with the one before, at item %d of %d:\n%s\n%s", n, i, len(now), before, now)
			}
		}
		before = now
	}
}
