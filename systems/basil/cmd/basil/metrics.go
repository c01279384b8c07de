package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/transport"
)

var (
	decidedDesc   = prometheus.NewDesc("basil_transactions_total", "Transactions that the replica learnt the decision of.", []string{"decision"}, nil)
	votesDesc     = prometheus.NewDesc("basil_votes_total", "Votes that the replica cast.", []string{"vote"}, nil)
	batchesDesc   = prometheus.NewDesc("basil_batches_total", "Batches of replies that were signed together.", nil, nil)
	signedDesc    = prometheus.NewDesc("basil_signed_replies_total", "Replies that were signed, in batches.", nil, nil)
	fallbacksDesc = prometheus.NewDesc("basil_fallbacks_total", "Times that the replica took part in finishing a stalled transaction.", nil, nil)
)

// counters are a replica's counters. They are read in the replica's loop, and only on request.
type counters struct{ host *transport.ReplicaHost }

// Describe names the metrics.
func (c counters) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{decidedDesc, votesDesc, batchesDesc, signedDesc, fallbacksDesc} {
		ch <- d
	}
}

// Collect reads them.
func (c counters) Collect(ch chan<- prometheus.Metric) {
	var now replica.Counters
	if !c.host.Do(func() { now = c.host.Replica.Counters }) {
		return // serveMetrics serves the metrics of the replica, the process and the Go runtime, and profiles of processor time, until the server is closed.
	}
	send := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	send(decidedDesc, now.Committed, "commit")
	send(decidedDesc, now.Aborted, "abort")
	send(votesDesc, now.VotesCommit, "commit")
	send(votesDesc, now.VotesAbort, "abort")
	send(batchesDesc, now.Batches)
	send(signedDesc, now.Signed)
	send(fallbacksDesc, now.Fallbacks)
}

// serveMetrics serves those of the replica, the process and the Go runtime, and profiles of
// processor time, until the server is closed.
func serveMetrics(address string, host *transport.ReplicaHost) (*http.Server, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{counters{host}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile) // it costs nothing without a request
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(listener) }() // ends when the server is closed
	return s, nil
}
