// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// The reasons why a choice ends.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishCalls  = "tool_calls"
	finishFilter = "content_filter"
	finishError  = "error"
)

// The reasons of [item.IncompleteDetails].
const (
	incompleteTokens = "max_output_tokens"
	incompleteFilter = "content_filter"
)

// settle sets how a response ended by the reason that its choice gives.
func settle(r *item.Response, reason string, at place) {
	r.Status = item.StatusCompleted
	switch reason {
	case "", finishStop, finishCalls, "function_call":
	case finishLength, "max_tokens", "model_length":
		r.Status, r.Incomplete = item.StatusIncomplete, &item.IncompleteDetails{Reason: incompleteTokens}
	case finishFilter:
		r.Status, r.Incomplete = item.StatusIncomplete, &item.IncompleteDetails{Reason: incompleteFilter}
	case finishError, "insufficient_system_resource", "network_error":
		r.Status = item.StatusFailed
		if r.Error == nil {
			r.Error = &item.APIError{Code: "server_error", Message: "the choice ended for the reason " + reason}
		}
	default:
		at.at("finish_reason").lose(reason + " is taken as an end like any other")
	}
}

// finishOf is the reason that a response's end stands for.
func finishOf(r *item.Response, calls bool) string {
	switch {
	case r.Status == item.StatusFailed || r.Status == item.StatusCancelled:
		return finishError
	case r.Status == item.StatusIncomplete && r.Incomplete != nil && r.Incomplete.Reason == incompleteFilter:
		return finishFilter
	case r.Status == item.StatusIncomplete:
		return finishLength
	case calls:
		return finishCalls
	}
	return finishStop
}

// maxStem bounds what of a response's id goes into the ids of its items, which
// may be of 64 characters.
const maxStem = 48

// stem makes of a response's id what the ids of its items end with. The same
// response has the same ids, streamed or not.
func stem(id string) string {
	id = strings.TrimPrefix(id, "chatcmpl-")
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, id)
	switch {
	case clean == "" && id == "":
		return "0"
	case clean != id || len(id) > maxStem:
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:12])
	}
	return id
}

// madeMark stands in the ids that this package gives to items, which messages
// have none of: such an id is not a loss where messages are written.
const madeMark = "chat_"

func madeID(kind, rest string) string { return kind + "_" + madeMark + rest }

func isMade(id string) bool {
	_, rest, _ := strings.Cut(id, "_")
	return strings.HasPrefix(rest, madeMark)
}
