// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// note is what a session's log says about responses besides the run. It is kept as a
// [session.Note], which is never sent. The fields that are set depend on the Kind.
type note struct {
	Kind kind `json:"type"`
	// ResponseID is the response that the note is about. The same note in a fork is about
	// the response of the session that was forked.
	ResponseID string `json:"response_id,omitempty"`
	// Response is the object without its output, when it begins or when it has ended.
	Response jsontext.Value `json:"response,omitempty"`
	// Request is the request of a response in the background or at a worker, without its input, for
	// who goes on.
	Request jsontext.Value `json:"request,omitempty"`
	// Asked are the requests for approval of calls of subagents, which the log of the
	// session does not have.
	Asked jsontext.Value `json:"asked,omitempty"`
	// Asks reports whether the response ended with requests for approval. Older logs do not have it.
	Asks       *bool `json:"asks,omitempty"`
	Background bool  `json:"background,omitzero"`
	// Queued means that a worker makes the response.
	Queued bool `json:"queued,omitzero"`
	// Key and KeyID are those of who asked for a background response.
	Key   string `json:"key,omitempty"`
	KeyID string `json:"key_id,omitempty"`
	// Files identifies the files of the agent of a background response: see filesOf.
	Files string `json:"files,omitempty"`
	// Text are instructions, until the next note about them. The entry behind it, if it is
	// not empty, is their message.
	Text string `json:"text,omitempty"`
	// Events are Count events of the stream of a response, from number From on. Last means
	// that the stream has ended.
	Events jsontext.Value `json:"events,omitempty"`
	From   int64          `json:"from,omitzero"`
	Count  int            `json:"count,omitzero"`
	Last   bool           `json:"last,omitzero"`
	// Deltas are pieces of text that a worker's model has not ended.
	Deltas jsontext.Value `json:"deltas,omitempty"`
	// Conversation is the object of a conversation, and Items are items that were added
	// to it before an agent answered in it, or the item that the model had not ended when
	// the server of a response did.
	Conversation jsontext.Value `json:"conversation,omitempty"`
	Items        jsontext.Value `json:"items,omitempty"`
}

type kind string

const (
	kindBegin        kind = "antiphon:response"
	kindEvents       kind = "antiphon:response_events"
	kindDeltas       kind = "antiphon:response_deltas"
	kindBroken       kind = "antiphon:response_broken"
	kindTakenUp      kind = "antiphon:response_taken_up"
	kindEnd          kind = "antiphon:response_end"
	kindDeleted      kind = "antiphon:response_deleted"
	kindInstructions kind = "antiphon:instructions"
	kindConversation kind = "antiphon:conversation"
	kindItems        kind = "antiphon:conversation_items"
)

// body returns the entry.
func (n note) body() session.Body {
	text, err := json.Marshal(n)
	if err == nil {
		var it item.Item
		if it, err = item.Parse(text); err == nil {
			return session.Note{Item: it}
		}
	}
	panic(fmt.Sprintf("agents: a note cannot be encoded: %v", err)) // its values are JSON
}

// noteOf returns the note in an entry, if it is one of this package.
func noteOf(e session.Entry) (n note, ok bool) {
	b, is := e.Body.(session.Note)
	if !is || !strings.HasPrefix(string(b.Item.Type()), "antiphon:") {
		return n, false
	}
	it, err := b.Item.Whole()
	return n, err == nil && json.Unmarshal([]byte(it.JSON()), &n) == nil
}

// headOf returns a response without its output as JSON.
func headOf(r *api.Response) (jsontext.Value, error) {
	head := *r
	head.Output = []item.Item{}
	return head.AppendJSON(nil)
}

// part is the part of a log that is a response.
type part struct {
	begin, end note
	// from is the entry of the first note. to is the last entry: the one of the second
	// note, or of the log.
	from, to int64
	ended    bool
	deleted  bool
	last     bool // no other response follows
}

// partsOf returns the responses of a log, in one pass over it.
func partsOf(log []session.Entry) (parts []part) {
	named := map[string]int{} // the index of a response by its id
	for _, e := range log {
		n, ok := noteOf(e)
		if !ok {
			continue
		}
		switch n.Kind {
		case kindBegin:
			if len(parts) > 0 {
				last := &parts[len(parts)-1]
				if last.last = false; !last.ended {
					last.to = e.Seq - 1
				}
			}
			named[n.ResponseID] = len(parts)
			parts = append(parts, part{begin: n, from: e.Seq, to: int64(len(log)), last: true})
		case kindEnd:
			if i, ok := named[n.ResponseID]; ok && parts[i].last {
				parts[i].end, parts[i].to, parts[i].ended = n, e.Seq, true
			}
		case kindDeleted:
			if i, ok := named[n.ResponseID]; ok {
				parts[i].deleted = true
			}
		}
	}
	return parts
}

// partOf returns the response that begins at an entry. Its from is 0 if there is none.
func partOf(log []session.Entry, seq int64) part {
	parts := partsOf(log)
	if i, ok := slices.BinarySearchFunc(parts, seq, func(p part, seq int64) int { return cmp.Compare(p.from, seq) }); ok {
		return parts[i]
	}
	return part{last: true, to: int64(len(log))}
}

// lastID returns the id of the last response in a log, or "".
func lastID(log []session.Entry) (id string) {
	for _, e := range log {
		if n, ok := noteOf(e); ok && n.Kind == kindBegin {
			id = n.ResponseID
		}
	}
	return id
}

// sessions begin with this prefix; the rest of the id is in the ids of responses.
const prefix = "api-"

// responseID returns the id of the response that begins at an entry of a session.
func responseID(in string, seq int64) string {
	return fmt.Sprintf("resp_%s_%d", strings.TrimPrefix(in, prefix), seq)
}

// parseID returns the session and the entry of a response.
func parseID(id string) (in string, seq int64, ok bool) {
	rest, ok := strings.CutPrefix(id, "resp_")
	name, number, found := strings.Cut(rest, "_")
	seq, err := strconv.ParseInt(number, 10, 64)
	return prefix + name, seq, ok && found && err == nil && seq > 0 && random(name)
}

// random reports whether a text may be the random part of an id.
func random(name string) bool {
	return len(name) == 26 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// approvalID returns the id of the mcp_approval_request for a pending approval that the
// response of shows. root is the session of the response.
func approvalID(of, root string, p *agent.PendingApproval) string {
	return "mcpr_" + strings.TrimPrefix(of, "resp_") + nestedApproval(root, p.Session, p.Number)
}

// nestedApproval returns the end of the id of the request for a call in a session, which may be that of a subagent.
func nestedApproval(root, in string, number int) string {
	id := fmt.Sprintf("_%d", number)
	if inner := strings.TrimPrefix(in, root); inner != "" && inner != in {
		id += "_" + session.Fingerprint(inner)[:12]
	}
	return id
}

// requests returns the requests for approval of subagents' calls that the end of a response has.
func (n *note) requests() (list []item.Item) {
	var nested []jsontext.Value
	if len(n.Asked) == 0 || json.Unmarshal(n.Asked, &nested) != nil { // this package has written it
		return nil
	}
	for _, v := range nested {
		if it, err := item.Parse(v); err == nil {
			list = append(list, it)
		}
	}
	return list
}
