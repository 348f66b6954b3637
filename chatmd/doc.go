// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package chatmd reads and writes ChatMarkdown: one text file that is a
// program (model, tools, instructions), a prompt and the transcript of its runs.
//
// [Parse] reads a file, checks all of it and reports every mistake with its
// place; [Load] reads what it imports too. [File.Items] turns its messages into
// items; what they refer to, documents, images, files and agents that are to be
// asked, comes from a [Resolver], this package does no I/O. [Append] writes an
// item as one element, such that reading it gives an equal item; a [Writer] puts
// long payloads elsewhere. [Recover] finds the end of what is whole in a
// transcript that a crash left unfinished. [File.Format] gives a file one layout.
//
// # White space
//
// White space at the beginning and the end of a message's text is not part of
// it, nor is white space around its images and files. Text in a fence,
// RAW| … |RAW, is exact, but for the one newline after the opener and the one
// before the closer. White space is space, tab, carriage return and newline. A
// message with nothing in it adds no item; with an empty fence, RAW||RAW, it is
// a message with an empty text.
//
// # What reading gives
//
// The user, system and developer elements give messages with a list of parts;
// content="text" makes the content a plain string. An assistant element gives a
// plain string, or with an id one output_text part, whose annotations are []
// unless the attribute of that name says otherwise; content="text" and
// content="parts" overrule that, the status is completed unless given
// (status="none" leaves it out), logprobs="[]" adds that member and the flag
// refusal makes the part a refusal. An image in a message has detail "auto"
// unless given; detail="" leaves it out. A summary with type="reasoning_text"
// is a part of the reasoning item's content. The attribute null names members
// that are null, which some servers send for all that they leave out.
package chatmd
