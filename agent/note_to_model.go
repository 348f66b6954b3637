// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file tells the model what the items that answer some calls have no place for: the
// API takes only a screenshot for a computer call, and only definitions for a search for
// tools.

// The messages for the model. They are in brackets, as no person wrote them, and each line of
// the call's arguments and of the tool's text is marked, so that neither can close them and go
// on as the person.
const (
	aboutDropped = "[Your call of the tool %s has no screenshot, so it is left out of this conversation. Its arguments and its result, in lines that begin with >:\n\n> %s\n\n> %s\n]"
	aboutOutput  = "[The arguments of your call of the tool %s, and its result besides its output above, in lines that begin with >:\n\n> %s\n\n> %s\n]"
)

// What the messages say if there are no arguments, and if a tool gives no image.
const (
	noArguments  = "no arguments"
	noScreenshot = "The tool returned no image."
)

// maxQuoted bounds the arguments that a message repeats, in bytes.
const maxQuoted = 2 << 10

// marked marks the lines behind the first one, whatever a model may take for the end of a line.
var marked = strings.NewReplacer("\r\n", "\r\n> ", "\n", "\n> ", "\r", "\r> ", "\v", "\v> ", "\f", "\f> ", "\u0085", "\u0085> ", "\u2028", "\u2028> ", "\u2029", "\u2029> ")

// recordNoted records entries that end a call, and the message for the model in the same
// append. BeforeInput hooks do not see the message: AfterTool hooks have seen the text.
func (r *Run) recordNoted(call item.Item, text string, bodies ...session.Body) error {
	form := aboutOutput
	if call.Type() == item.TypeComputerCall {
		form = aboutDropped
	}
	name, with := plan.CalledBy(call)
	arguments := cmp.Or(string(with), noArguments)
	if len(arguments) > maxQuoted {
		arguments = fmt.Sprintf("%d bytes of arguments", len(arguments))
	}
	r.shown.given = append(r.shown.given, r.nextSeq()+int64(len(bodies)))
	return r.record(append(bodies, session.InputItem{Item: item.User(fmt.Sprintf(form, name, marked.Replace(arguments), marked.Replace(text))), Own: true})...)
}

// unsentText returns the text of an output for the model.
func unsentText(out *tool.Outcome) string {
	text := out.Content.Display()
	if !out.Failed && out.FoundLeftOut == 0 && text == output.NoOutput {
		return noScreenshot
	}
	return text
}
