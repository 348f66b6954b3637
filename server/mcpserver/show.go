// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool/output"
)

// MetaSession is the member of a result's _meta that names the session of the call.
const MetaSession = "antiphon/session"

// maxImages bounds the images of a result: the newest ones are shown.
const maxImages = 8

// result returns what the client gets of a run: the answer, images that the agent made or
// that its tools returned, and what is to know about the run.
func (c *call) result(res *agent.Result, failure error) *mcp.CallToolResult {
	out := &mcp.CallToolResult{Meta: mcp.Meta{MetaSession: c.session}}
	say := func(text string) { out.Content = append(out.Content, &mcp.TextContent{Text: text}) }
	if res.Text != "" {
		say(res.Text)
	}
	images, left := c.images()
	out.Content = append(out.Content, images...)
	if left > 0 {
		say(fmt.Sprintf("[%d earlier images are left out]", left))
	}
	switch why := c.stopped(res, failure); {
	case why != "":
		out.IsError = true
		say(why)
	case len(out.Content) == 0:
		say("The agent has ended without an answer.")
	}
	for _, r := range c.refused {
		say(r.words())
	}
	say(fmt.Sprintf("[session %s: a call with it continues this conversation]", c.session))
	return out
}

// stopped says why a run ended before its answer, or returns "".
func (c *call) stopped(res *agent.Result, failure error) string {
	switch {
	case errors.Is(failure, agent.ErrNothingToSend) && c.r.Params.RequestState != "":
		return "The question has been answered before, and the agent has ended."
	case failure != nil:
		c.server.report(fmt.Errorf("the agent %s, session %s: %w", c.agent.Name, c.session, failure))
		return "The agent failed: " + c.plain(failure)
	case res.Why == agent.StopEndTurn || res.Why == agent.StopRefused:
		return ""
	case res.Why == agent.StopIncomplete:
		return "The answer is incomplete: the endpoint ended it (" + visible(res.Detail) + ")."
	case res.Why == agent.StopEmptyReply:
		return "The agent's model gave an empty reply."
	}
	return fmt.Sprintf("The agent stopped before its answer: %s. A call with its session continues it.", res.Why)
}

// words says how a refused call can be allowed.
func (r *refusedCall) words() string {
	text := fmt.Sprintf("A call of %s was refused, because it needs an approval and this client cannot ask for one.", visible(r.tool))
	if r.waited {
		text = fmt.Sprintf("A call of %s was refused, because it needs an approval and nobody answered the question.", visible(r.tool))
	}
	if r.why != "" {
		text = fmt.Sprintf("A call of %s was refused: %s.", visible(r.tool), r.why)
	}
	if r.hint != "" {
		text += " " + r.hint
	}
	return text
}

// images returns the newest images of the call, in order, and how many are left out.
func (c *call) images() (list []mcp.Content, left int) {
	seen := map[string]bool{}
	for _, e := range c.host.Session.Log()[min(c.begun, int64(len(c.host.Session.Log()))):] {
		var it item.Item
		switch b := e.Body.(type) {
		case session.OutputItem:
			it = b.Item
		case session.CallOutput:
			it = b.Item
		default:
			continue
		}
		if it.Type() != item.TypeImageGenerationCall && !it.IsOutput() {
			continue
		}
		for _, img := range imagesOf(it) {
			if key := string(img.Data); !seen[key] {
				seen[key] = true
				list = append(list, img)
			}
		}
	}
	left = max(0, len(list)-maxImages)
	return list[left:], left
}

// imagesOf returns the images in an item whose bytes are there.
func imagesOf(it item.Item) (list []*mcp.ImageContent) {
	whole, err := it.Whole()
	if err != nil {
		return nil // it is in the log; the answer counts
	}
	v, err := whole.Decode()
	if err != nil {
		return nil
	}
	var content item.Content
	switch v := v.(type) {
	case *item.ImageGenerationCall:
		if data, err := base64.StdEncoding.DecodeString(v.Result); err == nil {
			if kind := output.SniffImage(data); kind != "" {
				list = append(list, &mcp.ImageContent{Data: data, MIMEType: kind})
			}
		}
		return list
	case *item.FunctionCallOutput:
		content = v.Output
	case *item.CustomToolCallOutput:
		content = v.Output
	default:
		return nil
	}
	for _, part := range content.Parts {
		if img := imageOf(part); img != nil {
			list = append(list, img)
		}
	}
	return list
}

// imageOf returns an image part with its bytes, or nil.
func imageOf(part item.Part) *mcp.ImageContent {
	img, ok := part.(*item.InputImage)
	if !ok {
		return nil
	}
	_, payload, ok := strings.Cut(img.ImageURL, ";base64,")
	if !ok || !strings.HasPrefix(img.ImageURL, "data:") {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil || output.SniffImage(data) == "" {
		return nil
	}
	return &mcp.ImageContent{Data: data, MIMEType: output.SniffImage(data)}
}

// progress tells the client in words what the agent does, if the client wants to know.
type progress struct {
	r     *mcp.CallToolRequest
	token any
	steps float64
	last  string
	names map[string]string // of calls, by the session's depth and the id
}

func newProgress(r *mcp.CallToolRequest) *progress {
	return &progress{r: r, token: r.Params.GetProgressToken(), names: map[string]string{}}
}

// say tells the client something, once.
func (p *progress) say(ctx context.Context, text string) {
	if p.token == nil || text == "" || text == p.last {
		return
	}
	p.last = text
	p.steps++
	// A client that is gone ends the call by itself.
	_ = p.r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.steps, Message: text})
}

// event tells the client about an event of the run.
func (p *progress) event(ctx context.Context, ev agent.Event) {
	in, within := "", ""
	if n, ok := ev.(agent.SubagentEvent); ok {
		ev, in, within = n.Event, fmt.Sprint(n.Depth, n.Session), "the agent behind "+visible(n.Tool)+" "
	}
	switch ev := ev.(type) {
	case agent.Recorded:
		if text := p.entry(in, ev.Entry); text != "" {
			p.say(ctx, within+text)
		}
	case agent.Delta:
		if ev.Kind == agent.DeltaText {
			p.say(ctx, within+"writes")
		}
	case agent.Progress:
		switch ev.Kind {
		case agent.ProgressDelayed:
			p.say(ctx, within+"waits with the call of "+visible(ev.Tool)+": "+visible(clip(ev.Reason, 200)))
		case agent.ProgressCompacting:
			p.say(ctx, within+"shortens the conversation")
		default:
		}
	default:
	}
}

// entry returns what an entry means in words, or "".
func (p *progress) entry(in string, e session.Entry) string {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		return "asks its model"
	case session.OutputItem:
		if b.Item.IsCall() {
			p.names[in+b.Item.CallID()] = plan.ToolName(b.Item)
		}
	case session.CallStarted:
		return "calls " + visible(p.names[in+b.CallID])
	case session.CallOutput:
		if b.Failed {
			return "got an error from " + visible(p.names[in+b.CallID])
		}
		return "has the output of " + visible(p.names[in+b.CallID])
	default:
	}
	return ""
}

// visible returns foreign text without control characters, and without those that change
// the order of the text around them.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// indented returns foreign text with a mark before each line, so that none can be taken
// for words of this program.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  | " + visible(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip returns the beginning of a text.
func clip(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
