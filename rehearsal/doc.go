// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package rehearsal is a scripted mock model behind a real Responses API server on
// loopback. It makes a complete run possible (sockets, event stream, tools, images,
// history) without a key, a network or a cost, and always with the same result. It
// does not think: it plays a script or, without one, calls each read-only tool once
// and reports the results. Use it to try a file, to test a program, or for
// demonstrations; do not use it to judge answers.
//
// A [Server] is an [net/http.Handler]; [Server.Start] serves it on a free port:
//
//	script, err := rehearsal.Load("tour.script")
//	…
//	server := &rehearsal.Server{Script: script}
//	baseURL, stop, err := server.Start()
//	…
//	defer stop()
//
// Its answer depends only on the request and on the history that it carries or
// names: the position in the script is derived from that history. So a conversation
// can be resumed against another server, retried and forked. Only the number of
// cached input tokens depends on earlier requests to the same server, and the id of
// a response on the stored responses.
//
// The server is as strict about its input as the real one: every call has exactly
// one output after it, and every output has its call; names, ids and inline images
// must be well formed. So a run against it also tests the client.
//
// # Routes
//
// A [Server] wraps package server and serves all its routes. In particular:
//
//   - POST /v1/responses/compact packs the whole history into one item. There is no summary: the script continues as if the history were present.
//   - POST /v1/chat/completions plays the same script in another format, except for reasoning, which Chat Completions does not have.
//   - GET /v1/models lists [Model]. Requests may name any model.
//
// Stored data is in memory and limited: the oldest is removed first.
// [Server.Without] disables parts of the API, to imitate an endpoint that lacks
// them.
//
// # Script files
//
// A script is UTF-8 text with one statement per line. Indentation is significant and
// consists of spaces. Blank lines and lines that begin with # are ignored.
//
//	# A comment.
//	pace 10ms
//
//	turn look at the file
//	  reason The question is about notes.txt.
//	  say I read the file.
//	  call read_file {"path": "notes.txt"}
//
//	turn answer
//	  say It begins: {{output "read_file" 1 | first_line}}
//
//	again
//	turn
//	  say You said: {{question}}
//
// These lines are not indented:
//
//   - turn [TITLE]: one response of the model. Its statements are indented below it.
//   - round: the turns below answer the next user message. The turns before the first round line answer the first message.
//   - again: the turns below answer every user message after the last round. Without it, such a message is answered as if there were no script.
//   - pace DURATION: a delay before each piece of text, such as 20ms, so that people can watch. The default is no delay.
//   - window N: a request of more than N tokens, as counted by this package, is refused with the error context_length_exceeded.
//
// These statements belong to a turn. They are sent in order:
//
//   - say TEXT: text of the answer. Consecutive say statements are lines of one message; one without TEXT is an empty line between two others.
//   - reason TEXT: a reasoning item with TEXT as its summary.
//   - call NAME [JSON]: a function call; the arguments are a JSON object, by default {}. Several in one turn are parallel calls. The request need not declare the tool.
//   - call_raw NAME TEXT: a function call with TEXT as its arguments, which need not be valid.
//   - custom NAME TEXT: a call of a custom tool.
//   - pause DURATION: a delay, also between two say statements.
//
// A line that is indented deeper than the statement before it continues the text of
// that statement, whatever it begins with. The common indentation of such lines is
// removed, and blank lines between them are kept.
//
// The position is counted in turns since the last user message in the history: one
// turn for each group of items from the model. A turn that broke off before its call
// or the end of its text is played again. Only user messages after a reply of the
// model are counted. Clients whose outputs are text only send the images of tool
// outputs in a user message; that message is not counted, and its images belong to
// the outputs. When a round has no turns left, the answer reports the results of the
// tools.
//
// # Templates
//
// Texts and arguments are templates of [text/template]. These functions return facts
// from the request. A request that lacks the fact fails with status 400 and the line
// of the script.
//
//	output "NAME" N   text of the output of call N of a tool; images are placeholders
//	error "NAME" N    the error in that output, which must be a failure
//	failed "NAME" N   whether that output is a failure
//	image "NAME" N    first image in that output: .MediaType .Size .SHA256
//	user_image N      image N of the user messages, likewise
//	user              text of the last user message
//	question          its last line that is not blank
//	instructions      the instructions, system and developer messages
//	tools             names of the declared tools
//	model             name of the requested model
//	first_line TEXT   line N TEXT   line_with "PART" TEXT: a line of a text
//	lines TEXT        the number of its lines
//	shorten N TEXT    at most N characters, on one line
//	json VALUE        VALUE as JSON, for arguments
//
// A template ends soon and fills no memory, because the script may be a stranger's: a text
// is at most 16 MiB long, range needs a list, and define, block and template are not
// available.
//
// N counts from 1 over the whole conversation; -1 is the last call. Without a name
// all calls are counted, and without a number the first one is used.
package rehearsal
