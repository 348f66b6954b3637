// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	tlog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/storetest"
	"github.com/antiphon-go/antiphon/tool"
)

// cliVariable names the Temporal CLI, whose dev server the tests use. .ci/temporal
// builds it and sets the variable.
const cliVariable = "ANTIPHON_TEMPORAL"

// jobVariable makes the test's program a worker.
const jobVariable = "ANTIPHON_TEMPORAL_JOB"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	shared.end()
	os.Exit(code)
}

// server is a dev server of the CLI.
type server struct {
	file string // its database; "" means in memory
	port int
	cmd  *exec.Cmd
	said *strings.Builder
}

// shared is the server of the tests that do not kill it.
var shared struct {
	sync.Mutex
	*server
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// sharedServer returns the address of the shared server, and skips the test if there is
// no CLI. The test then runs beside others, because it mostly waits.
func sharedServer(t *testing.T) string {
	t.Helper()
	needCLI(t)
	t.Parallel()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = &server{}
		shared.start(t)
	}
	return shared.address()
}

func needCLI(t *testing.T) {
	t.Helper()
	if os.Getenv(cliVariable) == "" {
		t.Skipf("%s does not name the Temporal CLI, so nothing is tested against a real server: run .ci/temporal", cliVariable)
	}
}

// start starts the server, or starts it again on the same port and database.
func (s *server) start(t *testing.T) {
	t.Helper()
	if s.port == 0 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		s.port = free.Addr().(*net.TCPAddr).Port
		must(t, free.Close())
	}
	args := []string{"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(s.port), "--log-level", "error"}
	if s.file != "" {
		args = append(args, "--db-filename", s.file)
	}
	s.said = new(strings.Builder)
	s.cmd = exec.Command(os.Getenv(cliVariable), args...)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	s.cmd.SysProcAttr = dieWithParent()
	must(t, s.cmd.Start())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		c, err := dial(s.address())
		if err == nil {
			_, err = c.CheckHealth(ctx, nil)
			c.Close()
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			s.end()
			t.Fatalf("the server does not answer: %v\n%s", err, s.said)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end kills the server.
func (s *server) end() {
	if s != nil && s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// quiet is a logger of the SDK that says nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func dial(address string) (client.Client, error) {
	var l tlog.Logger = quiet{}
	if os.Getenv("ANTIPHON_TEMPORAL_LOG") != "" {
		l = nil
	}
	return client.Dial(client.Options{HostPort: address, Logger: l, Identity: "test"})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openStore opens a store that several processes share: a file, or a connection string of
// Postgres.
func openStore(ctx context.Context, place string) (*sqlstore.Store, error) {
	o := sqlstore.Options{Poll: 50 * time.Millisecond}
	if filepath.IsAbs(place) {
		return sqlstore.OpenSQLite(ctx, place, func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }, o)
	}
	return sqlstore.OpenPostgres(ctx, place, func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) }, o)
}

// world is what a test has: a client of a server, a store, and an engine over both.
type world struct {
	*Engine
	t     *testing.T
	agent *agent.Agent
}

// newWorld returns a world with the agent, in queues and a store of its own.
func newWorld(t *testing.T, address string, a *agent.Agent) *world {
	t.Helper()
	c, err := dial(address)
	must(t, err)
	t.Cleanup(c.Close)
	store, err := openStore(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	w := &world{t: t, agent: a, Engine: &Engine{Client: c, Store: store, Queue: t.Name(), Prefix: t.Name() + "/", Heartbeat: 2 * time.Second, Backoff: 20 * time.Millisecond, Recheck: -1}}
	w.Open = func(ctx context.Context, id, _ string) (*Opened, error) {
		s, err := session.Open(ctx, w.Store, id)
		return &Opened{Agent: w.agent, Session: s}, err
	}
	return w
}

// works starts a worker, until the end of the test or until the returned function is
// called.
func (w *world) works(o worker.Options) (end func()) {
	w.t.Helper()
	one, err := w.Worker(w.t.Context(), o)
	must(w.t, err)
	must(w.t, one.Start())
	end = sync.OnceFunc(one.Stop)
	w.t.Cleanup(end)
	return end
}

// begins makes a session with a question.
func (w *world) begins(id string) {
	w.t.Helper()
	s, err := session.Open(w.t.Context(), w.Store, id)
	must(w.t, err)
	_, err = s.Append(w.t.Context(), session.InputItem{Item: item.User("Begin.")})
	must(w.t, err)
}

// ends waits until the workflow of a session is over.
func (w *world) ends(id string) (s State) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	if err := w.Client.GetWorkflow(ctx, w.WorkflowID(id), "").Get(ctx, &s); err != nil {
		state, _ := w.State(w.t.Context(), id)
		w.t.Fatalf("%s: %v; its state is %+v", id, err, state)
	}
	return s
}

// until waits until the workflow of a session is in a state.
func (w *world) until(id string, is func(State) bool) State {
	w.t.Helper()
	var s State
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s, err = w.State(w.t.Context(), id); err == nil && is(s) {
			return s
		}
	}
	w.t.Fatalf("%s: the state is %+v, %v", id, s, err)
	return s
}

func (w *world) log(id string) []session.Entry {
	w.t.Helper()
	s, err := session.Open(w.t.Context(), w.Store, id)
	must(w.t, err)
	return s.Log()
}

// outputs returns the number of outputs of calls in a request.
func outputs(req *api.Request) (n int) {
	for _, it := range req.InputItems() {
		if it.IsOutput() {
			n++
		}
	}
	return n
}

// worksFor returns a model that makes n calls, of the tools in turn, and then answers.
func worksFor(n int, tools ...string) agent.Model {
	return agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		done := outputs(req)
		if done >= n {
			return agenttest.Completed(item.Assistant("All is done."))
		}
		calls := []item.Item{item.Call(fmt.Sprint("c", done), tools[done%len(tools)], "{}")}
		if done%5 == 3 && done+1 < n {
			calls = append(calls, item.Call(fmt.Sprint("c", done+1), tools[(done+1)%len(tools)], "{}"))
		}
		return agenttest.Completed(calls...)
	})
}

// job is what a worker process is told.
type job struct {
	Address, Queue, Store string
	Ledger, Report        string
	Calls                 int
	Die                   int // it kills itself at this step of its store; 0 means never
}

// started starts a worker process.
func (j job) started(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(j)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = dieWithParent()
	must(t, cmd.Start())
	return cmd
}

// work is the life of a worker process. It ends only by a signal.
func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	ctx := context.Background()
	store, err := openStore(ctx, j.Store)
	if err != nil {
		return err
	}
	report, err := os.Create(j.Report)
	if err != nil {
		return err
	}
	steps, mu := 0, sync.Mutex{}
	die := func(s storetest.Step) error {
		verb, _, _ := strings.Cut(s.Name, "/")
		if verb != "append" && verb != "deliver" && verb != "lock" && verb != "unlock" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if steps++; steps == j.Die {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				_ = self.Kill()
			}
			select {}
		}
		return nil
	}
	stepped := storetest.StepStore(store, storetest.Both(storetest.Reporter(report), die)).(session.Inbox)
	ledger, err := agenttest.OpenLedger(j.Ledger)
	if err != nil {
		return err
	}
	c, err := dial(j.Address)
	if err != nil {
		return err
	}
	a := &agent.Agent{
		Model: worksFor(j.Calls, "work", "look"), Policy: agent.Policy{Allow: []string{"*"}}, Hooks: []agent.Hooks{ledger.Hooks()},
		Tools: []tool.Tool{
			ledger.Tool(tool.Must("work", "Works.", func(context.Context, struct{}) (string, error) { return "worked", nil })),
			ledger.Tool(tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }, tool.ReadOnly(), tool.Idempotent())),
		},
	}
	e := &Engine{Client: c, Store: stepped, Queue: j.Queue, Prefix: j.Queue + "/", Heartbeat: 2 * time.Second, Backoff: 50 * time.Millisecond, Attempts: 1000, StepsPerRun: 12, Recheck: -1}
	e.Open = func(ctx context.Context, id, _ string) (*Opened, error) {
		s, err := session.Open(ctx, stepped, id)
		return &Opened{Agent: a, Session: s}, err
	}
	w, err := e.Worker(ctx, worker.Options{})
	if err != nil {
		return err
	}
	return w.Run(worker.InterruptCh())
}

// runs returns the number of sessions in tests with kills.
func runs(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ANTIPHON_TEMPORAL_RUNS"), "8"))
	must(t, err)
	return n
}

func registered(name string) workflow.RegisterOptions { return workflow.RegisterOptions{Name: name} }

func registeredActivity(name string) activity.RegisterOptions {
	return activity.RegisterOptions{Name: name}
}
