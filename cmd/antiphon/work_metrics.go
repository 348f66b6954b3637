// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// scrapeTime bounds the queries to the store for one request.
const scrapeTime = 5 * time.Second

// serveMetrics serves the measures of a worker and of its queue until end is called. Labels
// are states, kinds of reasons and tenants: neither contents nor names of sessions.
func serveMetrics(ctx context.Context, address string, w *worker.Worker) (end func(), err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, wrongAddress("--metrics", address, "HOST:PORT or :PORT", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	q, ok := w.Config.Store.(queue.Queue)
	if !ok {
		return nil, usage(errors.New("--metrics: the store keeps no work"))
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, usage(cannotListen("--metrics", address, err))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&workMetrics{worker: w, queue: q})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprintln(out, "ok") })
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, r *http.Request) {
		asking, stop := context.WithTimeout(r.Context(), scrapeTime)
		defer stop()
		_, err := q.Work(asking, "readyz")
		switch {
		case ctx.Err() != nil:
			http.Error(out, "the worker stops", http.StatusServiceUnavailable)
		case err != nil && !errors.Is(err, session.ErrNotFound):
			http.Error(out, "the store does not answer", http.StatusServiceUnavailable) // the log says why
		default:
			fmt.Fprintln(out, "ok")
		}
	})
	mux.HandleFunc("/", func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "not found: GET /metrics, /healthz and /readyz are served", http.StatusNotFound)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: scrapeTime}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.Log.Error("metrics end", "error", err.Error())
		}
	}()
	w.Log.Info("metrics", "url", "http://"+listener.Addr().String()+"/metrics")
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

// workMetrics reads the measures when they are asked for.
type workMetrics struct {
	worker *worker.Worker
	queue  queue.Queue
}

// metric describes a measure.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("antiphon_"+name, help, labels, nil)
}

var (
	metricRows    = metric("work", "Work in the queue of the store, without what is done.", "state", "tenant")
	metricAge     = metric("work_oldest_ready_seconds", "How long the oldest work that could begin has waited for a worker.")
	metricUp      = metric("work_queue_up", "Whether the queue could be read for this answer.")
	metricHeld    = metric("worker_sessions_held", "Sessions that this worker runs now, each with a lease.")
	metricLost    = metric("worker_leases_lost_total", "Sessions that another process has taken from this worker, because it was frozen or cut off.")
	metricBegun   = metric("worker_attempts_total", "Attempts that this worker has begun.")
	metricEnded   = metric("worker_ended_total", "How attempts of this worker have ended: done, waiting for an approval, or to be tried again.", "outcome")
	metricParked  = metric("worker_parked_total", "Work that this worker has parked.", "reason")
	metricSteps   = metric("worker_steps_total", "Replies of models, and calls with their outputs, in runs of this worker.", "kind")
	metricsOfWork = []*prometheus.Desc{metricRows, metricAge, metricUp, metricHeld, metricLost, metricBegun, metricEnded, metricParked, metricSteps}
)

// Describe implements [prometheus.Collector].
func (m *workMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range metricsOfWork {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *workMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	c := m.worker.Counts()
	gauge(metricHeld, float64(c.Running))
	count(metricLost, c.Lost)
	count(metricBegun, c.Begun)
	count(metricEnded, c.Done, "done")
	count(metricEnded, c.Waiting, "waiting")
	count(metricEnded, c.Retried, "retried")
	count(metricSteps, c.Turns, "turn")
	count(metricSteps, c.Calls, "call")
	for kind, n := range c.ParkedFor {
		count(metricParked, n, kind)
	}
	ctx, stop := context.WithTimeout(context.Background(), scrapeTime)
	defer stop()
	states := []queue.State{queue.Ready, queue.Running, queue.Waiting, queue.Parked}
	q, err := worker.Measure(ctx, m.queue, states...)
	if err != nil {
		gauge(metricUp, 0)
		return
	}
	gauge(metricUp, 1)
	gauge(metricAge, q.Age.Seconds())
	for tenant, works := range q.Tenants {
		for _, state := range states {
			gauge(metricRows, float64(works[state]), string(state), strings.ToValidUTF8(tenant, "?"))
		}
	}
}
