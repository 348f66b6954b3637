// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// This file is about ids that a client names and an upstream looks up in its account. The account
// is the operator's, and all projects of the gateway share it. V3

var (
	// inItems are the members of items that name something in the account.
	inItems = map[string]bool{"file_id": true, "file_ids": true, "vector_store_id": true, "vector_store_ids": true}
	// inRequests are those of the rest of a request.
	inRequests = map[string]bool{
		"file_id": true, "file_ids": true, "vector_store_id": true, "vector_store_ids": true,
		"container": true, "container_id": true, "skill_id": true, "tunnel_id": true,
	}
)

// account returns an error if a request names something in the account of an upstream, and the
// operator does not allow it.
func (b *Backend) account(r *server.Request) error {
	if b.AccountIDs {
		return nil
	}
	for i, it := range r.Items { // also of the history, which may be items that nobody has answered to
		switch it.Type() {
		case item.TypeFileSearchCall, item.TypeCodeInterpreterCall, item.TypeMCPListTools: // an upstream made them, and looks nothing up
			continue
		}
		if name := idIn(inItems, "", it.JSON()); name != "" {
			at := "previous_response_id"
			if r.PreviousResponseID == "" {
				at = "conversation"
			}
			if own := i - (len(r.Items) - r.Own); own >= 0 {
				at = fmt.Sprintf("input[%d]", own)
			}
			if name == "file_id" && takesFiles(it) {
				return notOurs(at, name, "name a file that you have uploaded to this gateway, ")
			}
			return notOurs(at, name, "")
		}
	}
	for i, t := range r.Tools {
		name := ""
		switch t.(type) {
		case *item.FunctionTool, *item.CustomTool: // a schema may describe members of these names
			continue
		case *item.FileSearchTool:
			name = "vector_store_ids"
		default:
			one, err := (&api.Request{Tools: []item.Tool{t}}).AppendJSON(nil)
			if err != nil {
				return err
			}
			name = idIn(inRequests, "", string(one))
		}
		if name != "" {
			return notOurs(fmt.Sprintf("tools[%d]", i), name, "")
		}
	}
	if v, ok := r.Object.Member("prompt"); ok && v != "null" {
		return notOurs("prompt", "id", "")
	}
	for _, m := range append(r.Extra[:len(r.Extra):len(r.Extra)], r.Chat...) {
		if m.Name == "input" {
			continue
		}
		if name := idIn(inRequests, m.Name, string(m.Value)); name != "" {
			return notOurs(m.Name, name, "")
		}
	}
	return nil
}

// takesFiles reports whether the server puts the content of uploaded files into an item.
func takesFiles(it item.Item) bool {
	switch it.Type() {
	case item.TypeMessage, item.TypeFunctionCallOutput, item.TypeCustomToolCallOutput, item.TypeComputerCallOutput:
		return true
	}
	return false
}

// notOurs returns the error for a member that names something in the account. advice is a further way out.
func notOurs(at, name, advice string) error {
	return server.Invalid("unsupported_value", at, "Unsupported value: '%s' names something in the account at the model's server ('%s'), which all clients of this gateway share. Send the content itself, %sor ask the operator to allow it (--account-ids).", at, name, advice)
}

// idIn returns the name of a member of a value that has an id or several, or "". name is that of
// the value itself. Names are compared without case, as some servers do.
func idIn(names map[string]bool, name, raw string) string {
	lower := strings.ToLower(raw)
	some := strings.Contains(lower, `_id`) || strings.Contains(lower, "container") || names[strings.ToLower(name)]
	for _, escape := range []string{`\u004`, `\u005`, `\u006`, `\u007`} { // a letter or an underscore
		some = some || strings.Contains(lower, escape)
	}
	if !some {
		return ""
	}
	return find(jsontext.NewDecoder(strings.NewReader(raw), jsontext.AllowDuplicateNames(true)), names, name)
}

// find reads a value of the member name, and returns the name of the first member that has ids.
func find(d *jsontext.Decoder, names map[string]bool, name string) (found string) {
	t, err := d.ReadToken()
	if err != nil {
		return ""
	}
	keep := func(more string) {
		if found == "" {
			found = more
		}
	}
	switch t.Kind() {
	case '{':
		for d.PeekKind() == '"' {
			key, err := d.ReadToken()
			if err != nil {
				return found
			}
			member := strings.ToLower(key.String())
			if member == "annotations" { // citations, which nobody looks up
				_ = d.SkipValue() // an error comes again
				continue
			}
			keep(find(d, names, member))
		}
		_, _ = d.ReadToken() // likewise
	case '[':
		for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
			keep(find(d, names, name))
		}
		_, _ = d.ReadToken()
	case '"':
		if names[strings.ToLower(name)] && t.String() != "" {
			keep(name)
		}
	}
	return found
}
