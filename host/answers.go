// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Answers are approval decisions that were written down in advance, one JSON object
// per line. Each is used once, by the first call that it matches. Answers are safe
// for concurrent use.
type Answers struct {
	file string
	as   string // the front end's name for the setting that they come from
	mu   sync.Mutex
	list []answer
}

// answer is one line. A missing field matches everything.
type answer struct {
	CallID    string         `json:"call_id"`
	Tool      string         `json:"tool"` // a name or a glob
	Allow     *bool          `json:"allow"`
	Reason    string         `json:"reason"`
	Arguments jsontext.Value `json:"arguments"` // an object, or a text for a custom tool
	Remember  *session.Rule  `json:"remember"`

	line int // of the file
	used bool
}

// mostAnswers is how many bytes a file of answers may have.
const mostAnswers = 64 << 20

// ReadAnswers reads a file of answers, such as {"tool":"apply_patch","allow":true}.
// as is the front end's name for the setting that names the file: it is the
// beginning of the error for an unreadable file, and the log records it with each
// answer.
func ReadAnswers(file, as string) (*Answers, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", as, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostAnswers+1))
	if err == nil && len(data) > mostAnswers {
		err = fmt.Errorf("%s has more than %d MiB", file, mostAnswers>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", as, err)
	}
	a := &Answers{file: file, as: as}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var one answer
		if err := json.Unmarshal(line, &one, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%s:%d: %s", file, n, unreadable(err))
		}
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		one.line = n
		a.list = append(a.list, one)
	}
	return a, lines.Err()
}

// unreadable describes what is wrong with a line, without internal terms of the
// program.
func unreadable(err error) string {
	var form *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &form) && errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("unknown member %q; a line has call_id, tool, allow, reason, arguments and remember, and remember has verdict, tool, member, prefix, under, arguments and definition", form.JSONPointer.LastToken())
	case errors.As(err, &form) && form.JSONPointer == "":
		return fmt.Sprintf("want an object such as {\"tool\":\"apply_patch\",\"allow\":true}, not %s", kindName(form.JSONKind))
	case errors.As(err, &form):
		return fmt.Sprintf("%q cannot be %s", form.JSONPointer.LastToken(), kindName(form.JSONKind))
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is not JSON: %v (at byte %d)", syntax.Err, syntax.ByteOffset)
	}
	return err.Error()
}

// kindName describes a kind of JSON value for people.
func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "that"
}

// check returns an error for an answer that cannot decide a call.
func (a *answer) check() error {
	switch {
	case a.Allow == nil:
		return errors.New(`"allow" is missing: true or false`)
	case a.CallID == "" && a.Tool == "":
		return errors.New(`it matches no call: give "call_id", or "tool" with a name or a glob`)
	}
	if err := plan.CheckPatterns(a.Tool); err != nil || a.Remember == nil {
		return err
	}
	return plan.CheckRules(*a.Remember)
}

// approve returns an [agent.Approver] that uses the first matching unused answer. If
// there is none, it calls next, which may be nil. elsewhere means that the calls are those of
// another file's agent.
func (a *Answers) approve(elsewhere bool, next agent.Approver) agent.Approver {
	return func(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		if v, ok := a.take(q.Call, elsewhere); ok {
			return v, nil
		}
		if next != nil {
			return next(ctx, q)
		}
		return agent.Decision{}, agent.ErrNobody
	}
}

// take returns the first unused answer that matches the call, and marks it as used.
func (a *Answers) take(call tool.Call, elsewhere bool) (agent.Decision, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.list {
		one := &a.list[i]
		if one.used || !one.fits(call, elsewhere) {
			continue
		}
		one.used = true
		v := agent.Decision{Allow: *one.Allow, Reason: Refusal(one.Reason), Remember: one.Remember, By: a.file, Decided: session.DeciderPerson, From: fmt.Sprintf("%s, line %d", a.as, one.line), Arguments: string(one.Arguments)}
		if call.Custom && one.Arguments.Kind() == '"' {
			_ = json.Unmarshal(one.Arguments, &v.Arguments) // it was decoded before
		}
		return v, true
	}
	return agent.Decision{}, false
}

// tellUnused reports the answers that no call has used, with the reason. Answers
// that the log already records are not reported, because the same file may be given
// with each run of a conversation.
func (a *Answers) tellUnused(front *FrontEnd, sess *session.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.list {
		if why := one.unused(sess); why != "" && !one.used {
			front.notify(NoticeUnused, "%s:%d: the answer was not used: %s", a.file, one.line, why)
		}
	}
}

// unused returns the reason why no call of a session has used an answer, or "".
func (a *answer) unused(sess *session.Session) string {
	if a.CallID == "" {
		return fmt.Sprintf("no call of %s is waiting", a.Tool)
	}
	why := fmt.Sprintf("no call has the id %q", a.CallID)
	for e := range sess.Entries() {
		switch b := e.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() && b.Item.CallID() == a.CallID {
				why = "the call needs no approval, or it calls another tool"
			}
		case session.Approval:
			switch {
			case b.CallID != a.CallID:
			case b.Allowed == *a.Allow:
				return ""
			case b.Allowed:
				why = "the call has been allowed before"
			default:
				why = "the call has been refused before"
			}
		}
	}
	return why
}

// fits reports whether the answer matches the call. As with [Config].Rules, the name of a tool
// means the tool of the file that the configuration names: in other files an answer allows calls
// of built-in tools by their names, of all tools by "*", and the call that it names.
func (a *answer) fits(call tool.Call, elsewhere bool) bool {
	if a.CallID != "" && a.CallID != call.ID {
		return false
	}
	if elsewhere && *a.Allow && a.CallID == "" && a.Tool != "*" && !builtin(call.Name) {
		return false
	}
	ok, _ := path.Match(a.Tool, call.Name)
	return a.Tool == "" || ok
}

// decide records answers to the calls that an earlier run left waiting, and gives them.
func (a *Answers) decide(ctx context.Context, sess *session.Session, record func(context.Context, ...audit.Record) error) error {
	wanted, err := agent.PendingApprovals(ctx, sess)
	if err != nil {
		return err
	}
	var decisions []agent.Decision
	var records []audit.Record
	for _, p := range wanted {
		call := tool.Call{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Custom: p.Custom}
		v, ok := a.take(call, p.Session != sess.ID())
		if !ok {
			continue
		}
		v.Session, v.Number, v.CallID = p.Session, p.Number, p.CallID
		decisions, records = append(decisions, v), append(records, answered(p.Session, "", call, v)...)
	}
	if len(records) > 0 {
		if err := record(ctx, records...); err != nil {
			return err
		}
	}
	return agent.Decide(ctx, sess, decisions...)
}

// Refusal returns the text that the model reads for a person's reason; "" stands for
// the default text.
func Refusal(reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("The call was refused by the person in charge: %s. Nothing was done.", strings.TrimSuffix(reason, "."))
}
