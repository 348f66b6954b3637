// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/antiphon-go/antiphon/api"
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

// The reasons of [api.IncompleteDetails].
const (
	incompleteTokens = "max_output_tokens"
	incompleteFilter = "content_filter"
)

// settle sets a response's end from the finish reason of its choice.
func settle(r *api.Response, reason string, at place) {
	r.Status = item.StatusCompleted
	switch reason {
	case "", finishStop, finishCalls, "function_call":
	case finishLength, "max_tokens", "model_length":
		r.Status, r.Incomplete = item.StatusIncomplete, &api.IncompleteDetails{Reason: incompleteTokens}
	case finishFilter:
		r.Status, r.Incomplete = item.StatusIncomplete, &api.IncompleteDetails{Reason: incompleteFilter}
	case finishError, "insufficient_system_resource", "network_error":
		r.Status = item.StatusFailed
		if r.Error == nil {
			r.Error = &api.APIError{Code: "server_error", Message: "the choice ended for the reason " + reason}
		}
	default:
		at.at("finish_reason").lose(reason + " is taken as an end like any other")
	}
}

// finishOf returns the finish reason for a response's end.
func finishOf(r *api.Response, calls bool) string {
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

// maxStem limits the part of a response's id in the ids of its items, which may have 64 characters.
const maxStem = 48

// stem returns the end of the items' ids, made from the response's id. The same response has the
// same ids, streamed or not.
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

// madeMark marks the ids that this package gives to items. Messages have no ids, so such an id is
// not a loss when messages are written.
const madeMark = "chat_"

func madeID(kind, rest string) string { return kind + "_" + madeMark + rest }

func isMade(id string) bool {
	_, rest, _ := strings.Cut(id, "_")
	return strings.HasPrefix(rest, madeMark)
}
