// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "slices"

// Extra holds the members of a JSON object that a struct has no place for, in
// the order in which they came: members this version does not know, and known
// ones with a value that their field cannot hold, such as null for an optional
// text. Encoding writes them back. A field that is set wins over a member of
// the same name here. A member without a value says that one which is always
// written was not there, and keeps it so.
type Extra []Member

// Member is one name and its value.
type Member struct {
	Name  string
	Value JSON
}

// Get returns the value of the named member and whether there is one.
func (x Extra) Get(name string) (JSON, bool) {
	for i := range x {
		if x[i].Name == name {
			return x[i].Value, true
		}
	}
	return "", false
}

// Set replaces the named member's value, or adds the member at the end.
func (x *Extra) Set(name string, value JSON) {
	for i := range *x {
		if (*x)[i].Name == name {
			(*x)[i].Value = value
			return
		}
	}
	*x = append(*x, Member{Name: name, Value: value})
}

// Delete removes the named member, if there is one.
func (x *Extra) Delete(name string) {
	*x = slices.DeleteFunc(*x, func(m Member) bool { return m.Name == name })
}
