// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// callView is the folded form of a call.
type callView struct {
	entryView
	Name    string
	Preview string
	State   badge
	Took    string
}

// call shows a call with its arguments, its events, the sessions it started, and its
// output.
func (p *printer) call(c *call, it item.Item, v entryView, within []string) {
	v.Who, v.Class, v.Kind = "Call", "call", "call"
	state := c.state()
	view := callView{entryView: v, State: state}
	view.Problem = v.Problem || state.Class == "bad" || state.Class == "warn"
	if len(c.outputs) > 0 && !c.begun.IsZero() && !c.outputs[0].row.time.IsZero() {
		view.Took = tookText(c.outputs[0].row.time.Sub(c.begun))
	}
	a := p.asked(it)
	view.Name, view.Preview = p.line(a.name, 80), a.preview
	p.show("call-open", view)
	a.show()
	if c.arguments != "" {
		p.show("label", "The tool was given instead:")
		p.arguments(c.arguments)
	}
	for _, e := range c.events {
		p.show("event", map[string]any{"Class": e.class, "Title": p.line(e.title, 120), "Text": markup(p.hide(e.text)), "Number": e.seq})
	}
	for i, id := range c.session {
		prefix := v.ID + "."
		if i > 0 {
			prefix += strconv.Itoa(i) + "."
		}
		p.nested(id, prefix, v.Level, within)
	}
	for _, o := range c.outputs {
		p.answer(o, v.ID)
	}
	p.show("call-close", nil)
}

// answer shows the output of a call.
func (p *printer) answer(o callOutput, callID string) {
	prefix := strings.TrimRight(callID, "0123456789")
	seq := strconv.FormatInt(o.row.seq, 10)
	badges := o.row.notes
	if o.edited {
		badges = append(slices.Clip(badges), badge{"", "changed by a hook"})
	}
	p.show("answer-open", map[string]any{"ID": prefix + seq, "Number": seq, "Badges": badges})
	it, err := o.row.item.Whole()
	if err != nil {
		p.err = err
		return
	}
	p.output(it)
	for _, id := range KeptIn(session.Entry{Body: session.CallOutput{Item: it}}) {
		p.kept(id)
	}
	p.show("answer-close", nil)
}

// asked is the content of a call.
type asked struct {
	name    string
	preview string
	show    func()
}

// asked reads a call of any type.
func (p *printer) asked(it item.Item) asked {
	v, err := it.Decode()
	if err != nil {
		return p.askedJSON(it)
	}
	switch v := v.(type) {
	case *item.FunctionCall:
		return asked{nameIn(v.Namespace, v.Name), p.preview(v.Arguments), func() { p.arguments(v.Arguments) }}
	case *item.MCPApprovalRequest:
		return asked{nameIn(v.ServerLabel, v.Name), p.preview(v.Arguments), func() { p.arguments(v.Arguments) }}
	case *item.CustomToolCall:
		return asked{nameIn(v.Namespace, v.Name), p.inputPreview(v.Input), func() { p.verbatim("Input", v.Input) }}
	case *item.ApplyPatchCall:
		if v.Operation == nil {
			break
		}
		o := v.Operation
		return asked{it.Type().Tool(), p.line(words(o.Type)+" "+o.Path, 100), func() { p.patch(o) }}
	case *item.ShellCall:
		if v.Action == nil {
			break
		}
		text := strings.Join(v.Action.Commands, "\n")
		return asked{it.Type().Tool(), p.line(text, 100), func() { p.verbatim("Commands", text) }}
	case *item.LocalShellCall:
		if v.Action == nil {
			break
		}
		text := strings.Join(v.Action.Command, " ")
		return asked{it.Type().Tool(), p.line(text, 100), func() { p.verbatim("Command", text) }}
	}
	return p.askedJSON(it)
}

func nameIn(space, name string) string {
	if space != "" {
		return space + "." + name
	}
	return name
}

// inputPreview returns the first informative line of an input.
func (p *printer) inputPreview(s string) string {
	for line := range strings.Lines(s) {
		if rest, ok := strings.CutPrefix(line, "*** "); ok && strings.Contains(rest, " File: ") {
			return p.line(rest, 100)
		}
	}
	return p.line(firstLine(s), 100)
}

func (p *printer) askedJSON(it item.Item) asked {
	return asked{cmp.Or(it.Name(), it.Type().Tool(), words(string(it.Type()))), "", func() { p.value("", it.JSON()) }}
}

// arguments shows the arguments of a function: as a list of names and values if they
// are an object, and otherwise unchanged.
func (p *printer) arguments(s string) {
	if list, ok := p.members(s); ok {
		p.show("members", list)
		return
	}
	if strings.TrimSpace(s) == "{}" {
		p.show("label", "no arguments")
		return
	}
	p.verbatim("Arguments", s)
}

// patch shows a change of one file.
func (p *printer) patch(o *item.PatchOperation) {
	d := differ{out: new(strings.Builder), patch: true}
	for line := range strings.Lines(p.hide(o.Diff)) {
		d.line(line)
	}
	d.flush()
	p.show("pre", pre{Label: p.line(words(o.Type)+" "+o.Path, 300), Text: template.HTML(d.out.String())})
}

// output shows an output of any type.
func (p *printer) output(it item.Item) {
	v, err := it.Decode()
	if err != nil {
		p.value("", it.JSON())
		return
	}
	switch v := v.(type) {
	case *item.FunctionCallOutput:
		p.result(v.Output)
	case *item.CustomToolCallOutput:
		p.result(v.Output)
	case *item.ApplyPatchCallOutput:
		p.verbatim("", v.Output)
	case *item.LocalShellCallOutput:
		p.verbatim("", v.Output)
	case *item.ShellCallOutput:
		for _, o := range v.Output {
			p.shell(o)
		}
	case *item.ComputerCallOutput:
		if v.Output != nil {
			p.part(v.Output)
		}
	default:
		p.value("", it.JSON())
	}
}

func (p *printer) shell(o item.ShellOutput) {
	if o.Stdout != "" {
		p.verbatim("Output", o.Stdout)
	}
	if o.Stderr != "" {
		p.verbatim("Error output", o.Stderr)
	}
	if o.Outcome != nil {
		text := words(o.Outcome.Type)
		if o.Outcome.ExitCode != nil {
			text += " " + strconv.FormatInt(*o.Outcome.ExitCode, 10)
		}
		p.show("label", p.line(text, 60))
	}
}

// result shows the output of a tool, with its texts verbatim.
func (p *printer) result(c item.Content) {
	if c.IsText() {
		p.verbatim("", c.Text)
		return
	}
	if len(c.Parts) == 0 {
		p.show("empty", nil)
	}
	for _, part := range c.Parts {
		if s, ok := partText(part); ok {
			p.verbatim("", s)
			continue
		}
		p.part(part)
	}
}

// hosted shows a call that the endpoint answered itself, and items that are neither
// messages nor calls.
func (p *printer) hosted(it item.Item, v entryView) {
	view := callView{entryView: v, Name: p.line(words(string(it.Type())), 80)}
	switch s := it.Status(); s {
	case "":
	case item.StatusCompleted:
		view.State = badge{"ok", stateOK}
	case item.StatusFailed:
		view.State, view.Problem = badge{"bad", stateFailed}, true
	default:
		view.State = badge{"warn", p.line(words(s), 40)}
	}
	decoded, err := it.Decode()
	if err != nil {
		decoded = &item.Unknown{Raw: item.JSON(it.JSON())}
	}
	show := func() { p.value("", it.JSON()) }
	switch d := decoded.(type) {
	case *item.MCPCall:
		view.Name, view.Preview = p.line(nameIn(d.ServerLabel, d.Name), 80), p.preview(d.Arguments)
		problem, _ := it.Member("error") // of any form
		failed := problem != "" && problem != "null"
		if failed {
			view.State, view.Problem = badge{"bad", stateFailed}, true
		}
		show = func() {
			if p.arguments(d.Arguments); d.Output != "" || !failed {
				p.verbatim("Output", d.Output)
			}
			if failed {
				p.value("Error", string(problem))
			}
		}
	case *item.CodeInterpreterCall:
		view.Preview = p.line(firstLine(d.Code), 100)
		show = func() { p.verbatim("Code", d.Code); p.codeOutputs(d.Outputs) }
	case *item.ImageGenerationCall:
		if d.Result != "" {
			show = func() { p.generated(it, d.Result) }
		}
	}
	if v.Class == "call" && view.State.Text != "" {
		view.Who = "Call"
	}
	p.show("call-open", view)
	show()
	p.show("call-close", nil)
}

// generated shows an image that the endpoint made, and what else the call says, such as the
// prompt that the image was made from.
func (p *printer) generated(it item.Item, payload string) {
	format, _ := it.Member("output_format")
	name, _ := format.Unquote()
	p.show("image", p.picture("data:image/"+cmp.Or(name, "png")+";base64,"+payload, "", ""))
	if rest := it.Without("type", "id", "status", "result"); rest.JSON() != "{}" {
		p.value("", rest.JSON())
	}
}

func (p *printer) codeOutputs(list []item.CodeOutput) {
	for _, o := range list {
		if o.Logs != "" {
			p.verbatim("Output", o.Logs)
		}
		if o.URL != "" {
			p.show("image", p.picture(o.URL, "", ""))
		}
	}
}
