// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/antiphon-go/antiphon/server/access"
)

// serverMetrics serves the measures of a server. Labels are routes, states, limits,
// projects and agents: neither contents nor keys.
func serverMetrics(g *access.Guard) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&serveMetricsOf{g})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// serveMetricsOf reads the measures when they are asked for.
type serveMetricsOf struct{ guard *access.Guard }

var (
	metricRunning     = metric("server_responses_running", "Responses that are being made.")
	metricOpen        = metric("server_requests_open", "Requests that are being served, with their streams and WebSockets.")
	metricConnections = metric("server_connections", "Connections.")
	metricDropped     = metric("server_connections_dropped_total", "Connections that were closed to make room for others, because they had sent no request.")
	metricOverloaded  = metric("server_overloaded_total", "Requests that were refused because all places were taken.")
	metricRequests    = metric("server_request_seconds", "How long answers took, with their streams.", "route", "status")
	metricLimited     = metric("server_limited_total", "Requests that a limit of a key has refused, or would have refused in a trial.", "limit", "trial")
	metricResponses   = metric("server_responses_total", "Responses that have ended.", "project", "agent", "status")
	metricTokens      = metric("server_tokens_total", "Tokens that models have counted.", "project", "agent", "status", "kind")
	metricCost        = metric("server_cost_total", "What responses have cost, in the unit of the agents' prices.", "project", "agent", "status")
	metricsOfServer   = []*prometheus.Desc{metricRunning, metricOpen, metricConnections, metricDropped, metricOverloaded, metricRequests, metricLimited, metricResponses, metricTokens, metricCost}
)

// Describe implements [prometheus.Collector].
func (m *serveMetricsOf) Describe(to chan<- *prometheus.Desc) {
	for _, d := range metricsOfServer {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *serveMetricsOf) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "?")
		}
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	c := m.guard.Counts()
	gauge(metricRunning, c.Running)
	gauge(metricOpen, c.Requests)
	gauge(metricConnections, c.Connections)
	count(metricDropped, float64(c.Dropped))
	count(metricOverloaded, float64(c.Overloaded))
	for kind, t := range c.Served {
		within := map[float64]uint64{}
		for i, n := range t.Within {
			within[access.Steps[i]] = uint64(n)
		}
		to <- prometheus.MustNewConstHistogram(metricRequests, uint64(t.Count), t.Seconds, within, kind.Route, strconv.Itoa(kind.Status))
	}
	for kind, n := range c.Limited {
		count(metricLimited, float64(n), kind.Limit, strconv.FormatBool(kind.Trial))
	}
	for kind, u := range c.Used {
		count(metricResponses, float64(u.Responses), kind.Project, kind.Agent, kind.Status)
		count(metricTokens, float64(u.InputTokens), kind.Project, kind.Agent, kind.Status, "input")
		count(metricTokens, float64(u.OutputTokens), kind.Project, kind.Agent, kind.Status, "output")
		count(metricCost, u.Cost, kind.Project, kind.Agent, kind.Status)
	}
}
