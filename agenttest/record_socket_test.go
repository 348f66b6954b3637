// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// talk says the messages on one socket each, and returns what came back.
func talk(t *testing.T, base string, sockets ...[]string) (heard []string) {
	t.Helper()
	for _, messages := range sockets {
		c, resp, err := websocket.Dial(t.Context(), base+"/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}})
		if err != nil {
			status := 0
			if resp != nil {
				status = resp.StatusCode
			}
			heard = append(heard, fmt.Sprint("refused ", status))
			continue
		}
		c.SetReadLimit(-1)
		for _, m := range messages {
			if err := c.Write(t.Context(), websocket.MessageText, []byte(m)); err != nil {
				heard = append(heard, "cannot write")
				break
			}
			got, err := hear(t, c)
			heard = append(heard, got...)
			if err != nil {
				heard = append(heard, fmt.Sprint("end ", websocket.CloseStatus(err)))
				break
			}
		}
		c.Close(websocket.StatusNormalClosure, "bye")
	}
	return heard
}

// S10 J6: the frames of WebSockets are recorded in order, by a proxy before the
// real socket, and played back by a real one.
func TestRecordSocket(t *testing.T) {
	srv := agenttest.NewServer(t,
		agenttest.Failure(401, "invalid_api_key", "no").AtUpgrade(),
		agenttest.Completed(item.Assistant("one "+secret)),
		agenttest.Completed(item.Assistant("two")).WithBinary(2, "\x00\xff"),
		agenttest.Completed(item.Assistant("gone")).CloseAfter(3, 1011, "oh"),
		agenttest.Completed(item.Assistant("three")).CutAfter(900),
		agenttest.Completed(item.Assistant("four")))
	sockets := [][]string{{"never said"}, {create, create}, {create}, {create}}
	var live []string
	file := recordOf(t, srv.URL, func(tape *agenttest.Tape) {
		base := tape.URL(srv.URL)
		live = talk(t, base, sockets...)
		live = append(live, postTo(t, base, `{"input":"x"}`))
	})
	for i := range live {
		live[i] = strings.ReplaceAll(live[i], secretJSON, "[scrubbed]")
	}
	text := read(t, file)
	for _, line := range []string{
		"> GET " + srv.URL + "/responses", "< 401 Unauthorized", "< 101 Switching Protocols", "> text", "< text", "< binary",
		"> close 1000 bye", "< close 1011 oh", "> Authorization: [scrubbed]", `. ` + create,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, secret) || strings.Contains(text, secretJSON) || strings.Contains(text, "Sec-Websocket-Key") {
		t.Errorf("a secret, or noise, in\n%s", text)
	}
	base := agenttest.Replay(t, file, endpoint.NewKey(secret)).URL(srv.URL)
	again := append(talk(t, base, sockets...), postTo(t, base, `{"input":"x"}`))
	if d := cmp.Diff(live, again); d != "" || len(live) < 20 {
		t.Errorf("%d messages (-live +played):\n%s", len(live), d)
	}
}

func postTo(t *testing.T, base, body string) string {
	t.Helper()
	resp, err := http.Post(base+"/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

const twoTurns = `antiphon recording 1

> GET wss://x/v1/responses
< 101 Switching Protocols
> text
. {"type":"response.create","n":1}
< text
. {"type":"response.completed","n":1}
> text
. {"type":"response.create","n":2}
< text
. {"type":"response.completed","n":2}
`

// A frame that differs fails with the difference, and so do frames left over
// and frames too many.
func TestReplaySocketMisses(t *testing.T) {
	one, two := `{"n":1,"type":"response.create"}`, `{"n":2,"type":"response.create"}`
	for _, tt := range []struct {
		name     string
		messages []string
		want     string
	}{
		{"all of it", []string{one, two}, ""},
		{"less", []string{one}, `record 0: 2 frames were not used, the first: {"type":"response.create","n":2}`},
		{"another", []string{one, one}, "a message is not the recorded one (-recorded +got):\n-   \"n\": 2,\n+   \"n\": 1,\n"},
		{"more", []string{one, two, two}, "a message behind the last one of the recording: " + two},
	} {
		fake := &fakeTB{TB: t}
		tape := agenttest.Replay(fake, write(t, twoTurns))
		talk(t, tape.URL("https://x/v1"), tt.messages)
		if errs := fake.end(); !strings.Contains(errs, tt.want) || (errs == "") != (tt.want == "") {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, errs, tt.want)
		}
	}
	fake := &fakeTB{TB: t}
	tape := agenttest.Replay(fake, write(t, twoTurns))
	if _, err := tape.Client().Get("https://x/v1/responses"); err == nil {
		t.Error("a WebSocket by a RoundTripper")
	}
	if errs := fake.end(); !strings.Contains(errs, "give the client the tape's URL") {
		t.Error(errs)
	}
}
