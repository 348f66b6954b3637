// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// improvise is the behaviour without a script: call each read-only tool once after
// each user message, then report the results. Calls whose arguments are a guess wait
// until the others have returned, because their outputs may provide better
// arguments.
func improvise(f *facts, readOnly func(string) bool) []step {
	calls, guesses := pending(f, readOnly)
	if len(calls) == 0 {
		calls = guesses
	}
	if len(calls) == 0 {
		return tell(f, readOnly)
	}
	if p := f.request.ParallelToolCalls; p != nil && !*p {
		calls = calls[:1]
	}
	return calls
}

// pending returns the remaining calls: those with known arguments and the others.
// The same call is not made twice.
func pending(f *facts, readOnly func(string) bool) (known, guesses []step) {
	if f.request.ToolChoice == api.ChoiceNone || readOnly == nil {
		return nil, nil
	}
	done := map[string]bool{}
	for _, c := range f.calls {
		done[c.name+" "+c.args] = true
		if c.round == f.at.round {
			done[c.name] = true
		}
	}
	h := hintsOf(f)
	for _, t := range f.request.Tools {
		name := nameOf(t)
		if done[name] || !readOnly(name) {
			continue
		}
		st, sure := callOf(t, h)
		switch {
		case st.verb == "" || done[name+" "+st.text]:
		case sure:
			known = append(known, st)
		default:
			guesses = append(guesses, st)
		}
	}
	return known, guesses
}

// callOf makes up a call of a tool. It returns the zero step for a hosted tool and
// for one whose input has a grammar.
func callOf(t item.Tool, h *hints) (st step, known bool) {
	switch t := t.(type) {
	case *item.FunctionTool:
		args, known := arguments(t, h)
		return step{verb: verbCall, tool: t.Name, text: args}, known
	case *item.CustomTool:
		if t.Format == "" || strings.Contains(string(t.Format), `"text"`) {
			return step{verb: verbCustom, tool: t.Name, text: h.question}, true
		}
	}
	return step{}, false
}

// tell describes the rehearsal and the input since the last user message.
func tell(f *facts, readOnly func(string) bool) []step {
	var b strings.Builder
	b.WriteString("This is a rehearsal: a mock model answers, and it does not think.\n\n")
	if q := question(f.lastUser); q != "" {
		fmt.Fprintf(&b, "You said: %q%s\n", shorten(160, q), before(f.lastUser))
	}
	for i := range f.userImages {
		if img, err := imageOf(f.userImages[i]); err == nil {
			fmt.Fprintf(&b, "You showed an image: %s\n", img)
		} else {
			fmt.Fprintf(&b, "You showed an image: %s\n", shorten(160, f.userImages[i].ImageURL+f.userImages[i].FileID))
		}
	}
	var told []string
	for _, c := range f.calls {
		if c.round == f.at.round {
			told = append(told, c.tell())
		}
	}
	switch {
	case len(told) > 0:
		b.WriteString("\nThis is what the tools returned:\n\n" + strings.Join(told, "\n") + "\n")
	case len(f.request.Tools) == 0:
		b.WriteString("\nNo tools were declared.\n")
	default:
		b.WriteString("\nI called no tool: " + idle(f, readOnly) + "\n")
	}
	return []step{{verb: verbSay, text: strings.TrimSuffix(b.String(), "\n")}}
}

// idle returns the reason why no tool was called.
func idle(f *facts, readOnly func(string) bool) string {
	var names []string
	reads := false
	for _, name := range f.tools() {
		names = append(names, name)
		reads = reads || readOnly != nil && readOnly(name)
	}
	list := strings.Join(names, ", ")
	if reads {
		return "nothing new to ask of " + list + "."
	}
	if readOnly == nil {
		return "I was not told which of those declared (" + list + ") only read: a request does not say so. Set ReadOnly of the rehearsal.Server."
	}
	return "of those declared (" + list + ") none only reads."
}

// tell describes a call and its output as a list entry.
func (c fact) tell() string {
	head := fmt.Sprintf("- `%s` with `%s`", c.name, shorten(120, c.args))
	if text, failed := failure(c.output.Display()); failed {
		return head + " failed: " + shorten(300, text)
	}
	var facts []string
	if text := textOf(c.output); text != "" {
		n := len(splitLines(text))
		facts = append(facts, fmt.Sprintf("%s, %s: %q", count(n, "line"), count(len(text), "byte"), shorten(200, text)))
	}
	for _, p := range c.output.Parts {
		if img, ok := p.(*item.InputImage); ok {
			if got, err := imageOf(img); err == nil {
				facts = append(facts, "an image: "+got.String())
				continue
			}
		}
		if _, ok := p.(*item.InputText); !ok {
			facts = append(facts, item.Parts(p).Display())
		}
	}
	if len(facts) == 0 {
		return head + " returned nothing."
	}
	return head + " returned " + strings.Join(facts, "; ")
}

// String describes the image in a few words.
func (m Image) String() string {
	return fmt.Sprintf("%s, %s, SHA-256 %s", m.MediaType, count(m.Size, "byte"), m.SHA256)
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// before notes that a message has more lines than the last one, which is the only
// line that an improvised answer repeats, so that readers do not think the rest was
// lost.
func before(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) == 1 {
		return ""
	}
	return fmt.Sprintf(", the last of %d lines that begin with %q", len(lines), shorten(80, strings.TrimSpace(lines[0])))
}
