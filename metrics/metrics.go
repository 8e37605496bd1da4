// Package metrics counts and times the work of an App for Prometheus: requests, statements, jobs,
// handlers, calls of models, scans and archives.
//
// A Metrics is the Observer of a Config, and a Collector of a registry:
//
//	m := metrics.New(metrics.Options{})
//	app, err := tenantcontent.Open(tenantcontent.Config{Observer: m, …})
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(m, collectors.NewDBStatsCollector(db.DB, "main"))
//	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// Programs that want these metrics import it, and the server. Names and labels are those of the
// semantic conventions of OpenTelemetry where these have some; docs/monitoring.md lists them all. A
// tenant, user, app or path is never a label, so that the number of series depends on the program,
// and not on what is stored.
package metrics

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Options are the settings of a Metrics. The zero value has the defaults.
type Options struct {
	// URLScheme is the label url_scheme of requests, http or https, which only the proxy of a
	// server may know; default http.
	URLScheme string
	// Version is the label version of tenantcontent_build_info; default "devel".
	Version string
}

// Metrics is an entity.Observer and a prometheus.Collector. It is safe for several goroutines, and
// one Metrics may observe several Apps.
type Metrics struct {
	scheme     string
	collectors []prometheus.Collector
	active     prometheus.Gauge
	histograms map[entity.Work]histogram

	// series has the histogram of each series that was used. It is copied when one is added, so
	// that Observe reads it without a lock and allocates nothing.
	series atomic.Pointer[map[series]prometheus.Observer]
	adding sync.Mutex
}

// histogram is the metric of one kind of work.
type histogram struct {
	vec    *prometheus.HistogramVec
	labels func(m *Metrics, s series) []string // values, in the order of the names of the labels
}

// series identifies one series of the histograms.
type series struct {
	work    entity.Work
	kind    string
	outcome string
	status  int
}

// Buckets of durations, in seconds: of answers and statements, and of work that takes longer.
var (
	short = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	long  = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800}
)

// New returns a Metrics.
func New(o Options) *Metrics {
	m := &Metrics{scheme: cmp.Or(o.URLScheme, "http"), histograms: map[entity.Work]histogram{}}
	m.series.Store(&map[series]prometheus.Observer{})
	add := func(
		work entity.Work, name, help string, buckets []float64,
		labels func(m *Metrics, s series) []string, names ...string,
	) {
		vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, names)
		m.histograms[work] = histogram{vec, labels}
		m.collectors = append(m.collectors, vec)
	}
	add(
		entity.RequestWork, "http_server_request_duration_seconds",
		"Time from the head of a request to the end of its answer.", short, requestLabels,
		"http_request_method", "http_route", "http_response_status_code", "url_scheme", "error_type",
	)
	add(
		entity.StatementWork, "db_client_operation_duration_seconds",
		"Time of SQL statements of the service, without those of apps.", short, failureLabels,
		"db_operation_name", "error_type",
	)
	add(
		entity.JobWork, "tenantcontent_job_duration_seconds", "Time of tries of jobs of the queue.", long,
		outcomeLabels, "kind", "outcome",
	)
	add(
		entity.HandlerWork, "tenantcontent_handler_duration_seconds",
		"Time of runs of the handlers of apps.", long, outcomeLabels, "area", "outcome",
	)
	add(
		entity.ModelWork, "gen_ai_client_operation_duration_seconds", "Time of calls of language models.", long,
		failureLabels, "gen_ai_operation_name", "error_type",
	)
	add(
		entity.ScanWork, "tenantcontent_scan_duration_seconds", "Time of scans of directories.", long,
		outcomeLabels, "driver", "outcome",
	)
	add(
		entity.ArchiveWork, "tenantcontent_archive_duration_seconds",
		"Time of exports, imports, restores and deploys of archives.", long, outcomeLabels, "operation", "outcome",
	)
	m.active = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "http_server_active_requests", Help: "Requests that have begun and not ended.",
	})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tenantcontent_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(o.Version, "devel")},
	})
	info.Set(1)
	m.collectors = append(m.collectors, m.active, info)
	return m
}

// Begin implements entity.Beginner.
func (m *Metrics) Begin(ctx context.Context, work entity.Work) context.Context {
	if work == entity.RequestWork {
		m.active.Inc()
	}
	return ctx
}

// Observe implements entity.Observer.
func (m *Metrics) Observe(_ context.Context, o entity.Observation) {
	if o.Work == entity.RequestWork {
		m.active.Dec()
	}
	s := series{work: o.Work, kind: o.Kind, outcome: o.Outcome, status: o.Status}
	if o.Work == entity.HandlerWork {
		s.kind, _, _ = strings.Cut(o.Kind, " ") // tenants name the routes
	}
	h, ok := (*m.series.Load())[s]
	if !ok {
		h = m.add(s)
	}
	if h != nil {
		h.Observe(o.Duration.Seconds())
	}
}

// add adds a series, and returns nil for a kind of work that has no metric.
func (m *Metrics) add(s series) prometheus.Observer {
	h, ok := m.histograms[s.work]
	if !ok {
		return nil
	}
	m.adding.Lock()
	defer m.adding.Unlock()
	all := maps.Clone(*m.series.Load())
	all[s] = h.vec.WithLabelValues(h.labels(m, s)...)
	m.series.Store(&all)
	return all[s]
}

// requestLabels returns the labels of a request. The method of a request that has no route is
// _OTHER. A parameter of a route is written as {key}, as OpenTelemetry has it.
func requestLabels(m *Metrics, s series) []string {
	method, route, ok := strings.Cut(s.kind, " ")
	if !ok {
		method = "_OTHER"
	}
	parts := strings.Split(route, "/")
	for i, p := range parts {
		if name := strings.TrimLeft(p, ":*"); name != p {
			parts[i] = "{" + name + "}"
		}
	}
	return []string{method, strings.Join(parts, "/"), strconv.Itoa(s.status), m.scheme, failure(s)}
}

func failureLabels(_ *Metrics, s series) []string { return []string{s.kind, failure(s)} }

func outcomeLabels(_ *Metrics, s series) []string { return []string{s.kind, s.outcome} }

// failure returns the label error_type: empty for what has succeeded.
func failure(s series) string {
	if s.outcome == entity.OK {
		return ""
	}
	return s.outcome
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors {
		c.Collect(out)
	}
}
