// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

const dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func dotPicture(t *testing.T) item.Item {
	it, err := item.UserParts(&item.InputText{Text: "look"}, &item.InputImage{ImageURL: dot})
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// T12: an image that a server refuses with the status of an outage does not end
// the session: a marker is sent for it, over both APIs, and a notice says so once.
func TestImagesRefusedAsOutage(t *testing.T) {
	for _, chat := range []bool{false, true} {
		t.Run(fmt.Sprint(chat), func(t *testing.T) {
			l := agenttest.StartLocal(t, &agenttest.Local{Text: numbers, NoImages: true})
			a := &agent.Agent{Model: localModel(l, chat)}
			a.Request.Model = "m"
			s := session.New()
			for range 2 {
				if res, err := a.Run(t.Context(), s, dotPicture(t)); err != nil || res.Why != agent.StopEndTurn || res.Text != numbers {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			notices, quarantined := 0, 0
			for e := range s.Entries() {
				switch b := e.Body.(type) {
				case session.Noticed:
					if b.Kind == session.NoticeImagesRefused {
						notices++
					}
				case session.Quarantined:
					quarantined++
				}
			}
			if notices != 2 || quarantined != 2 {
				t.Errorf("%d notices in two runs, %d images in quarantine", notices, quarantined)
			}
			if n := len(l.Requests()); n != 4 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// T12: an image is put in quarantine whatever status a server refuses it with; a
// gateway says 404, for it has no such model that sees.
func TestImagesRefusedByAnyStatus(t *testing.T) {
	for _, c := range []struct {
		status  int
		code    string
		asked   int
		refuses bool
	}{{404, "", 2, true}, {415, "", 2, true}, {422, "", 2, true}, {501, "", 2, true}, {404, "model_not_found", 1, false}, {401, "", 1, false}} {
		r := newRig(t)
		r.server.Otherwise(func(_ int, q agenttest.Request) agenttest.Reply {
			if strings.Contains(string(q.Body), "input_image") {
				return agenttest.Failure(c.status, c.code, "No endpoints found that support image input")
			}
			return agenttest.Completed(item.Assistant("I see a marker."))
		})
		r.agent.Retry = endpoint.Retry{Max: -1}
		res, err := r.agent.Run(t.Context(), r.session, dotPicture(t))
		if (err == nil && res.Why == agent.StopEndTurn) != c.refuses || len(r.server.Requests()) != c.asked {
			t.Errorf("%d %s: %d requests, %v", c.status, c.code, len(r.server.Requests()), err)
		}
	}
}

// T12: a server that fails whatever it is sent keeps its images.
func TestImagesInAnOutage(t *testing.T) {
	r := newRig(t)
	r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(500, "server_error", "oh") })
	_, err := r.agent.Run(t.Context(), r.session, dotPicture(t))
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.Server {
		t.Fatalf("got %v", err)
	}
	for e := range r.session.Entries() {
		if _, ok := e.Body.(session.Quarantined); ok {
			t.Error("an image is in quarantine")
		}
	}
}

// S11: a reply with as many tokens as the request allows is incomplete, whatever
// its status says, over both APIs; a shorter one is not.
func TestReplyAtItsLimit(t *testing.T) {
	for _, chat := range []bool{false, true} {
		l := agenttest.StartLocal(t, &agenttest.Local{Text: prose(40)})
		a := &agent.Agent{Model: localModel(l, chat)}
		a.Request.Model = "m"
		for limit, want := range map[int64]agent.StopReason{20: agent.StopIncomplete, 41: agent.StopEndTurn} {
			a.Request.MaxOutputTokens = &limit
			res, err := a.Run(t.Context(), session.New(), item.User("go"))
			if err != nil || res.Why != want {
				t.Errorf("chat %v, at most %d tokens: %+v, %v", chat, limit, res, err)
			}
		}
	}
}
