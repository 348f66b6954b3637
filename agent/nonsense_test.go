// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// What is here calls all that the packages export with zero values, nils, typed
// nils and other nonsense. The answer is an error or a sensible value; never a
// panic, but where a doc comment promises one. G8

// nonsense are values to choose arguments from, beside the zero value of each
// type. Of pointer types, nil and a new zero value are tried anyhow.
var nonsense = []any{
	"", "\xff\xfe", "x", -1, 1, int64(-1), item.Item{}, item.User("x"),
	(*item.Message)(nil), new(item.Message), (*item.Unknown)(nil), new(item.Unknown), (*item.InputImage)(nil), new(item.InputImage),
	(*item.FunctionTool)(nil), new(item.FunctionTool), (*api.CompletedEvent)(nil), new(api.CompletedEvent),
	new(session.Memory), (*session.Memory)(nil), session.InputItem{}, session.CallOutput{}, (*nothing)(nil), nothing{},
	bytes.NewReader(nil), []item.Part{nil, nil}, []item.Part{(*item.InputImage)(nil)}, []item.Item{{}}, []item.Tool{nil, (*item.FunctionTool)(nil)},
	[]tool.Tool{nil, (*nothing)(nil)}, []session.Body{nil, session.InputItem{}}, []agent.Decision{{}}, []session.Rule{{}},
}

// nothing implements interfaces and does nothing.
type nothing struct{}

func (nothing) Definition() item.Tool { return nil }
func (nothing) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Parts: []item.Part{nil, (*item.InputImage)(nil)}}, nil
}
func (nothing) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Parts: []item.Part{nil, (*item.InputImage)(nil)}}, nil
}

// poker calls functions with nonsense.
type poker struct {
	t     *testing.T
	ctx   context.Context
	calls int
}

var contextType = reflect.TypeFor[context.Context]()

// choices are arguments of a type.
func (p *poker) choices(typ reflect.Type) []reflect.Value {
	if typ == contextType {
		return []reflect.Value{reflect.ValueOf(&p.ctx).Elem()}
	}
	list := []reflect.Value{reflect.Zero(typ)}
	if typ.Kind() == reflect.Pointer {
		list = append(list, reflect.New(typ.Elem()))
	}
	for _, v := range nonsense {
		if v := reflect.ValueOf(v); v.Type().AssignableTo(typ) {
			list = append(list, v)
		} else if v.CanConvert(typ) && v.Kind() == typ.Kind() && typ.Kind() != reflect.Pointer {
			list = append(list, v.Convert(typ))
		}
	}
	return list
}

// poke calls a function with each choice of each argument, the others zero.
func (p *poker) poke(name string, f reflect.Value) {
	typ := f.Type()
	n := typ.NumIn()
	variadic := 0
	if typ.IsVariadic() {
		variadic = 1
	}
	zero := make([]reflect.Value, n)
	all := make([][]reflect.Value, n)
	for i := range n {
		all[i] = p.choices(typ.In(i))
		zero[i] = all[i][0]
	}
	p.call(name, f, zero, variadic > 0)
	if n > 0 {
		last := make([]reflect.Value, n)
		for i := range n {
			last[i] = all[i][len(all[i])-1]
		}
		p.call(name, f, last, variadic > 0)
	}
	for i := range n {
		for _, v := range all[i][1:] {
			args := append([]reflect.Value(nil), zero...)
			args[i] = v
			p.call(name, f, args, variadic > 0)
		}
	}
}

func (p *poker) call(name string, f reflect.Value, args []reflect.Value, variadic bool) {
	p.calls++
	defer func() {
		if v := recover(); v != nil {
			var shown []string
			for _, a := range args {
				shown = append(shown, fmt.Sprintf("%T(%.60v)", a.Interface(), plain(a)))
			}
			p.t.Errorf("%s(%s) panicked: %v\n%s", name, strings.Join(shown, ", "), v, where(debug.Stack()))
		}
	}()
	var out []reflect.Value
	if variadic {
		out = f.CallSlice(args)
	} else {
		out = f.Call(args)
	}
	for _, v := range out {
		if v.Kind() == reflect.Func && !v.IsNil() && v.Type().NumIn() == 1 && v.Type().In(0).Kind() == reflect.Func {
			n := 0
			yield := reflect.MakeFunc(v.Type().In(0), func([]reflect.Value) []reflect.Value {
				n++
				return []reflect.Value{reflect.ValueOf(n < 3)}
			})
			v.Call([]reflect.Value{yield})
		}
	}
}

func plain(v reflect.Value) (s string) {
	defer func() { _ = recover() }()
	return fmt.Sprintf("%v", v.Interface())
}

// where is the place of a panic.
func where(stack []byte) string {
	var lines []string
	for line := range strings.Lines(string(stack)) {
		if strings.Contains(line, "antiphon") && strings.Contains(line, ".go:") && !strings.Contains(line, "nonsense_test") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines[:min(len(lines), 4)], "\n")
}

// methods pokes all methods of a value, but those that are named.
func (p *poker) methods(v any, except ...string) {
	r := reflect.ValueOf(v)
	for i := range r.NumMethod() {
		name := r.Type().Method(i).Name
		skip := false
		for _, e := range except {
			skip = skip || e == name
		}
		if !skip {
			p.poke(fmt.Sprintf("(%T)(%.40s).%s", v, plain(r), name), r.Method(i))
		}
	}
}

func newPoker(t *testing.T) *poker {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that nothing is asked of anybody
	return &poker{t: t, ctx: ctx}
}

// exported returns the names of the functions that a package exports, without
// those that are generic.
func exported(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && f.Type.TypeParams == nil && !strings.HasPrefix(f.Name.Name, "Must") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// functions pokes the functions of a package, and complains of those that the
// table lacks.
func (p *poker) functions(dir string, table map[string]any) {
	for _, name := range exported(p.t, dir) {
		f, ok := table[name]
		if !ok {
			p.t.Errorf("%s.%s is not in the table", dir, name)
			continue
		}
		if f != nil {
			p.poke(dir+"."+name, reflect.ValueOf(f))
		}
	}
}

func TestNonsenseItem(t *testing.T) {
	p := newPoker(t)
	p.functions("../item", map[string]any{
		"AnnotationList":    item.AnnotationList,
		"Assistant":         item.Assistant,
		"Call":              item.Call,
		"CallKindOf":        item.CallKindOf,
		"CallKinds":         item.CallKinds,
		"CutDataURI":        item.CutDataURI,
		"Developer":         item.Developer,
		"FormatGrammar":     item.FormatGrammar,
		"HasHeld":           item.HasHeld,
		"ListBody":          item.ListBody,
		"LogprobList":       item.LogprobList,
		"New":               item.New,
		"NewHolder":         item.NewHolder,
		"NewList":           item.NewList,
		"Output":            item.Output,
		"OutputFor":         item.OutputFor,
		"Parse":             item.Parse,
		"ParseCustomFormat": item.ParseCustomFormat,
		"ParseFilter":       item.ParseFilter,
		"MissingOption":     item.MissingOption,
		"ParseList":         item.ParseList,
		"ParseString":       item.ParseString,
		"ParseTool":         item.ParseTool,
		"ToolJSON":          item.ToolJSON,
		"Parts":             item.Parts,
		"Quote":             item.Quote,
		"Restore":           item.Restore,
		"SetMaxSize":        nil, // it is for the whole process,
		"ShellExit":         item.ShellExit,
		"ShellTimeout":      item.ShellTimeout,
		"ShowHeld":          item.ShowHeld,
		"System":            item.System,
		"Text":              item.Text,
		"TextBody":          item.TextBody,
		"User":              item.User,
		"UserParts":         item.UserParts,
	})
	p.functions("../api", map[string]any{
		"AppendClientEvent":       api.AppendClientEvent,
		"ChooseAllowed":           api.ChooseAllowed,
		"ChooseCustom":            api.ChooseCustom,
		"ChooseFunction":          api.ChooseFunction,
		"ChooseHosted":            api.ChooseHosted,
		"ChooseMCP":               api.ChooseMCP,
		"ConversationByID":        api.ConversationByID,
		"ConversationID":          api.ConversationID,
		"CountOf":                 api.CountOf,
		"Metadata":                api.Metadata,
		"NewEvent":                api.NewEvent,
		"ParseAddItems":           api.ParseAddItems,
		"ParseClientEvent":        api.ParseClientEvent,
		"ParseCompactRequest":     api.ParseCompactRequest,
		"ParseCompacted":          api.ParseCompacted,
		"ParseConversation":       api.ParseConversation,
		"ParseCreateConversation": api.ParseCreateConversation,
		"ParseDeleted":            api.ParseDeleted,
		"ParseErrorBody":          api.ParseErrorBody,
		"ParseEvent":              api.ParseEvent,
		"ParseEventString":        api.ParseEventString,
		"ParseItemPage":           api.ParseItemPage,
		"ParseRequest":            api.ParseRequest,
		"ParseResponse":           api.ParseResponse,
		"ParseResponseString":     api.ParseResponseString,
		"ParseTextConfig":         api.ParseTextConfig,
		"ParseTokenCount":         api.ParseTokenCount,
		"ParseTokenCountRequest":  api.ParseTokenCountRequest,
		"ParseToolChoice":         api.ParseToolChoice,
		"ParseUpdateConversation": api.ParseUpdateConversation,
		"ParseUsage":              api.ParseUsage,
		"TextAsSchema":            api.TextAsSchema,
		"WithNotes":               api.WithNotes,
		"NotesOf":                 api.NotesOf,
	})
	source, err := os.ReadFile("../item/item.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Type = "([a-z_]+)"`).FindAllSubmatch(source, -1) {
		it, err := item.ParseString(`{"type":"` + string(m[1]) + `"}`)
		if err != nil {
			t.Fatal(err)
		}
		p.methods(it)
		if v, err := it.Decode(); err == nil {
			p.value(v)
		}
	}
	for _, v := range []any{
		new(item.List), new(api.Request), new(api.CompactRequest),
		new(item.InputText), new(item.InputImage), new(item.InputFile), new(item.Refusal), new(item.UnknownPart),
		new(item.FunctionTool), new(item.CustomTool), new(item.WebSearchTool), new(item.MCPTool), new(item.MCPApproval), new(api.ToolChoice),
		new(api.CompletedEvent), new(api.UnknownEvent), new(api.TextConfig), new(api.Usage),
	} {
		p.value(v)
	}
	// Of these nil is not a value that anything hides: a program that calls them on
	// nil has itself to blame, as with any pointer of Go.
	for _, v := range []any{new(api.Response), new(api.Accumulator), new(api.EventDecoder), new(item.OutputText), &api.APIError{}} {
		p.methods(v)
	}
	p.methods(item.Item{})
	p.methods(api.Event{})
	p.methods(item.Content{})
	p.methods(item.Parts(nil, (*item.InputImage)(nil)))
	p.methods((*item.List)(nil), "Append", "AppendList")
}

func TestNonsenseSession(t *testing.T) {
	p := newPoker(t)
	p.functions("../session", map[string]any{
		"AppendEntry":   session.AppendEntry,
		"Caller":        session.Caller,
		"CheckDelivery": session.CheckDelivery, "CheckKey": session.CheckKey, "OwnKey": session.OwnKey, "AppendDelivery": session.AppendDelivery, "ParseDelivery": session.ParseDelivery,
		"KeyHash": session.KeyHash, "Takes": session.Takes,
		"CheckSeqs":     session.CheckSeqs,
		"Collapses":     session.Collapses,
		"BadCursor":     session.BadCursor,
		"CheckLabels":   session.CheckLabels,
		"AllTaken":      session.AllTaken,
		"DeleteIfTaken": session.DeleteIfTaken,
		"Conflict":      session.Conflict,
		"Consents":      session.Consents,
		"DecidedBy":     session.DecidedBy,
		"Explain":       session.Explain,
		"Fingerprint":   session.Fingerprint,
		"IsBreakNote":   session.IsBreakNote,
		"Kind":          session.Kind,
		"Marker":        session.Marker,
		"SubsessionID":  session.SubsessionID,
		"ParentOf":      session.ParentOf,
		"New":           session.New,
		"NoEntry":       session.NoEntry,
		"Open":          session.Open,
		"OpenLocked":    session.OpenLocked,
		"ParseEntry":    session.ParseEntry,
		"Revocations":   session.Revocations,
		"Spare":         session.Spare,
		"SearchText":    session.SearchText,
		"TitleOf":       session.TitleOf,
		"Unsaid":        session.Unsaid,
		"WithoutCancel": session.WithoutCancel,
	})
	p.methods(session.New())
	p.methods(new(session.Session))
	p.methods(new(session.Memory))
	p.methods(new(session.View))
	p.methods(new(session.Split))
}

func TestNonsenseTool(t *testing.T) {
	p := newPoker(t)
	p.functions("../tool", map[string]any{
		"Approval":       tool.Approval,
		"CheckImage":     output.CheckImage,
		"Callers":        tool.Callers,
		"CheckName":      tool.CheckName,
		"Deferred":       tool.Deferred,
		"EarlyStart":     tool.EarlyStart,
		"Envelope":       output.Envelope,
		"Enveloped":      tool.Enveloped,
		"EstimateTokens": output.EstimateTokens,
		"Exclusive":      tool.Exclusive,
		"File":           output.File,
		"FromContext":    tool.FromContext,
		"Idempotent":     tool.Idempotent,
		"Image":          output.Image,
		"MaxOutput":      tool.MaxOutput,
		"Subagent":       tool.Subagent,
		"Namespace":      tool.Namespace,
		"NewSet":         tool.NewSet,
		"Parameters":     tool.Parameters,
		"Polling":        tool.Polling,
		"ParseLimit":     output.ParseLimit,
		"ParseSchema":    tool.ParseSchema,
		"RateLimit":      tool.RateLimit,
		"Retries":        tool.Retries,
		"WithPatience":   tool.WithPatience,
		"WithStart":      tool.WithStart,
		"WithPlace":      tool.WithPlace,
		"CheckPlace":     tool.CheckPlace,
		"WithWait":       tool.WithWait,
		"Raw":            tool.Raw,
		"Computer":       tool.Computer,
		"Search":         tool.Search,
		"ReadOnly":       tool.ReadOnly,
		"ReadOutput":     tool.ReadOutput,
		"Inquire":        tool.Inquire,
		"ReadKey":        tool.ReadKey,
		"Sanitize":       output.Sanitize,
		"SniffFile":      output.SniffFile,
		"SniffImage":     output.SniffImage,
		"SniffPicture":   output.SniffPicture,
		"StoredIDs":      output.StoredIDs,
		"Strict":         tool.Strict,
		"Timeout":        tool.Timeout,
		"AnnotationsOf":  tool.AnnotationsOf,
		"UsualOutput":    tool.UsualOutput, "From": tool.From, "InFolders": tool.InFolders,
	})
	set, err := tool.NewSet(echo())
	if err != nil {
		t.Fatal(err)
	}
	p.methods(set)
	p.methods(new(tool.Set))
	p.methods((*tool.Set)(nil))
	p.methods(output.Policy{})
	p.methods(new(output.Policy))
	p.methods(echo())
	p.methods(new(tool.Outcome))
	p.methods(new(tool.Schema))
	p.methods((*tool.Schema)(nil))
	if schema, err := tool.NewSchema[map[string]int](); err == nil {
		p.methods(schema)
	}
	p.methods(new(agent.AnswerError))
}

func TestNonsensePlan(t *testing.T) {
	p := newPoker(t)
	p.functions("plan", map[string]any{
		"CalledBy":      plan.CalledBy,
		"Warnings":      plan.Warnings,
		"EndpointCall":  plan.EndpointCall,
		"CheckPatterns": plan.CheckPatterns,
		"CheckRules":    plan.CheckRules,
		"ContentOf":     plan.ContentOf,
		"Counted":       plan.Counted,
		"Estimate":      plan.Estimate,
		"EstimateText":  plan.EstimateText,
		"Hosted":        plan.Hosted,
		"Marshal":       plan.Marshal,
		"Plus":          plan.Plus,
		"ServerOf":      plan.ServerOf,
		"FailedOutput":  plan.FailedOutput,
		"Suggest":       plan.Suggest,
		"ToolName":      plan.ToolName,
		"Unmarshal":     plan.Unmarshal,
		"Within":        plan.Within,
	})
	p.methods(new(plan.State))
	p.methods(new(plan.ContextBudget))
	p.methods(new(plan.Policy))
}

func TestNonsenseAgent(t *testing.T) {
	p := newPoker(t)
	p.functions(".", map[string]any{
		"AccountOf":        agent.AccountOf,
		"AppendEvent":      agent.AppendEvent,
		"AsTool":           agent.AsTool,
		"ParseEvent":       agent.ParseEvent,
		"Watch":            agent.Watch,
		"BlobOutputs":      agent.BlobOutputs,
		"CallOf":           agent.CallOf,
		"AskedAt":          agent.AskedAt,
		"Decide":           agent.Decide,
		"ForkTool":         agent.ForkTool,
		"Recall":           agent.Recall,
		"Restore":          agent.Restore,
		"Shortened":        agent.Shortened,
		"PendingApprovals": agent.PendingApprovals,
		"WithBudget":       agent.WithBudget,
	})
	p.methods(&agent.Agent{Model: new(memory)})
	p.methods(new(agent.Agent))
	p.methods(agent.BlobOutputs(nil, ""))
	p.methods(new(agent.Budget))
	p.methods(new(agent.ApprovalRequest))
	p.methods(new(agent.Usage))
	p.methods(new(agent.Account))
	p.methods((*agent.Budget)(nil))
	p.methods((&agent.Agent{Model: new(memory)}).Start(nil))
	for _, s := range []*session.Session{nil, new(session.Session)} {
		if _, err := (&agent.Agent{Model: new(memory)}).Run(t.Context(), s, item.User("x")); err == nil {
			t.Error("a run without a session succeeds")
		}
	}
	for _, m := range []agent.Model{nil, (*memory)(nil), (*responses.Client)(nil), (*responses.Chain)(nil)} {
		if _, err := (&agent.Agent{Model: m}).Run(t.Context(), session.New(), item.User("x")); err == nil {
			t.Error("a run without a model succeeds")
		}
	}
}

func TestNonsenseResponses(t *testing.T) {
	p := newPoker(t)
	p.functions("../responses", map[string]any{})
	client := &responses.Client{BaseURL: "http://127.0.0.1:1"}
	p.methods(client)
	p.methods((*responses.Client)(nil))
	p.methods(&responses.Chain{Client: client})
	p.methods(new(responses.Chain))
}

func TestNonsenseEndpoint(t *testing.T) {
	p := newPoker(t)
	p.functions("../endpoint", map[string]any{
		"AnswerOf":      endpoint.AnswerOf,
		"BudgetFrom":    endpoint.BudgetFrom,
		"ByName":        endpoint.ByName,
		"CacheKey":      endpoint.CacheKey,
		"Detect":        endpoint.Detect,
		"DetectServer":  endpoint.DetectServer,
		"FillMeta":      endpoint.FillMeta,
		"FromAPI":       endpoint.FromAPI,
		"FromEvent":     endpoint.FromEvent,
		"FromResponse":  endpoint.FromResponse,
		"FromTransport": endpoint.FromTransport,
		"GateFrom":      endpoint.GateFrom,
		"LoadProfiles":  endpoint.LoadProfiles,
		"LookupModel":   endpoint.LookupModel,
		"LooksLikeHTML": endpoint.LooksLikeHTML,
		"NearestEffort": endpoint.NearestEffort,
		"NewKey":        endpoint.NewKey,
		"OutputOnly":    endpoint.OutputOnly,
		"RegisterAPI":   nil, // it is for the whole process
		"SecretName":    endpoint.SecretName,
		"ShowURL":       endpoint.ShowURL,
		"URL":           endpoint.URL,
		"WindowIn":      endpoint.WindowIn,
		"WithBudget":    endpoint.WithBudget,
		"WithGate":      endpoint.WithGate,
		"WithMeta":      endpoint.WithMeta,
	})
	for _, v := range []any{
		new(endpoint.Retry), new(endpoint.Budget), (*endpoint.Budget)(nil), new(endpoint.Error), new(endpoint.RefusedError),
		new(endpoint.Profile), new(endpoint.Table), (*endpoint.Table)(nil), new(endpoint.Meta), (*endpoint.Meta)(nil), endpoint.Model{}, endpoint.About{},
	} {
		p.methods(v)
	}
	p.methods(endpoint.Key{}, "Format") // fmt calls it, and never with nil
}

func TestNonsenseCompletions(t *testing.T) {
	p := newPoker(t)
	p.functions("../completions", map[string]any{
		"AppendRequest":  completions.AppendRequest,
		"AppendResponse": completions.AppendResponse,
		"FromItems":      completions.FromItems,
		"OptionsFor":     completions.OptionsFor,
		"ParseRequest":   completions.ParseRequest,
		"ParseResponse":  completions.ParseResponse,
		"ToItems":        completions.ToItems,
	})
	p.methods(&completions.Client{BaseURL: "http://127.0.0.1:1"})
	p.methods((*completions.Client)(nil))
	p.methods(new(completions.Decoder))
	p.methods(completions.Dialect{})
	p.functions("../dialect", map[string]any{
		"ByName":   dialect.ByName,
		"Names":    dialect.Names,
		"Open":     dialect.Open,
		"Register": nil, // it is for the whole process
	})
	p.methods(dialect.Client{})
	p.methods(new(dialect.Config))
}

// What means nothing is an error, and not something that goes wrong later. G8
func TestNonsenseIsRefused(t *testing.T) {
	s := session.New()
	for name, err := range map[string]error{
		"an item of nothing":             failed(item.New(nil)),
		"an item of a nil":               failed(item.New((*item.Message)(nil))),
		"a part that is a nil":           failed(item.UserParts((*item.InputImage)(nil))),
		"a message without parts":        failed(item.UserParts()),
		"an image of nothing":            failed(item.UserParts(&item.InputImage{})),
		"an output of no call":           failed(item.Output("", item.Text("x"))),
		"an output with a nil":           failed(item.Output("c", item.Parts((*item.InputImage)(nil)))),
		"the zero Item":                  failed(item.Item{}.Decode()),
		"the zero Event":                 failed(api.Event{}.Decode()),
		"an entry of nothing":            failed(s.Append(t.Context(), nil)),
		"an entry without an item":       failed(s.Append(t.Context(), session.InputItem{})),
		"an output without an item":      failed(s.Append(t.Context(), session.CallOutput{CallID: "c"})),
		"a store that is nil":            failed(session.Open(t.Context(), nil, "x")),
		"a store that is a nil":          failed(session.Open(t.Context(), (*session.Memory)(nil), "x")),
		"a session without an id":        failed(session.Open(t.Context(), new(session.Memory), "")),
		"a session that is not open":     failed(new(session.Session).Append(t.Context(), session.RunStarted{})),
		"a request that is nil":          failed((&responses.Client{BaseURL: "http://127.0.0.1:1"}).Create(t.Context(), nil)),
		"a count of a nil request":       failed((&responses.Client{BaseURL: "http://127.0.0.1:1"}).CountTokens(t.Context(), nil)),
		"a compaction of a nil request":  failed((&responses.Client{BaseURL: "http://127.0.0.1:1"}).Compact(t.Context(), nil)),
		"a decision about a nil session": agent.Decide(t.Context(), nil),
		"an account of a nil session":    failed(agent.AccountOf(t.Context(), nil)),
		"a chat of a nil request":        failed((&completions.Client{BaseURL: "http://127.0.0.1:1"}).Create(t.Context(), nil)),
		"a request by a client of nil":   failed((*completions.Client)(nil).Create(t.Context(), new(api.Request))),
		"a request by a nil client":      failed((*responses.Client)(nil).Create(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))})),
		"a stored response of nil":       (*responses.Client)(nil).Delete(t.Context(), "resp_1"),
		"a request without a dialect":    failed(dialect.Client{Config: new(dialect.Config)}.Create(t.Context(), new(api.Request))),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if len(s.Log()) > 0 {
		t.Errorf("it was stored: %v", s.Log())
	}
	set, err := tool.NewSet(tool.Must("parts", "Returns nothing.", func(context.Context, textInput) ([]item.Part, error) { return []item.Part{nil, nil}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if out := set.Invoke(t.Context(), tool.Call{ID: "c", Name: "parts", Arguments: `{"text":""}`}, output.Policy{}); !out.Failed {
		t.Errorf("a tool that returns parts that are nil: %+v", out)
	}
}

func failed(_ any, err error) error { return err }

// value pokes a value and a nil of its type.
func (p *poker) value(v any) {
	p.methods(v)
	p.methods(reflect.Zero(reflect.TypeOf(v)).Interface())
}
