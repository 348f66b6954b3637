// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"maps"
	"strings"
)

// This file is the table of keys: what each one does, and how people read about it. Keys act by it, /keys and the tables of
// docs/terminal.md are made from it, and a binding may name only what is in it.

// Key is a row of the list of keys. Its texts are Markdown.
type Key struct {
	Keys string // such as Ctrl-A E, Home
	Does string // in a line
	More string // what the documentation says besides; it may be empty
}

// keyRow is a row of keys that act in the usual view and in full screen.
type keyRow struct {
	Key
	// on has what keys do. They report false if they mean something else now, such as what they do to the draft.
	on map[string]func(*Terminal) bool
	// draft has what keys do to the draft.
	draft map[string]func(*composer)
	// apart says that only some terminals send these keys.
	apart bool
}

// keyRows is the table. Two keys that are pressed one after the other have a blank between them.
var keyRows = []keyRow{
	{Key: Key{"Enter", "sends; while the agent works: queues, and Up takes it back into an empty draft", ""},
		on: acts{"enter": always((*Terminal).enter)}},
	{Key: Key{"Ctrl-J, Alt-Enter", "a new line", ""},
		draft: edits{"ctrl+j": (*composer).newLine, "alt+enter": (*composer).newLine}},
	{Key: Key{"Alt-S", "while the agent works: says it at once", "So does `/steer TEXT`. It is part of the next request, with the files that it names. A command, a shell line, or a prompt with a file that you are asked about is queued, as with Enter"},
		on: acts{"alt+s": always((*Terminal).sendNow)}},
	{Key: Key{"Shift-Enter, Ctrl-Enter", "a new line; as Alt-S", "Only in terminals that can tell them from Enter"}, apart: true,
		on: acts{"ctrl+enter": always((*Terminal).sendNow)}, draft: edits{"shift+enter": (*composer).newLine}},
	{Key: Key{"Esc", "closes a list below the draft, or else stops the work and keeps all; twice while nothing works: goes back", "Queued prompts come back into the draft. A queued command or shell line comes back only if it is alone; otherwise Up has it. While nothing works, Esc answers a question with an empty line, and Esc twice does what `/back` does"},
		on: acts{"esc": always((*Terminal).escapeKey)}},
	{Key: Key{"Ctrl-C", "clears the draft; twice in an empty one: stops the work and leaves", ""},
		on: acts{"ctrl+c": always((*Terminal).interrupt)}},
	{Key: Key{"Ctrl-D", "leaves, if the draft is empty; else deletes the next character", ""},
		on: acts{"ctrl+d": (*Terminal).departIfEmpty}, draft: edits{"ctrl+d": (*composer).deleteNext}},
	{Key: Key{"Ctrl-Z", "suspends the program", ""},
		on: acts{"ctrl+z": always((*Terminal).suspend)}},
	{Key: Key{"Tab", "completes a command and its argument, or the name of a file, session or subagent behind `@`", ""},
		on: acts{"tab": always((*Terminal).tab)}},
	{Key: Key{"Shift-Tab", "goes through the approval modes: ask, edits, plan", "See [Questions](#questions)"},
		on: acts{"shift+tab": always((*Terminal).nextMode)}},
	{Key: Key{"`!` at the beginning", "runs a command line in the sandbox; its output goes with your next message", "See [Shell lines](#shell-lines)"}},
	{Key: Key{"Up, Down, Ctrl-P N", "move in the draft, then through what you said before", ""},
		on: acts{"up": (*Terminal).takeQueued}, draft: edits{"up": (*composer).up, "ctrl+p": (*composer).up, "down": (*composer).down, "ctrl+n": (*composer).down}},
	{Key: Key{"Ctrl-R", "searches in what you said; again: in older ones; Esc gives the draft back", ""},
		on: acts{"ctrl+r": always((*Terminal).findKey)}},
	{Key: Key{"Ctrl-V", "pastes the clipboard, a picture too", "A picture goes with the prompt. It needs `wl-paste`, `xclip`, or `pbpaste` and `pngpaste`"},
		on: acts{"ctrl+v": always((*Terminal).pasteClipboard)}},
	{Key: Key{"Ctrl-X Ctrl-E", "opens the draft in `$EDITOR`", "`$VISUAL` comes first. The agent works on meanwhile, and Ctrl-C there means the editor"},
		on: acts{"ctrl+x ctrl+e": always((*Terminal).edit)}},
	{Key: Key{"Ctrl-X Ctrl-F", "the full screen, and back", ""},
		on: acts{"ctrl+x ctrl+f": always(func(t *Terminal) { t.wantFull = !t.wantFull })}},
	{Key: Key{"Ctrl-X Ctrl-O", "in a wide full screen: hides or shows the pane with the last calls", ""},
		on: acts{"ctrl+x ctrl+o": always(func(t *Terminal) { t.noSide = !t.noSide })}},
	{Key: Key{"PgUp, PgDn, Ctrl-Home, Ctrl-End, the mouse wheel", "in full screen: scroll", "In an empty draft, Home and End do what Ctrl-Home and Ctrl-End do"},
		on: acts{"pgup": (*Terminal).pageUp, "pgdown": (*Terminal).pageDown, "ctrl+home": (*Terminal).toTop, "ctrl+end": (*Terminal).toEnd}},
	{Key: Key{"Ctrl-O, Ctrl-G", "look into the last call, the last subagent: arguments, output, why it ran", "See [Calls and subagents](#calls-and-subagents)"},
		on: acts{"ctrl+o": always(func(t *Terminal) { t.look(false) }), "ctrl+g": always(func(t *Terminal) { t.look(true) })}},
	{Key: Key{"Ctrl-L", "draws the live part again", ""},
		on: acts{"ctrl+l": always((*Terminal).drawAnew)}},
	{Key: Key{"Left, Right, Ctrl-B F", "move by a character", ""},
		draft: edits{"left": (*composer).left, "ctrl+b": (*composer).left, "right": (*composer).right, "ctrl+f": (*composer).right}},
	{Key: Key{"Alt-B F, Alt-Left, Alt-Right, Ctrl-Left, Ctrl-Right", "move by a word", ""},
		draft: edits{"alt+b": (*composer).leftWord, "alt+left": (*composer).leftWord, "ctrl+left": (*composer).leftWord, "alt+f": (*composer).rightWord, "alt+right": (*composer).rightWord, "ctrl+right": (*composer).rightWord}},
	{Key: Key{"Home, End, Ctrl-A E", "move to the beginning and the end of the line", ""},
		on:    acts{"home": func(t *Terminal) bool { return t.compose.text == "" && t.toTop() }, "end": func(t *Terminal) bool { return t.compose.text == "" && t.toEnd() }},
		draft: edits{"home": (*composer).toLineBegin, "ctrl+a": (*composer).toLineBegin, "end": (*composer).toLineEnd, "ctrl+e": (*composer).toLineEnd}},
	{Key: Key{"Backspace, Ctrl-H, Delete", "delete the character before, the next one", ""},
		draft: edits{"backspace": (*composer).deleteBefore, "ctrl+h": (*composer).deleteBefore, "delete": (*composer).deleteNext}},
	{Key: Key{"Ctrl-K U W, Alt-D, Alt-Backspace", "delete to the end of the line, to its beginning, a word, the next word, a word", ""},
		draft: edits{"ctrl+k": (*composer).killToEnd, "ctrl+u": (*composer).killToBegin, "ctrl+w": (*composer).killRegion, "alt+d": (*composer).killNextWord, "alt+backspace": (*composer).killWord}},
	{Key: Key{"Ctrl-Y, Alt-Y", "put back what was deleted; right after that: what was deleted before it", ""},
		draft: edits{"ctrl+y": (*composer).yank, "alt+y": (*composer).yankOlder}},
	{Key: Key{"Ctrl-Space, Alt-W", "sets a mark, from which Ctrl-W deletes to the cursor; copies from there", ""},
		draft: edits{"ctrl+space": func(c *composer) { c.mark = c.at + 1 }, "alt+w": (*composer).copyRegion}},
	{Key: Key{"Ctrl-_, Ctrl-/, Alt-_", "undo, undo, redo", ""},
		draft: edits{"ctrl+_": (*composer).takeBackOne, "ctrl+/": (*composer).takeBackOne, "alt+_": func(c *composer) { c.takeBack(&c.redo, &c.undo) }}},
}

// viRows are the keys of vi.
var viRows = []Key{
	{"`Esc`", "from inserting to commands; there it does what it does without vi", ""},
	{"`h j k l w b e W B E 0 ^ $ gg G`, `f F t T ; ,`, `%`, `{ }`, counts", "move; `j` and `k` also go through what you said before", ""},
	{"`i a I A o O`, `x X r s S`, `d y c` with motions and `iw aw i\" a( ip` and their like, `dd yy cc D C Y`, `p P`, `.`, `u`, Ctrl-R", "edit", ""},
	{"`v V`, `\"` and a letter, `> <`", "select, name a register, shift", ""},
	{"`/`, `?`", "search in what you said; in full screen: in the transcript, down and up, and `n N` search again", ""},
	{"`[`, `]`", "in full screen, with an empty draft (as `n N`): to the message before and behind", ""},
	{"`j k gg G`", "in full screen, with an empty draft: scroll", ""},
	{"`v`, `V`", "in full screen, with an empty draft: select lines of the transcript; `y` copies them", "The selection begins at the line that a search or `[` has found, or else at the last one on the screen. `j k gg G / ? n N [ ]` go on, `o` changes the end, Esc ends it"},
	{"`:w`, `:q`, `:wq`, `:e`", "send, leave, send and leave when it is done, go back to a message", "It is the message that `[` has found, or one of a list"},
	{"`:d`", "takes the message that `[` has found out of what is sent", ""},
	{"`:set theme=light` and so on", "the same as `/theme light`; also `collapse`, `effort`, `mode`, `model`", ""},
	{"`:compact` and so on", "the commands behind a slash", ""},
	{"Enter", "sends, in every mode", ""},
}

// browseRow is a row of keys of the look into calls.
type browseRow struct {
	Key
	on map[string]func(t *Terminal, list []Node, chosen int)
}

// browseRows are the keys of the look into calls.
var browseRows = []browseRow{
	{Key{"Up, Down, `k j`, Ctrl-P N", "choose a call", ""},
		looks{"up": up, "k": up, "ctrl+p": up, "down": down, "j": down, "ctrl+n": down}},
	{Key{"PgUp, PgDn, `b`, Space, Home, End, `g G`, the mouse wheel", "scroll its text", ""},
		looks{"pgup": (*Terminal).textUp, "b": (*Terminal).textUp, "pgdown": (*Terminal).textDown, "space": (*Terminal).textDown, "home": (*Terminal).textBegin, "g": (*Terminal).textBegin, "end": (*Terminal).textEnd, "G": (*Terminal).textEnd, "shift+g": (*Terminal).textEnd}},
	{Key{"Left, Right, `h l`", "hide and show the calls of a subagent; Left of a call goes to the subagent", ""},
		looks{"left": (*Terminal).foldNode, "h": (*Terminal).foldNode, "right": (*Terminal).unfoldNode, "l": (*Terminal).unfoldNode}},
	{Key{"Enter", "enters a subagent, so that only its calls are listed", ""},
		looks{"enter": (*Terminal).enterNode}},
	{Key{"`e`", "opens the text in `$VISUAL` or `$EDITOR`", ""},
		looks{"e": (*Terminal).editNode}},
	{Key{"`d`", "takes the call with its output out of what is sent, as `/context drop` does", ""},
		looks{"d": (*Terminal).dropNode}},
	{Key{"Ctrl-L", "draws the screen again", ""},
		looks{"ctrl+l": func(t *Terminal, _ []Node, _ int) { t.full.drawn = nil }}},
	{Key{"Esc, `q`, Backspace", "leave the subagent, and then go back", ""},
		looks{"esc": (*Terminal).leaveNode, "q": (*Terminal).leaveNode, "backspace": (*Terminal).leaveNode}},
	{Key{"Ctrl-O G C D", "go back at once", ""},
		looks{"ctrl+o": endLook, "ctrl+g": endLook, "ctrl+c": endLook, "ctrl+d": endLook}},
}

type (
	acts  = map[string]func(*Terminal) bool
	edits = map[string]func(*composer)
	looks = map[string]func(t *Terminal, list []Node, chosen int)
)

// always is for keys that have one meaning.
func always(do func(*Terminal)) func(*Terminal) bool {
	return func(t *Terminal) bool {
		do(t)
		return true
	}
}

// keyActs, draftActs and lookActs have the rows' keys by name.
var keyActs, draftActs, lookActs = byName()

func byName() (on acts, draft edits, look looks) {
	on, draft, look = acts{}, edits{}, looks{}
	for _, r := range keyRows {
		maps.Copy(on, r.on)
		maps.Copy(draft, r.draft)
	}
	for _, r := range browseRows {
		maps.Copy(look, r.on)
	}
	return on, draft, look
}

// prefixes has the first of two keys, with what the second one may be.
var prefixes = secondKeys()

func secondKeys() map[string]string {
	list := map[string]string{}
	for _, r := range keyRows {
		for name := range r.on {
			if first, _, two := strings.Cut(name, " "); two {
				_, second, _ := strings.Cut(r.Keys, " ")
				if list[first] != "" {
					list[first] += " · "
				}
				list[first] += second + ": " + plainWords(r.Does)
			}
		}
	}
	return list
}

// plainWords returns a line of Markdown without the marks of code.
func plainWords(text string) string { return strings.ReplaceAll(text, "`", "") }

// Keys returns the keys of a terminal, without Markdown. apart adds those that only some terminals send, vi those of vi.
func Keys(apart, vi bool) (list []Key) {
	for _, r := range keyRows {
		if apart || !r.apart {
			list = append(list, r.Key)
		}
	}
	if vi {
		list = append(list, viRows...)
	}
	for i, k := range list {
		list[i] = Key{Keys: plainWords(k.Keys), Does: plainWords(k.Does), More: k.More}
	}
	return list
}

// doesSomething reports whether a key has a meaning anywhere.
func doesSomething(name string) bool {
	return keyActs[name] != nil || draftActs[name] != nil || lookActs[name] != nil || prefixes[name] != ""
}
