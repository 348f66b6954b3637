// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	tree "text/template/parse"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// A stranger may have written the script, and it is played without a question. So a template ends
// soon, and fills no memory.
const (
	mostText = 16 << 20  // bytes of a text
	mostWork = 256 << 20 // bytes that the functions of a template read and write
	oneStep  = 1 << 10   // what a call and a round of a range cost besides
)

var errTooLong = missing("the text is longer than %d MiB, or takes too long to make", mostText>>20)

// bound limits what a parsed template can do. Only lists can be ranged over, and a template has no
// others, which could use each other without end.
func bound(t *template.Template) error {
	if len(t.Templates()) > 1 {
		return missing("define and block are not available")
	}
	if t.Tree == nil { // of an empty text
		return nil
	}
	var err error
	walk(t.Root, func(n tree.Node) {
		switch n := n.(type) {
		case *tree.TemplateNode:
			err = missing("template is not available")
		case *tree.RangeNode:
			listed := tree.NewIdentifier("listed").SetTree(t.Tree).SetPos(n.Pos)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &tree.CommandNode{NodeType: tree.NodeCommand, Pos: n.Pos, Args: []tree.Node{listed}})
		}
	})
	return err
}

// walk shows the nodes of a template that hold others, or use a template.
func walk(n tree.Node, show func(tree.Node)) {
	both := func(b *tree.BranchNode) {
		walk(b.List, show)
		if b.ElseList != nil {
			walk(b.ElseList, show)
		}
	}
	switch n := n.(type) {
	case *tree.ListNode:
		for _, inner := range n.Nodes {
			walk(inner, show)
		}
	case *tree.IfNode:
		both(&n.BranchNode)
	case *tree.WithNode:
		both(&n.BranchNode)
	case *tree.RangeNode:
		show(n)
		both(&n.BranchNode)
	case *tree.TemplateNode:
		show(n)
	}
}

// bounded returns the functions, with those of package template that make texts, so that all calls of an
// execution together read and write a limited amount.
func bounded(functions template.FuncMap) template.FuncMap {
	all := template.FuncMap{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": formatted,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"listed": listed,
	}
	maps.Copy(all, functions)
	left := mostWork
	spend := func(values []reflect.Value) {
		if left -= oneStep + size(values); left < 0 {
			panic(errTooLong) // the template turns it into its error
		}
	}
	for name, f := range all {
		v := reflect.ValueOf(f)
		call := v.Call
		if v.Type().IsVariadic() {
			call = v.CallSlice
		}
		all[name] = reflect.MakeFunc(v.Type(), func(arguments []reflect.Value) []reflect.Value {
			spend(arguments)
			results := call(arguments)
			spend(results)
			return results
		}).Interface()
	}
	return all
}

// size returns about how many bytes values have.
func size(values []reflect.Value) (n int) {
	for _, v := range values {
		for v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.String:
			n += v.Len()
		case reflect.Slice:
			for i := range v.Len() {
				n += oneStep + size([]reflect.Value{v.Index(i)})
			}
		}
	}
	return n
}

// listed returns a value to range over, unless it is a number, which may be large.
func listed(list any) (any, error) {
	if kind := reflect.ValueOf(list).Kind(); kind != reflect.Slice {
		return nil, missing("range needs a list, such as tools")
	}
	return list, nil
}

// width matches a number in a format, or one that an argument gives.
var width = lazyregexp.New(`\d+|\*`)

// formatted is fmt.Sprintf without huge widths, and without long arguments that are used again and again.
func formatted(format string, arguments ...any) (string, error) {
	widest := 0
	for _, w := range width.FindAllString(format, -1) {
		n, err := strconv.Atoi(w)
		if err != nil || n > mostText {
			n = mostText
		}
		widest = max(widest, n)
	}
	for _, a := range arguments {
		widest = max(widest, size([]reflect.Value{reflect.ValueOf(a)}))
	}
	if strings.Count(format, "%")*widest > mostText {
		return "", errTooLong
	}
	return fmt.Sprintf(format, arguments...), nil
}

// limited is a text that does not become too long.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > mostText {
		return 0, errTooLong
	}
	return l.Builder.Write(p)
}
