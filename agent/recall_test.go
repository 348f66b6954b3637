// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// process is a run as a new process makes it, and returns how many messages its
// request had and as what kind of server the endpoint is known then.
func process(t *testing.T, api string, l *agenttest.Local, profile *endpoint.Profile, s *session.Session, input ...item.Item) (messages int, known string) {
	t.Helper()
	var model interface {
		agent.Model
		agent.Describer
	} = &responses.Client{BaseURL: l.URL, Profile: profile, Retry: endpoint.Retry{Max: -1}}
	switch api {
	case "chat":
		model = &completions.Client{BaseURL: l.URL, Profile: profile, Retry: endpoint.Retry{Max: -1}}
	case "chain":
		model = &responses.Chain{Client: &responses.Client{BaseURL: l.URL, Profile: profile, Retry: endpoint.Retry{Max: -1}}}
	}
	a := &agent.Agent{Model: model}
	a.Request.Model = "m"
	if _, err := a.Run(t.Context(), s, input...); err != nil {
		t.Fatal(err)
	}
	requests := l.Requests()
	return len(requests[len(requests)-1].Messages), model.About().Profile
}

// E7 J12: what the answers of a server told holds for the next process of the
// session, from its first request on, as long as the address is the same and
// nobody says otherwise.
func TestKindOfServerIsRecalled(t *testing.T) {
	for _, api := range []string{"responses", "chain", "chat"} {
		t.Run(api, func(t *testing.T) {
			l := agenttest.StartLocal(t, &agenttest.Local{Server: "llama.cpp", Text: "It is so."})
			other := agenttest.StartLocal(t, &agenttest.Local{Text: "It is so."})
			careful := endpoint.Careful
			s := session.New()
			check := func(what string, l *agenttest.Local, profile *endpoint.Profile, messages int, known string, input ...item.Item) {
				t.Helper()
				if n, now := process(t, api, l, profile, s, input...); n != messages || now != known {
					t.Errorf("%s: %d messages, then %s; want %d, %s", what, n, now, messages, known)
				}
			}
			// Only a server that is known as llama.cpp gets the two as one.
			check("the first", l, nil, 2, "llama.cpp", item.User("a"), item.User("b"))
			check("the second", l, nil, 3, "llama.cpp", item.User("c"))
			check("the third", l, nil, 5, "llama.cpp", item.User("d"))
			check("a profile that was given", l, &careful, 8, "careful", item.User("e"))
			check("none given", l, nil, 9, "llama.cpp", item.User("f"))
			l.Server = "another"
			check("another server at the address", l, nil, 11, "careful", item.User("g"))
			check("after that", l, nil, 14, "careful", item.User("h"))
			l.Server = "llama.cpp"
			check("the first again", l, nil, 16, "llama.cpp", item.User("i"))
			check("another address", other, nil, 18, "careful", item.User("j"))
			check("and back", l, nil, 20, "llama.cpp", item.User("k"))
			check("which told again", l, nil, 21, "llama.cpp", item.User("l"))
		})
	}
}
