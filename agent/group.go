// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Group runs several agents, or one agent with several inputs, at the same time. The
// zero value has no budget. A Group may be used by several goroutines at once.
type Group struct {
	// Budget bounds the total usage of all tasks, in addition to the budgets of the
	// agents and of the context. A task that it does not allow another turn stops
	// with the reason. It may be nil.
	Budget *Budget
	// Parallel bounds the number of concurrent tasks: 0 means 8. The others wait, and
	// start in order.
	Parallel int
	// StopOnError cancels all other tasks when one returns an error. If it is false,
	// the others are not affected. A limit is not an error: see [Result].Why.
	StopOnError bool
}

// Task is one run of a [Group].
type Task struct {
	Agent *Agent
	// Session is the session of the run; nil means a new one in memory. Two tasks
	// must not have the same session: the later one is refused with an error.
	Session *session.Session
	Input   []item.Item
	// Cancel cancels this task and no other when it is closed, such as the Done
	// channel of a context. It may be nil.
	Cancel <-chan struct{}
}

// TaskResult is the outcome of a [Task].
type TaskResult struct {
	Session *session.Session
	// Result and Err are those of [Agent.Run]. Result is never nil. For a task that was
	// cancelled before it started, its Why is [StopCancelled], and nothing was recorded.
	*Result
	Err error
}

// ErrOtherTask is wrapped by the error of a task that was cancelled because another one
// failed: see [Group].StopOnError.
var ErrOtherTask = errors.New("another task failed")

var errTaskCancelled = errors.New("the task was cancelled")

// Run runs the tasks and returns their results, in the order of the tasks. It returns
// when all have ended. If ctx ends, the tasks that run are cancelled and the others do
// not start.
func (g *Group) Run(ctx context.Context, tasks ...Task) []TaskResult {
	if g == nil {
		g = new(Group)
	}
	if g.Budget != nil {
		shared := g.Budget
		if outer, _ := ctx.Value(budgetKey{}).(*Budget); outer != nil {
			shared = &Budget{around: []*Budget{shared, outer}}
		}
		ctx = WithBudget(ctx, shared)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	owners := map[*session.Session]int{}
	for i, t := range tasks {
		if _, ok := owners[t.Session]; !ok && t.Session != nil {
			owners[t.Session] = i
		}
	}
	results := make([]TaskResult, len(tasks))
	free := make(chan struct{}, max(1, cmp.Or(g.Parallel, defaultParallel)))
	var panicked sync.Map
	var all sync.WaitGroup
	for i := range tasks {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			defer func() {
				if v := recover(); v != nil {
					panicked.Store(i, v)
					cancel(fmt.Errorf("%w: task %d panicked", ErrOtherTask, i+1))
				}
			}()
			if first, ok := owners[tasks[i].Session]; ok && first != i {
				err := fmt.Errorf("agent: task %d has the session of task %d", i+1, first+1)
				results[i] = TaskResult{tasks[i].Session, new(Result), err}
			} else {
				results[i] = tasks[i].run(ctx)
			}
			if err := results[i].Err; err != nil && g.StopOnError {
				cancel(fmt.Errorf("%w: task %d: %w", ErrOtherTask, i+1, err))
			}
		})
	}
	all.Wait()
	// A panic of a Model belongs to the caller, as in Agent.Run.
	panicked.Range(func(_, v any) bool { panic(v) })
	return results
}

// run runs one task.
func (t *Task) run(ctx context.Context) TaskResult {
	s := t.Session
	if s == nil {
		s = session.New()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t.Cancel != nil {
		select {
		case <-t.Cancel:
			cancel(errTaskCancelled)
		default:
		}
		ended := make(chan struct{})
		defer func() { <-ended }()
		defer cancel(nil)
		go func() {
			defer close(ended)
			select {
			case <-t.Cancel:
				cancel(errTaskCancelled)
			case <-ctx.Done():
			}
		}()
	}
	if ctx.Err() != nil {
		err := endOfContext(ctx)
		return TaskResult{s, &Result{Why: StopCancelled, Detail: err.Error()}, err}
	}
	res, err := t.Agent.Run(ctx, s, t.Input...)
	return TaskResult{s, res, err}
}
