// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package compliance asks a server of the Responses API for what the Open Responses
// compliance suite asks: seventeen checks over HTTP and WebSocket, with everything
// that the server sends checked against that specification and against OpenAI's
// document. It is for tests.
//
// The tests of this package check a running server:
//
//	go test ./internal/compliance -run Server -base http://127.0.0.1:8787/v1 -model tour
//
// The model must call the function get_weather when it is asked about the weather.
package compliance
