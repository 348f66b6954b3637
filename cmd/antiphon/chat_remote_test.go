// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestChatAttachRemote proves that a chat at another computer shows a session through a server, answers
// about its calls, says something to it and leaves it; and that it says that the server is gone, and goes
// on when it is back, with every row once. J2 V2
func TestChatAttachRemote(t *testing.T) {
	t.Parallel()
	dir, one := chatter(t, "again\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n", "--session work --owner shop")
	env := []string{"XDG_DATA_HOME=" + dir + "/data"}
	o := programEnv(t, env, "keys", "create", "lead", "--project", "shop", "--scopes", "sessions,approve")
	key := strings.TrimSpace(o.out)
	if o.code != exitOK || !strings.HasPrefix(key, "antiphon_") {
		t.Fatalf("%d %s%s", o.code, o.out, o.err)
	}
	serve := func(listen string) *terminalOf {
		return openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data; antiphon serve agent.md --store s.db --listen "+listen)
	}
	server := serve("127.0.0.1:0")
	at := strings.TrimSuffix(listening.FindString(server.until(t, "/v1/responses")), "/v1")

	one.keys(t, "go", "Enter")
	one.until(t, "run it?")
	attach := "antiphon chat --attach " + at + "/work"
	two := openTerminal(t, t.TempDir(), "export XDG_DATA_HOME="+dir+"/elsewhere ANTIPHON_SERVER_KEY="+key+"; "+attach)
	two.until(t, "attached to "+at+"/work")
	two.until(t, "run it?")
	two.answers(t, "y", "It was: done")
	one.until(t, "answered by lead (session route): yes")
	one.until(t, "It was: done")

	two.does(t, "more", "(said: ")
	asked := func(screen string) bool { return strings.Count(screen, "run it?") == 2 }
	one.untilThat(t, "the second question", asked)
	two.untilThat(t, "the second question", asked)
	server.keys(t, "C-c")
	two.until(t, "the connection to "+strings.TrimPrefix(at, "http://")+" is lost")
	one.answers(t, "n not there", "It was: The call was refused by the person in charge: not there")
	server.until(t, "[exit code 0]")
	serve(strings.TrimPrefix(at, "http://")).until(t, "/v1/responses")
	two.until(t, "connected to "+strings.TrimPrefix(at, "http://")+" again")
	two.until(t, "answered by ")
	screen := two.until(t, "It was: The call was refused by the person in charge: not there")
	if strings.Count(screen, "It was: done") != 1 || strings.Count(screen, "It was: The call") != 1 {
		t.Errorf("rows are lost or doubled:\n%s", screen)
	}
	two.does(t, "/take", "!! /take needs the store of the session")
	two.keys(t, "C-d")
	two.until(t, "left "+at+"/work; "+attach+" returns")
	two.until(t, "[exit code 0]")
	one.keys(t, "C-d")
	one.until(t, "[exit code 0]")
}
