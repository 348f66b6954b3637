// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/http"
	"strconv"
	"strings"
)

// codes maps error codes and types to classes, whatever the status. A code that only repeats the
// status, such as invalid_request_error, is not listed.
var codes = map[string]Class{
	"insufficient_quota":                   Quota,
	"quota_exceeded":                       Quota,
	"billing_hard_limit_reached":           Quota,
	"billing_limit_reached":                Quota,
	"billing_not_active":                   Quota,
	"usage_limit_reached":                  Quota,
	"usage_not_included":                   Quota,
	"insufficient_balance":                 Quota,
	"insufficient_credits":                 Quota,
	"credit_balance_exhausted":             Quota,
	"payment_required":                     Quota,
	"workspace_owner_usage_limit_reached":  Quota,
	"context_length_exceeded":              ContextOverflow,
	"context_window_exceeded":              ContextOverflow,
	"too_many_prompt_tokens":               ContextOverflow,
	"max_tokens_exceeded":                  ContextOverflow,
	"exceed_context_size_error":            ContextOverflow,
	"previous_response_not_found":          PreviousResponse,
	"websocket_connection_limit_reached":   Reconnect, // after an hour
	"response_not_found":                   NotFound,
	"conversation_not_found":               NotFound,
	"item_not_found":                       NotFound,
	"not_found":                            NotFound,
	"notfounderror":                        NotFound,
	"invalid_encrypted_content":            EncryptedContent,
	"invalid_prompt":                       Policy,
	"bio_policy":                           Policy,
	"cyber_policy":                         Policy,
	"content_filter":                       Policy,
	"content_policy_violation":             Policy,
	"policy_violation":                     Policy,
	"model_not_found":                      NotFound,
	"model_decommissioned":                 NotFound,
	"deploymentnotfound":                   NotFound,
	"not_found_error":                      NotFound,
	"invalid_api_key":                      Auth,
	"authentication_error":                 Auth,
	"invalid_authentication":               Auth,
	"token_expired":                        Auth,
	"unauthorized":                         Auth,
	"authentication":                       Auth,
	"invalid_token":                        Auth,
	"token_invalidated":                    Auth,
	"permission_error":                     Forbidden,
	"permission_denied":                    Forbidden,
	"unsupported_country":                  Forbidden,
	"unsupported_country_region_territory": Forbidden,
	"forbidden":                            Forbidden,
	"insufficient_permissions":             Forbidden,
	"rate_limit_exceeded":                  RateLimit,
	"rate_limit_error":                     RateLimit,
	"rate_limited":                         RateLimit,
	"too_many_requests":                    RateLimit,
	"slow_down":                            Overloaded,
	"overloaded_error":                     Overloaded,
	"server_is_overloaded":                 Overloaded,
	"engine_overloaded":                    Overloaded,
	"provider_overloaded":                  Overloaded,
	"provider_unavailable":                 Overloaded,
	"unavailable_error":                    Overloaded, // llama.cpp while it loads the model
	"server_error":                         Server,
	"internal_error":                       Server,
	"internal_server_error":                Server,
	"vector_store_timeout":                 Server,
	"timeout":                              Server,
	"not_supported_error":                  NotFound, // llama.cpp: not for this model
	"data_residency_mismatch":              BadRequest,
	"invalid_request":                      BadRequest,
	"tool_use_failed":                      BadRequest,
	"missing_required_parameter":           BadRequest,
	"unknown_parameter":                    BadRequest,
	"unsupported_parameter":                BadRequest,
	"unsupported_value":                    BadRequest,
	"invalid_value":                        BadRequest,
	"invalid_type":                         BadRequest,
	"mutually_exclusive_parameters":        BadRequest,
	"response_already_in_flight":           BadRequest,
	"badrequesterror":                      BadRequest,
	"invalid-argument":                     BadRequest,
	"invalid_image":                        BadRequest,
	"invalid_image_format":                 BadRequest,
	"invalid_base64_image":                 BadRequest,
	"invalid_image_url":                    BadRequest,
	"image_too_large":                      BadRequest,
	"image_too_small":                      BadRequest,
	"image_parse_error":                    BadRequest,
	"image_content_policy_violation":       Policy,
	"invalid_image_mode":                   BadRequest,
	"image_file_too_large":                 BadRequest,
	"unsupported_image_media_type":         BadRequest,
	"empty_image_file":                     BadRequest,
	"failed_to_download_image":             BadRequest,
	"image_file_not_found":                 BadRequest,
}

// classify returns the class of an error. It looks at code, type and status, in this order, and
// never at the words of a message. Status 0 means unknown. The finer codes are more exact than code
// and come before it.
func classify(status int, code, typ string, finer ...string) Class {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n <= 599 {
		if status == 0 || status < 400 {
			status = n // some servers put the status in place of the code
		}
		code = ""
	}
	for _, name := range append(finer, code, typ) {
		if c, ok := codes[strings.ToLower(name)]; ok && !contradicts(c, status) {
			return c
		}
	}
	if c, ok := statuses[status]; ok {
		return c
	}
	switch {
	case status >= 500:
		return Server
	case status >= 400:
		return BadRequest
	case status >= 300:
		return Protocol
	case typ == "invalid_request_error":
		return BadRequest
	}
	return Server
}

// contradicts reports whether a class that is safe to retry disagrees with a status that is final.
func contradicts(c Class, status int) bool {
	switch c {
	case RateLimit, Overloaded, Server:
		own, ok := statuses[status]
		return status >= 400 && status < 500 && (!ok || own != Server && own != RateLimit)
	}
	return false
}

// statuses maps a status to its class where its group does not give it.
var statuses = map[int]Class{
	http.StatusUnauthorized:          Auth,
	http.StatusPaymentRequired:       Quota,
	http.StatusForbidden:             Forbidden,
	http.StatusNotFound:              NotFound,
	http.StatusRequestTimeout:        Server,
	http.StatusConflict:              Server, // another request holds the object at the moment
	http.StatusRequestEntityTooLarge: TooLarge,
	http.StatusTooEarly:              Server,
	http.StatusTooManyRequests:       RateLimit,
	http.StatusNotImplemented:        NotFound,
	http.StatusServiceUnavailable:    Overloaded,
	529:                              Overloaded,
}

// hints is advice by class, used if there is no better hint.
var hints = map[Class]string{
	RateLimit:        "wait a little, or ask for a higher limit",
	Overloaded:       "try again later",
	Server:           "try again later",
	Forbidden:        "check what this key may use",
	Quota:            "check the plan and billing of this account",
	ContextOverflow:  "shorten or compact the conversation",
	PreviousResponse: "send the whole history instead",
	EncryptedContent: "send the history without its reasoning items",
	Idle:             "raise the idle limit if the model thinks longer",
	TooLarge:         "send less at once",
}
