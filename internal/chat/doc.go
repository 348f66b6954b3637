// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package chat holds a conversation at a terminal: it opens the session of an agent's file, takes prompts, commands and shell lines,
// shows what the runs do, and asks the person. It has no flags: [Config] says what it is about, and [Program] is what it uses of the
// program around it. A session that another process runs is shown until it can go on here.
package chat
