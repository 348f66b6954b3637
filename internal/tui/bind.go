// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bindings say what keys do in place of what they do usually: another key, several one after the other, a
// command behind a slash, or nothing.
type Bindings map[string][]string

// ParseBindings reads bindings such as "f2=/fullscreen; ctrl+t=ctrl+r; f4=ctrl+x ctrl+e; ctrl+x t=/theme light; ctrl+z=none".
// The zero value of an empty text changes nothing.
func ParseBindings(text string) (Bindings, error) {
	list := Bindings{}
	for one := range strings.SplitSeq(text, ";") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		from, to, ok := strings.Cut(one, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no =", one)
		}
		name, err := keyNames(from)
		if err != nil {
			return nil, err
		}
		if list[name] != nil {
			return nil, fmt.Errorf("%s is bound twice", name)
		}
		switch to = strings.TrimSpace(to); {
		case to == "":
			return nil, fmt.Errorf("%q has nothing after =", one)
		case to == "none":
			list[name] = []string{}
			continue
		case strings.HasPrefix(to, "/"):
			list[name] = []string{to}
			continue
		}
		for key := range strings.FieldsSeq(to) {
			if key, err = keyName(key); err != nil {
				return nil, err
			}
			if !doesSomething(key) {
				return nil, fmt.Errorf("%s does nothing; /keys lists the keys", key)
			}
			list[name] = append(list[name], key)
		}
	}
	for name := range list {
		if first, _, two := strings.Cut(name, " "); two && list[first] != nil {
			return nil, fmt.Errorf("%s is bound, and cannot begin %s, too", first, name)
		}
	}
	return list, nil
}

// begins reports whether a key is the first one of two.
func (list Bindings) begins(key string) bool {
	for name := range list {
		if first, _, two := strings.Cut(name, " "); two && first == key {
			return true
		}
	}
	return false
}

// keyNames returns the names of a key, or of two that are pressed one after the other. The second may write a
// character.
func keyNames(written string) (string, error) {
	keys := strings.Fields(written)
	if len(keys) > 2 {
		return "", fmt.Errorf("%q has more than two keys", strings.TrimSpace(written))
	}
	if len(keys) < 2 {
		return keyName(written)
	}
	first, err := keyName(keys[0])
	if err != nil {
		return "", err
	}
	second := keys[1]
	if utf8.RuneCountInString(second) > 1 {
		if second, err = keyName(second); err != nil {
			return "", err
		}
	}
	return first + " " + second, nil
}

// namedKeys are the keys that have names, besides f1 and so on.
var namedKeys = strings.Fields("enter tab backspace esc space up down left right pgup pgdown home end delete insert")

var errWrites = errors.New("a key that writes a character cannot be bound")

// keyName returns the name of a key as the terminal's events have it. Ctrl-T is the same as ctrl+t.
func keyName(written string) (string, error) {
	rest := strings.ToLower(strings.TrimSpace(written))
	held := map[string]bool{}
	for {
		mod := ""
		for _, one := range []string{"ctrl", "alt", "shift"} {
			if len(rest) > len(one)+1 && strings.HasPrefix(rest, one) && strings.Contains("+-", rest[len(one):len(one)+1]) {
				mod = one
			}
		}
		if mod == "" {
			break
		}
		held[mod], rest = true, rest[len(mod)+1:]
	}
	function := strings.TrimPrefix(rest, "f")
	known := slices.Contains(namedKeys, rest) || rest != function && len(function) < 3 && strings.Trim(function, "0123456789") == "" && function != ""
	switch {
	case !known && utf8.RuneCountInString(rest) != 1:
		return "", fmt.Errorf("%q is not a key; keys are %s, f1 and so on, and ctrl+ or alt+ with a letter", written, strings.Join(namedKeys, ", "))
	case (!known || rest == "space") && !held["ctrl"] && !held["alt"]:
		return "", fmt.Errorf("%q: %w", written, errWrites)
	}
	name := ""
	for _, mod := range []string{"ctrl", "alt", "shift"} {
		if held[mod] {
			name += mod + "+"
		}
	}
	return sameKey(name + rest), nil
}

// stroke applies a key as the person has bound it. What a binding says is not bound again. The first of two keys
// waits for the second one; if both together mean nothing, each means what it means alone.
func (t *Terminal) stroke(name, text string) {
	if first := t.first; first.name != "" {
		t.first = viKey{}
		if to, bound := t.opts.Bind[first.name+" "+cmp.Or(text, name)]; bound {
			t.hint = ""
			t.bound(to)
			return
		}
		t.key(first.name, first.text)
	}
	to, bound := t.opts.Bind[name]
	switch {
	case bound:
		t.bound(to)
	case t.opts.Bind.begins(name):
		t.first, t.hint = viKey{name, text}, name+" and one more key"
	default:
		t.key(name, text)
	}
}

// alone applies the first of two keys that no second one follows.
func (t *Terminal) alone() {
	if first := t.first; first.name != "" {
		t.first, t.hint = viKey{}, ""
		t.key(first.name, first.text)
	}
}

// bound does what a binding says.
func (t *Terminal) bound(to []string) {
	for _, one := range to {
		if !strings.HasPrefix(one, "/") {
			t.key(one, "")
			continue
		}
		t.typed()
		t.hint, t.last = "", lastKey{}
		if !t.browse.on {
			t.submit(one, false)
		}
	}
}
