// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/trust"
)

// mostAbout is how many characters a row says about a call, without the numbers of lines.
const mostAbout = 100

// AboutCall says what a call works on: the path of a read, the lines of a change, the command line, the
// task of a subagent. Of other calls these are the arguments. Hide removes secrets, before anything is cut.
func AboutCall(arguments string, hide func(string) string) string {
	short := func(text string) string { return Visible(Shorten(hide(text), mostAbout)) }
	added, removed := 0, 0
	for _, l := range changeOf(arguments) {
		switch l.colour {
		case kindColours[kindAdded]:
			added++
		case kindColours[kindRemoved]:
			removed++
		}
	}
	changes := ""
	if added+removed > 0 {
		changes = fmt.Sprintf("+%d −%d", added, removed)
	}
	args, err := item.Parse([]byte(arguments))
	if err != nil {
		if files := patchedFiles(arguments); files != "" {
			return strings.TrimSpace(short(files) + " " + changes)
		}
		return short(arguments)
	}
	if content, _ := args.Member("content"); changes == "" {
		if text, isText := content.Unquote(); isText && text != "" {
			changes = fmt.Sprintf("+%d", strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1)
		}
	}
	for _, member := range []string{"path", "command", "task", "prompt", "pattern", "url", "query", "patch", "input"} {
		value, has := args.Member(member)
		if !has {
			continue
		}
		text, isText := value.Unquote()
		switch words, isList := elementsOf(value); {
		case isText && patchedFiles(text) != "":
			text = patchedFiles(text)
		case isText && text != "":
		case isList && member == "command":
			var line []string
			for _, word := range words {
				if one, ok := word.Unquote(); ok {
					line = append(line, one)
				}
			}
			text = trust.CommandLine(line...)
		default:
			continue
		}
		return strings.TrimSpace(short(text) + " " + changes)
	}
	if arguments == "{}" {
		return ""
	}
	return short(arguments)
}

// patchedFiles returns the files that a patch names.
func patchedFiles(text string) string {
	if !strings.HasPrefix(text, patchStart) {
		return ""
	}
	var files []string
	for line := range strings.Lines(text) {
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				files = append(files, name)
			}
		}
	}
	return strings.Join(files, ", ")
}
