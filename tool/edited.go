// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

// noted puts a remark in front of the output of a call whose arguments somebody
// changed: the model has to know that the output is not of what it asked for.
func (c Call) noted(res Result, why Failure) Result {
	if !c.Edited {
		return res
	}
	arguments, _ := Sanitize(c.Arguments)
	if why == BadArguments { // else the error blames the model for them
		res.Error = "The arguments of this call were changed before it could run, and what they were changed to does not fit: " +
			shorten(arguments, maxProblemText) + "\n\n" + res.Error
		return res
	}
	note := "Note: the arguments of this call were changed before it ran, to: " + arguments
	switch {
	case res.Text != "" || res.Long != nil:
		note += "\n\n" + res.Text
	case res.Error == "" && len(res.Parts) == 0:
		note += "\n\n" + NoOutput
	}
	if res.page != nil {
		res.page = res.page.behind(len(note) - len(res.Text))
	}
	res.Text = note
	return res
}
