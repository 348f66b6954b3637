// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// types are the values of the constants of type Type, by their names.
func types(t *testing.T) map[string]Type {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), "item.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Type{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, _ := n.(*ast.ValueSpec)
		if spec == nil {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Type" {
			value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			all[spec.Names[0].Name] = Type(value)
		}
		return false
	})
	if len(all) < 20 {
		t.Fatalf("found %d constants", len(all))
	}
	return all
}

// byEndpoint are the calls that the endpoint runs without asking, and what looks
// like the output of a call by its name and has none that a client answers.
var byEndpoint = []Type{
	TypeFileSearchCall, TypeWebSearchCall, TypeImageGenerationCall, TypeCodeInterpreterCall, TypeMCPCall, TypeProgramOutput,
}

// W12: every Type constant has a struct of its name, and every call that a client
// answers is in the table of kinds.
func TestTypesHaveStructs(t *testing.T) {
	for name, typ := range types(t) {
		v := newValue(typ)
		if v == nil {
			t.Errorf("%s has no struct: newValue and the table of call kinds do not know %q", name, typ)
			continue
		}
		if got := reflect.TypeOf(v).Elem().Name(); v.ItemType() != typ || "Type"+got != name {
			t.Errorf("%s has the struct %s of type %q", name, got, v.ItemType())
		}
		s := string(typ)
		called := strings.HasSuffix(s, "_call") || strings.HasSuffix(s, "_output") || strings.HasSuffix(s, "_request") || strings.HasSuffix(s, "_response")
		if _, there := typ.CallKind(); called && there == slices.Contains(byEndpoint, typ) {
			t.Errorf("%s is in the table of call kinds: %v; if a client answers it, it has to be", name, there)
		}
	}
}

// P1 P2: what every kind has to say, so that its calls are paired, run and
// answered.
func TestCallKinds(t *testing.T) {
	seen := map[Type]bool{}
	for _, k := range CallKinds() {
		if seen[k.Call] || seen[k.Output] || k.Input == "" || k.callID == "" || k.outputID == "" {
			t.Errorf("%s: the kind is there twice or not complete: %+v", k.Call, k)
			continue
		}
		seen[k.Call], seen[k.Output] = true, true
		if call, output := k.newCall().ItemType(), k.newOutput().ItemType(); call != k.Call || output != k.Output {
			t.Errorf("%s, %s: the structs are of %s, %s", k.Call, k.Output, call, output)
		}
		if k.Output.Answers() != k.Call || k.Call.Output() != k.Output || k.Call.Answers() != "" || k.Output.Output() != "" || k.Call.Tool() != k.Tool || k.Output.Tool() != "" {
			t.Errorf("%s: Answers, Output and Tool do not say what the table says", k.Call)
		}
		if k.Tool != "" {
			def := newTool(k.Tool)
			if search, either := def.(*ToolSearchTool); either {
				if _, ok := CallKindOf(search); ok {
					t.Error("a search that the endpoint performs is run by a client")
				}
				search.Execution = ExecutionClient
			}
			kind, ok := CallKindOf(def)
			if !ok || kind.Call != k.Call {
				t.Errorf("%s: its tool is that of %q", k.Call, kind.Call)
			}
		}
		checkAnswer(t, k)
	}
	if _, ok := CallKindOf(&UnknownTool{Raw: `{"type":"shell"}`}); ok {
		t.Error("a tool that is not known has a kind")
	}
}

func checkAnswer(t *testing.T, k CallKind) {
	t.Helper()
	call, err := ParseString(`{"type":"` + string(k.Call) + `","` + k.callID + `":"c1","execution":"client","` + k.Input + `":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	if !call.IsCall() || call.IsOutput() || call.CallID() != "c1" {
		t.Errorf("%s: IsCall %v, IsOutput %v, call id %q", call.JSON(), call.IsCall(), call.IsOutput(), call.CallID())
	}
	out, ok, err := OutputFor(call, Text("x"))
	if k.Call == TypeComputerCall {
		if ok {
			t.Error("a computer call is answered by a text")
		}
		return
	}
	if err != nil || !ok || !out.IsOutput() || out.IsCall() || !out.Answers(call) || out.Type() != k.Output {
		t.Errorf("%s is answered by %s, %v, %v", call.JSON(), out.JSON(), ok, err)
	}
	if !k.Renames {
		return
	}
	for _, it := range []Item{call, out} {
		if renamed, err := it.With("call_id", `"c2"`); err != nil || renamed.CallID() != "c2" {
			t.Errorf("%s takes no other id: %v", it.JSON(), err)
		}
	}
}
