// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package chatmd reads and writes ChatMarkdown: one text file that is a program
// (model, tools, instructions), a prompt and the transcript of its runs.
//
// [Parse] reads a file, checks it completely and reports every mistake with its
// place; [Load] also reads the files that it imports. [File.Items] returns its
// messages as items. The documents, images, files and agents that they refer to come
// from a [Resolver]; this package does no I/O. [Append] writes an item as one
// element, so that reading the element gives an equal item; a [Writer] can put long
// payloads into other files. [Recover] finds the end of the complete part of a
// transcript after a crash. [File.Format] gives a file a uniform layout.
//
// # White space
//
// White space at the beginning and the end of a message's text is not part of the
// text, and neither is white space around its images and files. Text in a fence,
// RAW| … |RAW, is kept exactly, except for one newline after the opening mark and
// one before the closing mark. White space is space, tab, carriage return and
// newline. A message without content adds no item; with an empty fence, RAW||RAW, it
// is a message with an empty text.
//
// # Items
//
// The user, system and developer elements become messages with a list of parts;
// content="text" makes the content a plain string. An assistant element becomes a
// message with a plain string, or, if it has an id, with one output_text part, whose
// annotations are [] unless the attribute of that name is given; content="text" and
// content="parts" override this. The status is completed unless it is given
// (status="none" omits it), logprobs="[]" adds that member, and the flag refusal
// makes the part a refusal. An image in a message has detail "auto" unless it is
// given; detail="" omits it. A summary with type="reasoning_text" is a part of the
// reasoning item's content. The attribute null names members with the value null,
// which some servers send instead of omitting the members.
package chatmd
