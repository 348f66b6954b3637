// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/item"
)

func (t *tracer) beforeModel(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
	ctx, o := t.start(ctx, t.model, excerpt.Name(c.Request.Model), c.Speaker, c.Started)
	if o != nil {
		o.span.SetAttributes(keyRequestModel.String(excerpt.Name(c.Request.Model)))
		if c.Session != "" {
			o.span.SetAttributes(keyConversation.String(c.Session))
		}
		if c.Turn > 0 { // it is of a run
			o.span.SetAttributes(keyTurn.Int(c.Turn), keyDepth.Int(c.Depth))
		}
		ctx, o.meta = endpoint.WithMeta(ctx)
	}
	return ctx, nil
}

func (t *tracer) afterModel(ctx context.Context, c *agent.ModelCall) error {
	if c.Stored {
		return nil // it was asked in another process
	}
	class := cmp.Or(c.Class, classOf(c.Err))
	if t.meter.on(ctx) {
		model := ""
		if c.Request != nil { // a hook may have removed it
			model = c.Request.Model
		}
		t.meter.answered(ctx, c, class, t.labels(opModel, c.Speaker, append(serverOf(c.Endpoint), keyRequestModel.String(excerpt.Name(model)))...))
	}
	o := opened(ctx, t.model)
	if o == nil {
		return nil
	}
	o.span.SetAttributes(serverOf(c.Endpoint)...)
	t.asked(o.span, c.Request)
	t.replied(o.span, c)
	reached(o, c.Err)
	if class != "" {
		t.fail(o.span, class, words(c.Err))
	}
	o.span.End(trace.WithTimestamp(c.Ended))
	return nil
}

// asked records the request as sent; later hooks may have changed it.
func (t *tracer) asked(span trace.Span, req *api.Request) {
	if req == nil {
		return
	}
	attrs := []attribute.KeyValue{keyRequestModel.String(excerpt.Name(req.Model)), keyStream.Bool(true)} // a run always streams
	if kind := outputType(req); kind != "" {
		attrs = append(attrs, keyOutputType.String(kind))
	}
	if req.MaxOutputTokens != nil {
		attrs = append(attrs, keyMaxTokens.Int64(*req.MaxOutputTokens))
	}
	if req.Temperature != nil {
		attrs = append(attrs, keyTemperature.Float64(*req.Temperature))
	}
	if req.TopP != nil {
		attrs = append(attrs, keyTopP.Float64(*req.TopP))
	}
	if req.Reasoning != nil && req.Reasoning.Effort != "" {
		attrs = append(attrs, keyReasoningLevel.String(excerpt.Name(req.Reasoning.Effort)))
	}
	if req.PreviousResponseID != "" {
		attrs = append(attrs, keyPrevious.String(excerpt.Name(req.PreviousResponseID)))
	}
	if t.Content {
		if req.Instructions != "" {
			attrs = append(attrs, keyInstructions.String(encoded([]part{{Type: "text", Content: excerpt.Text(req.Instructions, excerpt.MaxText)}})))
		}
		attrs = append(attrs, keyInputMessages.String(messages(fresh(req))))
	}
	span.SetAttributes(attrs...)
}

// outputType returns the type of output that the request demands, or "".
func outputType(req *api.Request) string {
	config, err := api.ParseTextConfig(req.Text)
	if err != nil || config.Format == nil {
		return ""
	}
	switch config.Format.Type {
	case api.TextJSONSchema, api.TextJSONObject:
		return "json"
	case api.TextPlain:
		return "text"
	}
	return ""
}

// fresh returns the items of a request after the model's last reply.
func fresh(req *api.Request) []item.Item {
	if req.Input == nil {
		return nil
	}
	n := req.Input.Len()
	from := n
	for from > 0 && !said(req.Input.At(from-1)) {
		from--
	}
	items := make([]item.Item, 0, n-from)
	for i := from; i < n; i++ {
		items = append(items, req.Input.At(i))
	}
	return items
}

// said reports whether an item comes from the model.
func said(it item.Item) bool {
	return it.IsCall() || it.Type() == item.TypeReasoning || it.Type() == item.TypeMessage && it.Role() == item.RoleAssistant
}

// replied records the reply.
func (t *tracer) replied(span trace.Span, c *agent.ModelCall) {
	attrs := []attribute.KeyValue{keyStatus.String(excerpt.Name(c.Status))}
	if c.ResponseID != "" {
		attrs = append(attrs, keyResponseID.String(excerpt.Name(c.ResponseID)))
	}
	if c.ResponseModel != "" {
		attrs = append(attrs, keyResponseModel.String(excerpt.Name(c.ResponseModel)))
	}
	if reason := finish(c); reason != "" {
		attrs = append(attrs, keyFinishReasons.StringSlice([]string{reason}))
	}
	if !c.First.IsZero() {
		attrs = append(attrs, keyFirstChunk.Float64(c.First.Sub(c.Started).Seconds()))
	}
	attrs = append(attrs, used(c.Usage, c.Cost)...)
	if k := c.Cache; k != nil {
		attrs = append(attrs, keyCacheExpected.Int64(k.Expected), keyCacheHit.Bool(k.Cached > 0))
		if k.Broken != nil {
			attrs = append(attrs, keyCacheBroken.String(k.Broken.Why))
		}
	}
	if t.Content && len(c.Output) > 0 {
		attrs = append(attrs, keyOutputMessages.String(reply(c.Output, cmp.Or(finish(c), "error"))))
	}
	span.SetAttributes(attrs...)
}

// used returns the attributes for tokens and their cost.
func used(u *api.Usage, cost float64) (attrs []attribute.KeyValue) {
	if u != nil {
		attrs = append(attrs, keyInputTokens.Int64(u.InputTokens), keyOutputTokens.Int64(u.OutputTokens),
			keyCachedTokens.Int64(u.Cached()), keyCacheWrite.Int64(u.CacheWrite()), keyReasoning.Int64(u.Reasoning()))
	}
	if cost > 0 {
		attrs = append(attrs, keyCost.Float64(cost))
	}
	return attrs
}

// finish returns the reason why the model stopped, or "" if it is not known.
func finish(c *agent.ModelCall) string {
	switch {
	case c.Status == item.StatusIncomplete && c.Reason == "max_output_tokens":
		return "length" // the word of the conventions
	case c.Status == item.StatusIncomplete:
		return excerpt.Name(c.Reason)
	case c.Status != item.StatusCompleted:
		return ""
	case slices.ContainsFunc(c.Output, item.Item.IsCall):
		return "tool_call"
	}
	return "stop"
}

// reached records the endpoint's metadata of the reply.
func reached(o *open, err error) {
	answer := o.meta.Latest()
	var e *endpoint.Error
	if errors.As(err, &e) {
		answer.Attempts = max(answer.Attempts, e.Attempts)
		answer.Status = cmp.Or(answer.Status, e.Status)
		answer.RequestID = cmp.Or(answer.RequestID, e.RequestID)
	}
	if answer.Attempts > 0 {
		o.span.SetAttributes(keyAttempts.Int(answer.Attempts))
	}
	if answer.Status > 0 {
		o.span.SetAttributes(keyHTTPStatus.Int(answer.Status))
	}
	if answer.RequestID != "" {
		o.span.SetAttributes(keyRequestID.String(excerpt.Name(answer.RequestID)))
	}
}

// serverOf returns the attributes of an endpoint's server. Its URL may be unknown.
func serverOf(endpointURL string) []attribute.KeyValue {
	u, err := url.Parse(endpointURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	attrs := []attribute.KeyValue{keyServer.String(excerpt.Name(u.Hostname()))}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https" || u.Scheme == "wss":
		port = 443
	case u.Scheme == "http" || u.Scheme == "ws":
		port = 80
	default:
		return attrs
	}
	return append(attrs, keyPort.Int(port))
}
