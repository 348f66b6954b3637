// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// The names that operators see, and that other programs may use instead of an [Engine].
const (
	// SessionWorkflow is the type of the workflow of a session. Its argument is a [Task].
	SessionWorkflow = "antiphon.session"
	// StepActivity is the type of the activity that performs a step.
	StepActivity = "antiphon.step"
	// SignalWake tells the workflow to look for deliveries. It has no content.
	SignalWake = "antiphon.wake"
	// SignalRetry tells the workflow to try again what was parked. It has no content.
	SignalRetry = "antiphon.retry"
	// QueryState is the query that returns a [State].
	QueryState = "antiphon.state"
	// DefaultQueue is the task queue of an Engine that names none.
	DefaultQueue = "antiphon"
)

// Engine runs sessions as workflows. Its fields must not change while it is in use. It is
// safe for concurrent use.
type Engine struct {
	// Client connects to Temporal. It stays the caller's to close.
	Client client.Client
	// Store keeps the sessions and their inboxes. All programs must use the same one.
	Store session.Inbox
	// Open opens a session for one step, with the agent that speaks in it. Only workers
	// need it. The name of the agent is that of the workflow's [Task], or "". If what is
	// asked for is not here, its error wraps [ErrMissing].
	Open func(ctx context.Context, id, agent string) (*Opened, error)

	// Namespace is the namespace of the Client; "" means "default".
	Namespace string
	// Queue is the task queue of the workflows; "" means [DefaultQueue].
	Queue string
	// Prefix begins the ids of workflows, before the session's id; "" means "antiphon/".
	// Stores that share a namespace need different prefixes.
	Prefix string

	// Attempts bounds how often a step that fails is tried in a row, and also a run that
	// the endpoint fails. Then the session is parked. 0 means 5.
	Attempts int
	// Backoff is the time before the second attempt; it doubles with each, up to 64 times.
	// 0 means 2 seconds.
	Backoff time.Duration
	// Heartbeat is the time after which a worker that gives no sign of life has failed, so
	// that its step runs elsewhere. 0 means 20 seconds.
	Heartbeat time.Duration
	// ApprovalTime is how long a call waits for an approval, from the question in the log on.
	// After that it does not run, and the model reads that nobody answered. 0 means for ever.
	ApprovalTime time.Duration
	// StepTime bounds one step. 0 means a day.
	StepTime time.Duration
	// Recheck is the time after which a workflow that waits looks into the inbox without
	// a signal, for deliveries by programs that know nothing of Temporal. It doubles each
	// time, up to 6 hours. 0 means a minute; a negative value means never.
	Recheck time.Duration
	// StepsPerRun bounds the history of a workflow: after so many steps it continues as new.
	// It also does when the server suggests it. 0 means 300.
	StepsPerRun int

	attributes bool // the server has the search attributes
}

// Opened is a session that is open for one step.
type Opened struct {
	Agent   *agent.Agent
	Session *session.Session
	// Name is the name of the agent for the next steps, or "" if it stays. With a hash of
	// the agent's definition in it, a run goes on with the definition that it began with.
	Name string
	// Close ends what was started for the step. It may be nil.
	Close func() error
}

// ErrMissing is wrapped by errors of [Engine].Open that another attempt on the same
// worker would not cure, such as an agent that this worker does not have. The session is
// parked at once, with the error as the reason.
var ErrMissing = errors.New("this worker lacks what the session needs")

// Task is the argument of the workflow of a session.
type Task struct {
	// Session is the id of the session, and Agent a name for [Engine].Open; it may be "".
	Session string `json:"session"`
	Agent   string `json:"agent,omitzero"`
	// State and Looks continue an earlier run of the workflow. They are zero otherwise.
	State *State `json:"state,omitzero"`
	Looks int    `json:"looks,omitzero"`
}

// Status says what a workflow does.
type Status string

// The values of [Status].
const (
	Running Status = "running" // a step is under way, or about to be
	Waiting Status = "waiting" // calls wait for an approval, or for the result of a polling tool
	Parked  Status = "parked"  // the run failed; a delivery or a retry goes on with it
	Done    Status = "done"    // the run has stopped, and nothing is unread
)

// State is what a workflow knows of its session. It has no text of the conversation.
type State struct {
	Session string `json:"session"`
	Agent   string `json:"agent,omitzero"`
	Status  Status `json:"status"`
	// Why is the reason: how the last run stopped (see [agent.StopReason]), [WhyBusy],
	// [WhyStep] or [WhyEndpoint].
	Why string `json:"why,omitzero"`
	// Entry is the last entry of the log that the workflow knows. With a Why from the
	// log it is the [session.Stopped] that tells more.
	Entry int64 `json:"entry,omitzero"`
	// Problem is the error of a step that could not be performed, or says which endpoint is waited for, and why.
	Problem string `json:"problem,omitzero"`
	// Detail is the text of the log about the Why. Only [Engine.State] sets it; it is not
	// part of the workflow.
	Detail string `json:"-"`
	// Since is when the Status began.
	Since time.Time `json:"since,omitzero"`
	// Steps counts the steps, and Failed the failures in a row of the endpoint.
	Steps  int `json:"steps,omitzero"`
	Failed int `json:"failed,omitzero"`
	// Next is when the workflow looks again by itself; zero means only when it is told.
	Next time.Time `json:"next,omitzero"`
}

// Reasons of a [State] that are not from the log.
const (
	WhyBusy = "busy"        // another program writes to the session
	WhyStep = "step_failed" // a step could not be performed; Problem has the error
	// WhyEndpoint means that the session waits because an endpoint takes no request now. Problem says why.
	WhyEndpoint = "endpoint"
)

// WorkflowID returns the id of the workflow of a session.
func (e *Engine) WorkflowID(id string) string { return cmp.Or(e.Prefix, "antiphon/") + id }

// Wake tells the workflow of a session to look for deliveries, and starts it if it does
// not run. The agent is the name for [Engine].Open of a workflow that starts; a running
// one keeps its own. Wake may be called at any time and any number of times.
func (e *Engine) Wake(ctx context.Context, id, agent string) error {
	if err := e.elsewhere(ctx, id); err != nil {
		return err
	}
	_, err := e.Client.SignalWithStartWorkflow(ctx, e.WorkflowID(id), SignalWake, nil, client.StartWorkflowOptions{
		TaskQueue: e.queue(),
		// Without timeouts: a session may wait for weeks.
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, SessionWorkflow, Task{Session: id, Agent: agent})
	if err != nil {
		return fmt.Errorf("session %q: its workflow was not woken: %w", id, err)
	}
	return nil
}

// Deliver leaves a delivery in the inbox of a session and wakes its workflow. If there is
// an error and the receipt is not zero, the delivery is kept, but the workflow may not
// know: deliver again with the same key, or call [Engine.Wake].
func (e *Engine) Deliver(ctx context.Context, id, agent string, d session.Delivery) (session.Receipt, error) {
	if err := e.elsewhere(ctx, id); err != nil {
		return session.Receipt{}, err
	}
	r, err := e.Store.Deliver(ctx, id, d)
	if err != nil {
		return r, fmt.Errorf("session %q: %w", id, err)
	}
	return r, e.Wake(ctx, id, agent)
}

// Decide answers calls that wait for an approval, like [agent.Decide], and wakes the
// workflow. The answer is in the log or the inbox; the signal does not contain it.
func (e *Engine) Decide(ctx context.Context, id string, decisions ...agent.Decision) error {
	if err := e.elsewhere(ctx, id); err != nil {
		return err
	}
	s, err := session.Open(ctx, e.Store, id)
	if err != nil {
		return err
	}
	if err := agent.Decide(ctx, s, decisions...); err != nil {
		return err
	}
	return e.Wake(ctx, id, "")
}

// ErrElsewhere is wrapped by errors about sessions and stores that need what a workflow does
// not have: places of files, labels of workers, and caps of endpoints.
var ErrElsewhere = errors.New("workflows of Temporal cannot do this")

// taken is the reason of work in the store's own queue that a workflow does from now on.
const taken = "a workflow of Temporal does it"

// elsewhere returns an error if a session is work of the store's own queue: its workers know
// where its files are, and they and a workflow would take turns at it. Work that is done is
// parked, because a delivery would make it ready again.
func (e *Engine) elsewhere(ctx context.Context, id string) error {
	q, ok := e.Store.(queue.Queue)
	if !ok {
		return nil
	}
	for {
		w, err := q.Work(ctx, id)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("session %q: %w", id, err)
		case len(w.Needs) > 0:
			return fmt.Errorf("session %q: %w: it needs a worker with %s, and a workflow runs on any worker of its task queue\n  hint: antiphon work does it", id, ErrElsewhere, strings.Join(w.Needs, ", "))
		case w.State == queue.Parked:
			return nil
		case w.State != queue.Done:
			return fmt.Errorf("session %q: %w: workers of antiphon work do it (it is %s)\n  hint: antiphon work park takes it from them", id, ErrElsewhere, w.State)
		}
		if err := q.Move(ctx, w, queue.Parked, taken); !errors.Is(err, queue.ErrChanged) {
			if err != nil {
				return fmt.Errorf("session %q: %w", id, err)
			}
			return nil
		}
	}
}

// uncounted returns an error if the store limits how many runs may be at an endpoint: nobody counts those of workflows.
func (e *Engine) uncounted(ctx context.Context) error {
	limits, ok := e.Store.(queue.Limits)
	if !ok {
		return nil
	}
	list, err := limits.Endpoints(ctx)
	if err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	for _, l := range list {
		if l.Runs > 0 {
			return fmt.Errorf("temporal: %w: the store limits the runs at %s, which only workers of antiphon work count\n  hint: antiphon work limits lists the limits, and --runs 0 removes this one", ErrElsewhere, l.URL)
		}
	}
	return nil
}

// Retry goes on with a parked session, whose attempts begin anew.
func (e *Engine) Retry(ctx context.Context, id string) error {
	if err := e.Client.SignalWorkflow(ctx, e.WorkflowID(id), "", SignalRetry, nil); err != nil {
		return fmt.Errorf("session %q: %w", id, err)
	}
	return nil
}

// State asks the workflow of a session for its state, and the log for the Detail. The
// workflow may have ended, as long as Temporal keeps it. A worker must run.
func (e *Engine) State(ctx context.Context, id string) (s State, err error) {
	v, err := e.Client.QueryWorkflow(ctx, e.WorkflowID(id), "", QueryState)
	if err == nil {
		err = v.Get(&s)
	}
	if err != nil {
		return s, fmt.Errorf("session %q: %w", id, err)
	}
	if s.Entry == 0 {
		return s, nil
	}
	for entry, err := range e.Store.Load(ctx, id, s.Entry-1) {
		if err != nil {
			return s, fmt.Errorf("session %q: %w", id, err)
		}
		if stopped, ok := entry.Body.(session.Stopped); ok && entry.Seq == s.Entry && stopped.Why == s.Why {
			s.Detail = stopped.Detail
		}
		break
	}
	return s, nil
}

func (e *Engine) queue() string { return cmp.Or(e.Queue, DefaultQueue) }

// attributes are the search attributes of a workflow, all keywords.
const (
	attributeSession = "AntiphonSession"
	attributeAgent   = "AntiphonAgent"
	attributeStatus  = "AntiphonStatus"
	attributeWhy     = "AntiphonWhy"
)

// AddSearchAttributes adds the attributes AntiphonSession, AntiphonAgent, AntiphonStatus
// and AntiphonWhy to the namespace, so that people can search by them. Without them
// everything else works. It needs the rights of an operator.
func (e *Engine) AddSearchAttributes(ctx context.Context) error {
	add := map[string]enumspb.IndexedValueType{}
	for _, name := range []string{attributeSession, attributeAgent, attributeStatus, attributeWhy} {
		add[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := e.Client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: cmp.Or(e.Namespace, client.DefaultNamespace), SearchAttributes: add})
	var exist *serviceerror.AlreadyExists
	if errors.As(err, &exist) {
		err = nil
	}
	return err
}

// hasAttributes reports whether the namespace has the search attributes. A server that
// does not say has none: a workflow that sets an unknown one would stand still.
func (e *Engine) hasAttributes(ctx context.Context) bool {
	r, err := e.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: cmp.Or(e.Namespace, client.DefaultNamespace)})
	if err != nil {
		return false
	}
	for _, name := range []string{attributeSession, attributeAgent, attributeStatus, attributeWhy} {
		if r.GetCustomAttributes()[name] != enumspb.INDEXED_VALUE_TYPE_KEYWORD {
			return false
		}
	}
	return true
}

// Worker returns a worker for the workflows of sessions and their steps. With
// DeploymentOptions.UseVersioning and no default behavior, running workflows move to the
// version that is current: a run keeps its agent by the name in its [Task], not by the
// version of the worker. With [workflow.VersioningBehaviorPinned] a workflow stays with
// the version that it began on, which must be kept running until it ends.
func (e *Engine) Worker(ctx context.Context, o worker.Options) (worker.Worker, error) {
	switch {
	case e.Client == nil || e.Store == nil || e.Open == nil:
		return nil, errors.New("temporal: a worker needs an Engine with Client, Store and Open")
	case e.Attempts < 0 || e.Backoff < 0 || e.Heartbeat < 0 || e.StepTime < 0 || e.StepsPerRun < 0 || e.ApprovalTime < 0:
		return nil, errors.New("temporal: a setting of the Engine is negative")
	}
	if err := e.uncounted(ctx); err != nil {
		return nil, err
	}
	own := *e
	own.attributes = e.hasAttributes(ctx)
	if d := &o.DeploymentOptions; d.UseVersioning {
		d.DefaultVersioningBehavior = cmp.Or(d.DefaultVersioningBehavior, workflow.VersioningBehaviorAutoUpgrade)
	}
	// A step that is under way may end when the worker is told to stop.
	o.WorkerStopTimeout = cmp.Or(o.WorkerStopTimeout, time.Minute)
	w := worker.New(e.Client, e.queue(), o)
	w.RegisterWorkflowWithOptions(own.session, workflow.RegisterOptions{Name: SessionWorkflow})
	w.RegisterActivityWithOptions(own.step, activity.RegisterOptions{Name: StepActivity})
	return w, nil
}

// Tracing returns an interceptor for the Interceptors of [client.Options]. Workflows,
// activities and signals then have spans, and the spans of package tracing are inside that
// of their step.
func Tracing(provider trace.TracerProvider) (interceptor.Interceptor, error) {
	return opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: provider.Tracer("github.com/antiphon-go/antiphon/contrib/temporal")})
}
