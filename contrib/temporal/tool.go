// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file makes the calls of a tool activities of their own. The step that makes a call
// starts a small workflow with one activity, on the tool's own queue, and waits for it.
// The call and its result are blobs of the session; the workflow holds their hashes. Its id
// comes from the call, so a step that goes on after a crash finds what became of it.

// The names of the workflow and the activity of a call.
const (
	CallWorkflow = "antiphon.call"
	ToolActivity = "antiphon.tool"
)

// Remote returns a tool like t whose calls are activities of their own, on a task queue
// where a worker of [Engine.ToolWorker] runs: on machines with what the tool needs. The
// step waits for them, several at a time. If the step's process ends meanwhile, the call
// goes on, and the next step takes its result; t need not be idempotent for that.
// Temporal repeats a call only if t is Idempotent and its worker failed.
//
// A call whose context ends is cancelled; its activity learns of that by its next
// heartbeat. Subagents, polling tools and the API's own tools cannot be remote. A result that only a tool in the
// process of the run can return is a failure that says so: see Found, Page and Commands of [tool.Result], and
// [tool.NotYet]. The Store must keep blobs.
func (e *Engine) Remote(t tool.Tool, queue string) (tool.Tool, error) {
	blobs, ok := e.Store.(session.Blobs)
	set, err := tool.NewSet(t)
	if err != nil {
		return nil, err
	}
	name, a := set.Names()[0], tool.AnnotationsOf(t)
	switch {
	case !ok:
		return nil, fmt.Errorf("tool %s: calls can be remote only with a store that keeps blobs", name)
	case a.Subagent:
		return nil, fmt.Errorf("tool %s: a subagent runs where its parent runs, and cannot be remote", name)
	case a.Polling:
		return nil, fmt.Errorf("tool %s: a tool that is asked again until its result is there cannot be remote", name)
	case len(set.Kinds()) > 0:
		return nil, fmt.Errorf("tool %s: one of the API's own tools cannot be remote", name)
	case queue == "":
		return nil, fmt.Errorf("tool %s: name the task queue of its calls", name)
	}
	return &remote{Tool: t, engine: e, blobs: blobs, queue: queue, annotations: a}, nil
}

type remote struct {
	tool.Tool
	engine      *Engine
	blobs       session.Blobs
	queue       string
	annotations tool.Annotations
}

// Annotations implements [tool.Annotated].
func (r *remote) Annotations() tool.Annotations {
	a := r.annotations
	a.Inquirer = r
	return a
}

// callInput is the argument of the workflow and of the activity of a call.
type callInput struct {
	Session  string        `json:"session"`
	Number   int           `json:"number"`
	Call     string        `json:"call"` // the hash of a blob
	Beat     time.Duration `json:"heartbeat"`
	Time     time.Duration `json:"time"`
	Attempts int           `json:"attempts"`
}

// id returns the id of the workflow of a call. It holds when the session began: a session that is begun
// anew under the id of a deleted one has calls with the same numbers, and Temporal still knows those of the other.
func (r *remote) id(ctx context.Context, c tool.Call) (string, error) {
	for e, err := range r.engine.Store.Load(ctx, c.Session, 0) {
		if err != nil {
			return "", err
		}
		began := sha256.Sum256(e.Time.UTC().AppendFormat(nil, time.RFC3339Nano))
		return r.earlierID(c) + "#" + hex.EncodeToString(began[:4]), nil
	}
	return "", fmt.Errorf("session %q has no entries", c.Session)
}

// earlierID is the id that earlier versions gave to the workflow.
func (r *remote) earlierID(c tool.Call) string {
	return fmt.Sprintf("%s#%d", r.engine.WorkflowID(c.Session), c.Number)
}

// Run implements [tool.Tool].
func (r *remote) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if c.Session == "" || c.Number == 0 {
		return tool.Result{}, errors.New("a remote tool works only in a session of a store")
	}
	id, err := r.id(ctx, c)
	if err != nil {
		return tool.Result{}, fmt.Errorf("the call was not started: %w", err)
	}
	hash, err := put(ctx, r.blobs, c.Session, keptCall{c, []byte(c.Arguments)})
	if err != nil {
		return tool.Result{}, err
	}
	set := r.engine.settings()
	in := callInput{Session: c.Session, Number: c.Number, Call: hash, Beat: set.Heartbeat, Time: cmp.Or(r.annotations.Timeout, set.StepTime), Attempts: 1}
	if r.annotations.Idempotent {
		in.Attempts = set.Attempts
	}
	run, err := r.engine.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: r.queue,
		// A call that is under way, or that has succeeded, is never started again.
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, CallWorkflow, in)
	if err != nil {
		return tool.Result{}, fmt.Errorf("the call was not started: %w", err)
	}
	res, _, err := r.result(ctx, run)
	if ctx.Err() != nil {
		r.cancel(run)
	}
	return res, err
}

// cancel ends a call whose context has ended.
func (r *remote) cancel(run client.WorkflowRun) {
	ctx, done := context.WithTimeout(context.Background(), tool.Grace)
	defer done()
	// If it fails, the call goes on; the model is told in any case that it was
	// interrupted.
	_ = r.engine.Client.CancelWorkflow(ctx, run.GetID(), run.GetRunID())
}

// result waits for the result of a call. An unknown outcome is a failure without an error,
// because a call with an error may be repeated.
func (r *remote) result(ctx context.Context, run client.WorkflowRun) (res tool.Result, fate tool.Fate, err error) {
	hash := ""
	err = run.Get(ctx, &hash)
	if ctx.Err() != nil {
		return res, tool.FateUnknown, ctx.Err()
	}
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) && failed.Type() == toolFailed {
		err = failed.Details(&hash)
	}
	if err != nil {
		return tool.Result{Error: plan.OutcomeUnknown}, tool.FateUnknown, nil
	}
	var kept keptResult
	if err := get(ctx, r.blobs, hash, &kept); err != nil {
		return res, tool.FateUnknown, err
	}
	res, err = kept.result()
	return res, tool.FateDone, err
}

// Inquire implements [tool.Inquirer].
func (r *remote) Inquire(ctx context.Context, c tool.Call) (tool.Result, tool.Fate, error) {
	id, err := r.id(ctx, c)
	if err != nil {
		return tool.Result{}, tool.FateUnknown, err
	}
	_, err = r.engine.Client.DescribeWorkflow(ctx, id, "")
	var absent *serviceerror.NotFound
	if errors.As(err, &absent) { // an earlier version may have started it
		id = r.earlierID(c)
		_, err = r.engine.Client.DescribeWorkflow(ctx, id, "")
	}
	if errors.As(err, &absent) {
		return tool.Result{}, r.never(ctx, c), nil
	}
	if err != nil {
		return tool.Result{}, tool.FateUnknown, err
	}
	res, fate, err := r.result(ctx, r.engine.Client.GetWorkflow(ctx, id, ""))
	if fate == tool.FateDone && err != nil { // it failed, and the model reads how
		res.Fail(err.Error())
		err = nil
	}
	return res, fate, err
}

// never reports whether a call that Temporal does not know was never started. Temporal
// forgets what has ended after a while, so the call must be younger than that.
func (r *remote) never(ctx context.Context, c tool.Call) tool.Fate {
	namespace, err := r.engine.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: cmp.Or(r.engine.Namespace, client.DefaultNamespace)})
	if err != nil {
		return tool.FateUnknown
	}
	var began time.Time
	for e, err := range r.engine.Store.Load(ctx, c.Session, 0) {
		if err != nil {
			return tool.FateUnknown
		}
		if b, ok := e.Body.(session.CallStarted); ok && b.CallID == c.ID {
			began = e.Time
		}
	}
	// Half of the time, because clocks differ.
	if keeps := namespace.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); began.IsZero() || time.Since(began) > keeps/2 {
		return tool.FateUnknown
	}
	return tool.FateNever
}

// ToolWorker returns a worker for the calls of tools that are remote elsewhere. The tools
// are the ones that do the work, not those that [Engine.Remote] returned.
func (e *Engine) ToolWorker(queue string, o worker.Options, tools ...tool.Tool) (worker.Worker, error) {
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	blobs, ok := e.Store.(session.Blobs)
	if !ok {
		return nil, errors.New("temporal: calls can be remote only with a store that keeps blobs")
	}
	if d := &o.DeploymentOptions; d.UseVersioning {
		d.DefaultVersioningBehavior = cmp.Or(d.DefaultVersioningBehavior, workflow.VersioningBehaviorAutoUpgrade)
	}
	o.WorkerStopTimeout = cmp.Or(o.WorkerStopTimeout, time.Minute)
	w := worker.New(e.Client, queue, o)
	w.RegisterWorkflowWithOptions(callWorkflow, workflow.RegisterOptions{Name: CallWorkflow})
	w.RegisterActivityWithOptions((&toolWorker{set, blobs}).run, activity.RegisterOptions{Name: ToolActivity})
	return w, nil
}

// callWorkflow is the workflow of a call.
func callWorkflow(ctx workflow.Context, in callInput) (hash string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: in.Time, HeartbeatTimeout: in.Beat, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: int32(in.Attempts)},
	})
	err = workflow.ExecuteActivity(ctx, ToolActivity, in).Get(ctx, &hash)
	return hash, err
}

type toolWorker struct {
	tools *tool.Set
	blobs session.Blobs
}

// toolFailed is the type of the error of a tool that returned one. Its detail is the hash
// of the result.
const toolFailed = "tool"

// run is the activity of a call.
func (w *toolWorker) run(ctx context.Context, in callInput) (hash string, err error) {
	defer beat(ctx)()
	var c keptCall
	if err := get(ctx, w.blobs, in.Call, &c); err != nil {
		return "", failure(err)
	}
	c.Call.Arguments = string(c.Bytes)
	t, ok := w.tools.Lookup(c.Name)
	var res keptResult
	if ok {
		res = keep(invoke(ctx, t, c.Call))
	} else {
		res.Failure = fmt.Sprintf("the worker of this task queue has no tool %s; it has %s", c.Name, strings.Join(w.tools.Names(), ", "))
	}
	if hash, err = put(context.WithoutCancel(ctx), w.blobs, in.Session, res); err != nil {
		return "", failure(err)
	}
	if res.Failure != "" {
		return "", temporal.NewNonRetryableApplicationError("the tool returned an error", toolFailed, nil, hash)
	}
	return hash, nil
}

// invoke runs a tool. A panic is an error of the tool, and its value stays out of the
// history.
func invoke(ctx context.Context, t tool.Tool, c tool.Call) (res tool.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("the tool panicked")
			activity.GetLogger(ctx).Error("a tool panicked", "tool", c.Name, "value", v)
		}
	}()
	return t.Run(ctx, c)
}

// keptCall and keptResult are the forms of calls and results in blobs. What may be any
// bytes is kept as bytes.
type keptCall struct {
	tool.Call
	Bytes []byte // the arguments
}

type keptResult struct {
	Text     []byte
	Branch   item.Branch // of the parts, if there are any
	Parts    string
	Error    string
	Failure  string // the error that the tool returned
	Unsent   []output.Unsent
	Limit    *output.Limit
	Repairs  int
	HasParts bool
}

// keep returns the form of a result.
func keep(res tool.Result, err error) keptResult {
	k := keptResult{Text: []byte(res.Text), Error: res.Error, Unsent: res.Unsent, Limit: res.Limit, Repairs: res.Repairs}
	if err != nil {
		k.Failure = err.Error()
	}
	if what := unkept(res, err); what != "" {
		k.Failure = what + ", which a remote tool cannot: let the workers of the sessions have the tool itself"
	}
	if res.Long != nil {
		more, err := io.ReadAll(res.Long)
		k.Text = append(k.Text, more...)
		if err != nil {
			k.Failure = cmp.Or(k.Failure, err.Error())
		}
	}
	if len(res.Parts) > 0 {
		var err error
		if k.Branch, k.Parts, err = item.Parts(res.Parts...).Persist(); err != nil {
			k.Failure = cmp.Or(k.Failure, err.Error())
		} else {
			k.HasParts = true
		}
	}
	return k
}

// unkept says what a result has that only a tool in the process of the run can return, or returns "".
func unkept(res tool.Result, err error) string {
	var later *tool.NotYet
	switch {
	case errors.As(err, &later):
		return "the tool asks to be called again later"
	case res.Page != nil:
		return "the tool returned a page of a stored output"
	case len(res.Found) > 0:
		return "the tool returned the definitions of tools"
	case len(res.Commands) > 0:
		return "the tool returned the results of a shell_call"
	}
	return ""
}

// result returns the result of the form.
func (k *keptResult) result() (tool.Result, error) {
	res := tool.Result{Text: string(k.Text), Error: k.Error, Unsent: k.Unsent, Limit: k.Limit, Repairs: k.Repairs}
	if k.HasParts {
		content, err := item.Restore(k.Branch, k.Parts)
		if err != nil {
			return res, err
		}
		res.Parts = content.Parts
	}
	if k.Failure != "" {
		return res, errors.New(k.Failure)
	}
	return res, nil
}

// put keeps a value as a blob of a session.
func put(ctx context.Context, in session.Blobs, id string, v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	hash, err := in.PutBlob(ctx, id, data)
	return hex.EncodeToString(hash[:]), err
}

// get reads a value that put has kept.
func get(ctx context.Context, from session.Blobs, hash string, v any) error {
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(session.Hash{}) {
		return fmt.Errorf("%q is not the hash of a blob", hash)
	}
	blob, size, err := from.OpenBlob(ctx, session.Hash(raw))
	if err != nil {
		return err
	}
	defer blob.Close()
	data, err := io.ReadAll(io.NewSectionReader(blob, 0, size))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
