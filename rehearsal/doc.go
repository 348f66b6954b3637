// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package rehearsal is a scripted mock model behind a real Responses API server
// on loopback. It makes a whole run possible (sockets, event stream, tools,
// images, history) without a key, a network or a cost, and with the same
// result every time. It does not think: it plays a script, or, without one,
// calls each tool that only reads once and tells what came back. Use it to try
// a file, to test a program, to demonstrate; do not use it to judge an answer.
//
// A [Server] is an [net/http.Handler]; [Server.Start] puts it on a free port:
//
//	script, err := rehearsal.Load("tour.script")
//	…
//	server := &rehearsal.Server{Script: script}
//	baseURL, stop, err := server.Start()
//	…
//	defer stop()
//
// What it answers follows from the request and the history that it carries or
// names: where the script goes on is read off that history. So a conversation
// can be resumed against another server, retried and forked. Only the number of
// cached input tokens depends on what the same server has seen before, and the
// id of a response on what it keeps.
//
// The server is as strict as the real one about what it receives: every call
// has its one output, after it, and every output has its call; names, ids and
// inline images are well formed. A run against it is a check of the client.
//
// # What is served
//
// All that package server serves: a [Server] is a backend of it, and wraps it. In
// particular:
//
//   - POST /v1/responses/compact packs the whole history into one item: the model
//     sums up nothing, and the script goes on as if the history were there.
//   - POST /v1/chat/completions plays the same script in other words, but for
//     reasoning, which Chat Completions does not have.
//   - GET /v1/models lists [Model]. Requests may name any.
//
// What is stored is in memory, and bounded: the oldest goes first. Where an
// endpoint has less, [Server.Without] makes the rehearsal have as little.
//
// # Script files
//
// A script is UTF-8 text, one statement a line. Indentation counts and is made
// of spaces. Lines of white space and lines that begin with # are left out.
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
// At the margin stand:
//
//   - turn [TITLE]: one response of the model. The statements under it are
//     indented.
//   - round: the turns below answer the next user message. Those before the
//     first round line answer the first.
//   - again: the turns below answer every user message after the last round.
//     Without it, such a message is answered as if there were no script.
//   - pace DURATION: a wait before each piece of text, such as 20ms, so that
//     people can watch. Without it there is none.
//   - window N: a request of more than N tokens, as this package counts them, is
//     refused with the error context_length_exceeded.
//
// Under a turn stand, in the order in which they are sent:
//
//   - say TEXT: text of the answer. Several in a row are lines of one message;
//     one without TEXT is an empty line between two others.
//   - reason TEXT: a reasoning item with TEXT as its summary.
//   - call NAME [JSON]: a function call; the arguments are a JSON object, {} if
//     left out. Several in one turn are parallel calls. The tool need not be
//     one that the request declares.
//   - call_raw NAME TEXT: a function call with TEXT as its arguments, valid or
//     not.
//   - custom NAME TEXT: a call of a custom tool.
//   - pause DURATION: a wait, also between two says.
//
// A line indented deeper than the statement before it goes on with that
// statement's text, whatever it begins with; the common indentation of such
// lines is taken away, and blank lines between them stay.
//
// Turns are counted by what the history holds since the last user message: one
// turn for each group of items from the model. A turn that broke off before
// its call or the end of its text is played again. User messages are counted by
// those that come after something the model said; the message with the images
// of tool outputs that clients send where outputs are text alone is none, and its
// images are those of the outputs. When a round has no turn left, the answer
// tells what the tools returned.
//
// # Templates
//
// Texts and arguments are templates of [text/template]. These functions give
// facts, and only such as the request carries; asking for one that it does not
// carry makes the request fail with status 400 and the script's line.
//
//	output "NAME" N   text of the output of call N of a tool; images are markers
//	error "NAME" N    the error in that output, which must be a failure
//	failed "NAME" N   whether that output is a failure
//	image "NAME" N    first image in that output: .MediaType .Size .SHA256
//	user_image N      image N of the user messages, likewise
//	user              text of the last user message
//	question          its last line that is not blank
//	instructions      the instructions, system and developer messages
//	tools             names of the declared tools
//	model             name of the model asked for
//	first_line TEXT   line N TEXT   line_with "PART" TEXT: a line of a text
//	lines TEXT        the number of its lines
//	shorten N TEXT    at most N characters, in one line
//	json VALUE        VALUE as JSON, for arguments
//
// N counts from 1 over the whole conversation, or back from the last with -1.
// The name may be left out, to count all calls, and the number, for call 1.
package rehearsal
