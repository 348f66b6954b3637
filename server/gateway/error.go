// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/server"
)

// unavailable is the error while all upstreams of a model are left out.
func unavailable(wait time.Duration) error {
	return &server.Error{Status: http.StatusServiceUnavailable, Code: "server_is_overloaded", Header: retryAfter(wait),
		Message: "The model's server has failed repeatedly and is not asked at the moment. Please retry later."}
}

func retryAfter(wait time.Duration) http.Header {
	if wait <= 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(wait.Seconds())))}}
}

// passedOn returns those headers of an upstream that are about its rate limits.
func passedOn(from http.Header) (h http.Header) {
	for name, values := range from {
		if strings.HasPrefix(name, "X-Ratelimit-") {
			if h == nil {
				h = http.Header{}
			}
			h[name] = values
		}
	}
	return h
}

// told returns a failure of an upstream in the form for clients: with what the upstream
// says about the request, and without what is only about the upstream. The whole error is
// logged.
func (b *Backend) told(failure error, r *server.Request) error {
	if e := new(endpoint.Error); errors.As(failure, &e) && e.Class != endpoint.Canceled && !errors.As(failure, new(*broken)) && !errors.As(failure, new(*endpoint.RefusedError)) {
		b.log(failure)
	}
	return b.failure(failure, r)
}

// failure is told without the log, for a failure that is told in another way.
func (b *Backend) failure(failure error, r *server.Request) error {
	var way *broken
	if errors.As(failure, &way) {
		return way.err
	}
	var refused *endpoint.RefusedError
	if errors.As(failure, &refused) {
		message := refused.Problem
		if refused.By != "" {
			message += fmt.Sprintf(" (%s)", refused.By)
		}
		return server.Invalid("unsupported_parameter", refused.Param, "Unsupported parameter: '%s': the model's server cannot do this: %s.", refused.Param, message)
	}
	var e *endpoint.Error
	if !errors.As(failure, &e) {
		return failure // the server logs it
	}
	own := &server.Error{Code: e.Code, Param: paramOf(failure, e, r), Message: e.Message, Header: retryAfter(e.RetryAfter)}
	for name, values := range limits(e.Limits) {
		if own.Header == nil {
			own.Header = http.Header{}
		}
		own.Header[name] = values
	}
	answer(own, e)
	return own
}

// inResponse returns the error in the form for a response that has begun, whose codes are
// a closed list.
func inResponse(err error) error {
	var e *server.Error
	if errors.As(err, &e) && !slices.Contains(ofResponses, e.Code) {
		own := *e
		if own.Code = "invalid_prompt"; own.Status >= http.StatusInternalServerError {
			own.Code = "server_error"
		}
		return &own
	}
	return err
}

// ofResponses are the codes of the schema's ResponseErrorCode that are not about images.
var ofResponses = []string{"server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "bio_policy", "vector_store_timeout"}

// answer sets the status of an error and, where the upstream's words are not for the
// client, its code and message.
func answer(own *server.Error, e *endpoint.Error) {
	plain := func(status int, code, message string) {
		own.Status, own.Code, own.Param, own.Message = status, code, "", message
	}
	worded := func(status int, code, message string) {
		own.Status, own.Code, own.Message = status, cmp.Or(own.Code, code), cmp.Or(own.Message, message)
	}
	switch e.Class {
	case endpoint.RateLimit:
		worded(http.StatusTooManyRequests, "rate_limit_exceeded", "The model's server limits how often it is asked.")
		own.Type = "rate_limit_error"
	case endpoint.Quota:
		plain(http.StatusTooManyRequests, "insufficient_quota", "The account at the model's server has no quota left.")
		own.Type = "insufficient_quota"
	case endpoint.Overloaded:
		worded(http.StatusServiceUnavailable, "server_is_overloaded", "The model's server is overloaded.")
	case endpoint.Auth, endpoint.Forbidden:
		plain(http.StatusBadGateway, "upstream_refused", "The model's server refused the key of this gateway, or needs a key and got none. The operator of the gateway must look into it.")
	case endpoint.NotFound:
		worded(http.StatusNotFound, "model_not_found", "The model's server does not have this model.")
	case endpoint.BadRequest, endpoint.ContextOverflow, endpoint.Policy, endpoint.EncryptedContent, endpoint.PreviousResponse, endpoint.TooLarge:
		worded(http.StatusBadRequest, "", "The model's server refused the request.")
		if own.Code == "" && e.Class != endpoint.BadRequest {
			own.Code = codes[e.Class]
		}
	case endpoint.Idle:
		plain(http.StatusGatewayTimeout, "upstream_timeout", "The model's server sent nothing for too long.")
	case endpoint.Truncated:
		plain(http.StatusBadGateway, "upstream_truncated", "The connection to the model's server ended before the response did.")
	case endpoint.Protocol:
		plain(http.StatusBadGateway, "upstream_unreadable", "The model's server gave an answer that cannot be read.")
	case endpoint.Network, endpoint.Canceled, endpoint.Reconnect:
		plain(http.StatusBadGateway, "upstream_unreachable", "The model's server cannot be reached.")
	default:
		worded(http.StatusBadGateway, "server_error", "The model's server failed.")
	}
}

var codes = map[endpoint.Class]string{
	endpoint.ContextOverflow: "context_length_exceeded", endpoint.Policy: "invalid_prompt",
	endpoint.EncryptedContent: "invalid_encrypted_content", endpoint.TooLarge: "request_too_large",
}

// paramOf returns the member of the client's request that an error is about.
func paramOf(failure error, e *endpoint.Error, r *server.Request) string {
	if !strings.HasPrefix(e.Param, "input[") && !strings.HasPrefix(e.Param, "messages") {
		return e.Param
	}
	var at interface{ RefusedItem() int }
	if !errors.As(failure, &at) || at.RefusedItem() < 0 {
		return "input"
	}
	if i := at.RefusedItem() - (len(r.Items) - r.Own); i >= 0 && i < r.Own {
		return fmt.Sprintf("input[%d]", i)
	}
	return "input"
}

// limits returns the state of rate limits as the API's headers.
func limits(l endpoint.RateLimits) http.Header {
	h := http.Header{}
	for name, v := range map[string]endpoint.Limit{"Requests": l.Requests, "Tokens": l.Tokens} {
		if v.Known {
			h["X-Ratelimit-Limit-"+name] = []string{strconv.FormatInt(v.Limit, 10)}
			h["X-Ratelimit-Remaining-"+name] = []string{strconv.FormatInt(v.Remaining, 10)}
			h["X-Ratelimit-Reset-"+name] = []string{v.Reset.String()}
		}
	}
	return h
}
