// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/tracing"
)

// traceFlags say where the spans of runs are sent. An address in the environment alone sends
// nothing: it may be there for another program.
type traceFlags struct {
	OTLP string `name:"otlp-endpoint" placeholder:"URL" help:"Send the spans of agents' runs and of responses of upstreams, without contents, to a collector of OpenTelemetry by OTLP over HTTP, such as http://127.0.0.1:4318. Headers for it are in OTEL_EXPORTER_OTLP_HEADERS."`
}

// otlpHeaders is the standard variable with headers for the collector.
const otlpHeaders = "OTEL_EXPORTER_OTLP_HEADERS"

// mostFlush is how long the end of the server waits for the last spans.
const mostFlush = 5 * time.Second

// trace gives a gateway that may be nil hooks that send spans, and returns those of an agent. end sends the
// last ones.
func (c *traceFlags) trace(up *gateway.Backend, env environment, failed func(error)) (hooks func(name string) []agent.Hooks, end func(), err error) {
	if c.OTLP == "" {
		return nil, func() {}, nil
	}
	out, err := newExporter(c.OTLP, env[otlpHeaders], failed)
	if err != nil {
		return nil, nil, usage(fmt.Errorf("--otlp-endpoint: %w", err))
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "antiphon"), attribute.String("service.version", programVersion()))))
	hooks = func(name string) []agent.Hooks {
		return []agent.Hooks{tracing.New(tracing.Options{TracerProvider: p, Agent: name})}
	}
	if up != nil {
		up.Hooks = tracing.New(tracing.Options{TracerProvider: p})
	}
	return hooks, func() {
		ctx, stop := context.WithTimeout(context.Background(), mostFlush)
		defer stop()
		if err := p.Shutdown(ctx); err != nil {
			failed(err)
		}
	}, nil
}

// traced is trace for what is served.
func (s *serving) traced(c *traceFlags, env environment) (end func(), err error) {
	failed := func(err error) {
		if s.agents != nil {
			s.agents.Log(err)
		} else {
			s.upstreams.Log(err)
		}
	}
	if s.hooks, end, err = c.trace(s.upstreams, env, failed); err == nil && s.hooks != nil && s.agents != nil {
		for i := range s.agents.Agents {
			a := &s.agents.Agents[i]
			a.Hooks = s.hooks(a.Name)
		}
	}
	return end, err
}

// exporter sends spans by OTLP, as JSON. OpenTelemetry's own exporter links gRPC, for which each
// start of the program would pay, also where nobody asks for spans.
type exporter struct {
	url    string
	header http.Header
	client *http.Client
	failed func(error)
	silent atomic.Bool // a failure was told, and nothing was sent since
}

// newExporter returns an exporter to a collector. headers are as in the standard variable.
func newExporter(address, headers string, failed func(error)) (*exporter, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("not an address such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the address has a user, a query or a fragment: headers are in $%s", otlpHeaders)
	case u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		return nil, errors.New("http is for loopback alone, because nothing would be encrypted")
	}
	e := &exporter{url: u.JoinPath("v1", "traces").String(), header: http.Header{"Content-Type": {"application/json"}}, failed: failed}
	for pair := range strings.SplitSeq(headers, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if strings.TrimSpace(pair) == "" {
			continue
		}
		if value, err = url.PathUnescape(strings.TrimSpace(value)); !ok || err != nil {
			return nil, fmt.Errorf("$%s is not a list such as name=value,name=value", otlpHeaders)
		}
		name = strings.TrimSpace(name)
		plain := func(r rune) bool {
			return r < 0x7f && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_')
		}
		if name == "" || strings.TrimFunc(name, plain) != "" || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("$%s has a header that HTTP does not allow", otlpHeaders)
		}
		e.header.Set(name, value)
	}
	e.client = &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the headers are for one host
	}}
	return e, nil
}

// ExportSpans implements [sdktrace.SpanExporter]. What could not be sent is lost: the server does
// not wait for its collector.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := json.Marshal(otlpOf(spans))
	if err == nil {
		err = e.post(ctx, body)
	}
	if err == nil {
		e.silent.Store(false)
	} else if !e.silent.Swap(true) {
		e.failed(fmt.Errorf("spans could not be sent: %w", err))
	}
	return nil
}

func (e *exporter) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = e.header.Clone()
	resp, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the collector answers with status %d", resp.StatusCode)
	}
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// The JSON of OTLP: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
type (
	otlpRequest struct {
		Resources []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		Scopes []otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		State      string          `json:"traceState,omitempty"`
		Flags      uint32          `json:"flags"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes"`
		Events     []otlpEvent     `json:"events"`
		Status     struct {
			Code    int    `json:"code"`
			Message string `json:"message,omitempty"`
		} `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// otlpOf returns spans of one provider in the form of OTLP.
func otlpOf(spans []sdktrace.ReadOnlySpan) (r otlpRequest) {
	if len(spans) == 0 {
		return otlpRequest{Resources: []otlpResource{}}
	}
	var of otlpResource
	of.Resource.Attributes = otlpAttributes(spans[0].Resource().Attributes())
	scopes := map[string]int{}
	for _, s := range spans {
		name := s.InstrumentationScope().Name
		at, known := scopes[name]
		if !known {
			at = len(of.Scopes)
			scopes[name] = at
			of.Scopes = append(of.Scopes, otlpScope{})
			of.Scopes[at].Scope.Name = name
		}
		id := s.SpanContext()
		v := otlpSpan{
			TraceID: hexOf(id.TraceID()), SpanID: hexOfSpan(id.SpanID()), State: id.TraceState().String(), Flags: uint32(id.TraceFlags()),
			Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
			Attributes: otlpAttributes(s.Attributes()), Events: []otlpEvent{},
		}
		if parent := s.Parent(); parent.SpanID().IsValid() {
			v.Parent = hexOfSpan(parent.SpanID())
		}
		for _, e := range s.Events() {
			v.Events = append(v.Events, otlpEvent{nanos(e.Time), e.Name, otlpAttributes(e.Attributes)})
		}
		switch s.Status().Code {
		case codes.Ok:
			v.Status.Code = 1
		case codes.Error:
			v.Status.Code, v.Status.Message = 2, s.Status().Description
		}
		of.Scopes[at].Spans = append(of.Scopes[at].Spans, v)
	}
	r.Resources = []otlpResource{of}
	return r
}

func hexOf(id [16]byte) string    { return hex.EncodeToString(id[:]) }
func hexOfSpan(id [8]byte) string { return hex.EncodeToString(id[:]) }

// nanos is a time in the form of 64-bit numbers in this JSON: a string.
func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func otlpAttributes(list []attribute.KeyValue) []otlpAttribute {
	all := []otlpAttribute{}
	for _, kv := range list {
		all = append(all, otlpAttribute{string(kv.Key), otlpValue(kv.Value)})
	}
	return all
}

func otlpValue(v attribute.Value) map[string]any {
	several := func(n int, at func(int) attribute.Value) map[string]any {
		values := []map[string]any{}
		for i := range n {
			values = append(values, otlpValue(at(i)))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	switch v.Type() {
	case attribute.BOOL:
		return map[string]any{"boolValue": v.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": v.AsFloat64()}
	case attribute.STRINGSLICE:
		list := v.AsStringSlice()
		return several(len(list), func(i int) attribute.Value { return attribute.StringValue(list[i]) })
	case attribute.INT64SLICE:
		list := v.AsInt64Slice()
		return several(len(list), func(i int) attribute.Value { return attribute.Int64Value(list[i]) })
	}
	return map[string]any{"stringValue": v.String()}
}
