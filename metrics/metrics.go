// Package metrics counts and times the work of an App for Prometheus: requests, statements, jobs,
// handlers, calls of models, scans, archives, logins, waits and background tasks.
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
	"github.com/tenantcontent/tenantcontent/errs"
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
	waiting    *prometheus.GaugeVec
	recorders  map[entity.Work]func(s series) record

	// series has the record of each series that was used, and turns the gauge of each kind of turn.
	// They are copied when one is added, so that Begin and Observe read them without a lock and
	// allocate nothing.
	series atomic.Pointer[map[series]record]
	turns  atomic.Pointer[map[string]prometheus.Gauge]
	adding sync.Mutex
}

// record records an Observation in the metrics of its series.
type record func(o entity.Observation)

// series identifies the metrics of one kind of work with one outcome.
type series struct {
	work    entity.Work
	kind    string
	outcome string
	status  int
}

// Buckets of durations, in seconds: of answers and statements, and of work that takes longer. Those
// of sizes are in bytes.
var (
	short = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	long  = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800}
	sizes = prometheus.ExponentialBuckets(256, 8, 8)
)

// New returns a Metrics.
func New(o Options) *Metrics {
	m := &Metrics{scheme: cmp.Or(o.URLScheme, "http"), recorders: map[entity.Work]func(s series) record{}}
	m.series.Store(&map[series]record{})
	m.turns.Store(&map[string]prometheus.Gauge{})
	m.addRequests()
	m.addDurations()
	m.addArchives()
	m.addTurns()
	m.addCounts()
	m.addTasks()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tenantcontent_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(o.Version, "devel")},
	})
	info.Set(1)
	m.collectors = append(m.collectors, info)
	return m
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.collectors = append(m.collectors, vec)
	return vec
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.collectors = append(m.collectors, vec)
	return vec
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.collectors = append(m.collectors, vec)
	return vec
}

// addRequests adds the metrics of requests.
func (m *Metrics) addRequests() {
	durations := m.histogram(
		"http_server_request_duration_seconds", "Time from the head of a request to the end of its answer.", short,
		"http_request_method", "http_route", "http_response_status_code", "url_scheme", "error_type",
	)
	received := m.histogram(
		"http_server_request_body_size_bytes", "Size of the bodies of requests, as far as they were read.", sizes,
		"http_request_method", "http_route",
	)
	sent := m.histogram(
		"http_server_response_body_size_bytes", "Size of the bodies of answers.", sizes,
		"http_request_method", "http_route",
	)
	m.active = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "http_server_active_requests", Help: "Requests that have begun and not ended.",
	})
	m.collectors = append(m.collectors, m.active)
	m.recorders[entity.RequestWork] = func(s series) record {
		method, route, ok := strings.Cut(s.kind, " ")
		if !ok {
			method = "_OTHER" // it has no route
		}
		duration := durations.WithLabelValues(method, route, strconv.Itoa(s.status), m.scheme, failure(s))
		in, out := received.WithLabelValues(method, route), sent.WithLabelValues(method, route)
		return func(o entity.Observation) {
			duration.Observe(o.Duration.Seconds())
			in.Observe(float64(o.Received))
			out.Observe(float64(o.Sent))
		}
	}
}

// addDurations adds the histograms of work of which the duration is all.
func (m *Metrics) addDurations() {
	failures := func(s series) []string { return []string{s.kind, failure(s)} }
	outcomes := func(s series) []string { return []string{s.kind, s.outcome} }
	add := func(
		work entity.Work, name, help string, buckets []float64, values func(series) []string, labels ...string,
	) {
		vec := m.histogram(name, help, buckets, labels...)
		m.recorders[work] = func(s series) record {
			one := vec.WithLabelValues(values(s)...)
			return func(o entity.Observation) { one.Observe(o.Duration.Seconds()) }
		}
	}
	add(
		entity.StatementWork, "db_client_operation_duration_seconds",
		"Time of SQL statements of the service, without those of apps.", short, failures,
		"db_operation_name", "error_type",
	)
	add(
		entity.JobWork, "tenantcontent_job_duration_seconds", "Time of tries of jobs of the queue.", long,
		outcomes, "kind", "outcome",
	)
	add(
		entity.HandlerWork, "tenantcontent_handler_duration_seconds",
		"Time of runs of the handlers of apps.", long, outcomes, "area", "outcome",
	)
	add(
		entity.ModelWork, "gen_ai_client_operation_duration_seconds", "Time of calls of language models.", long,
		failures, "gen_ai_operation_name", "error_type",
	)
	add(
		entity.ScanWork, "tenantcontent_scan_duration_seconds", "Time of scans of directories.", long,
		outcomes, "driver", "outcome",
	)
}

// addArchives adds the metrics of archives.
func (m *Metrics) addArchives() {
	durations := m.histogram(
		"tenantcontent_archive_duration_seconds", "Time of exports, imports, restores and deploys of archives.", long,
		"operation", "outcome",
	)
	operations := m.counter(
		"tenantcontent_archive_operations_total", "Exports, imports, restores and deploys of archives.",
		"operation", "outcome",
	)
	bytes := m.counter(
		"tenantcontent_archive_bytes_total", "Bytes of the archives, packed, that were written or read.", "operation",
	)
	m.recorders[entity.ArchiveWork] = func(s series) record {
		duration := durations.WithLabelValues(s.kind, s.outcome)
		operation, size := operations.WithLabelValues(s.kind, s.outcome), bytes.WithLabelValues(s.kind)
		return func(o entity.Observation) {
			duration.Observe(o.Duration.Seconds())
			operation.Inc()
			size.Add(float64(o.Received + o.Sent))
		}
	}
}

// addTurns adds the metrics of waits for places.
func (m *Metrics) addTurns() {
	m.waiting = m.gauge("tenantcontent_turns_waiting", "Callers that wait for a place that others have.", "kind")
	refused := m.counter(
		"tenantcontent_turns_refused_total", "Callers that got no place in time, or when too many waited.", "kind",
	)
	m.recorders[entity.TurnWork] = func(s series) record {
		waiting, refusals := m.turn(s.kind), refused.WithLabelValues(s.kind)
		return func(o entity.Observation) {
			waiting.Dec()
			if o.Outcome == string(errs.Unavailable) {
				refusals.Inc()
			}
		}
	}
}

// addCounts adds the counters of log-ins and credentials.
func (m *Metrics) addCounts() {
	logins := m.counter("tenantcontent_login_attempts_total", "Attempts to log in.", "driver", "outcome")
	m.recorders[entity.LoginWork] = func(s series) record {
		one := logins.WithLabelValues(s.kind, s.outcome)
		return func(entity.Observation) { one.Inc() }
	}
	credentials := m.counter(
		"tenantcontent_credential_lookups_total", "Look-ups of sessions and tokens, by where they were found.",
		"source",
	)
	m.recorders[entity.CredentialWork] = func(s series) record {
		one := credentials.WithLabelValues(s.kind)
		return func(entity.Observation) { one.Inc() }
	}
}

// addTasks adds the metric of background tasks.
func (m *Metrics) addTasks() {
	last := m.gauge(
		"tenantcontent_task_last_success_timestamp_seconds", "When a background task of this process last succeeded.",
		"task",
	)
	m.recorders[entity.TaskWork] = func(s series) record {
		one := last.WithLabelValues(s.kind)
		return func(o entity.Observation) {
			if o.Outcome == entity.OK {
				one.Set(float64(o.Start.Add(o.Duration).UnixMilli()) / 1000)
			}
		}
	}
}

// Begin implements entity.Beginner.
func (m *Metrics) Begin(ctx context.Context, work entity.Work, kind string) context.Context {
	switch work {
	case entity.RequestWork:
		m.active.Inc()
	case entity.TurnWork:
		m.turn(kind).Inc()
	}
	return ctx
}

// turn returns the gauge of callers that wait for a kind of place.
func (m *Metrics) turn(kind string) prometheus.Gauge {
	if g, ok := (*m.turns.Load())[kind]; ok {
		return g
	}
	g := m.waiting.WithLabelValues(kind)
	put(m, &m.turns, kind, g)
	return g
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
	r, ok := (*m.series.Load())[s]
	if !ok {
		recorder, known := m.recorders[o.Work]
		if !known {
			return
		}
		r = recorder(s)
		put(m, &m.series, s, r)
	}
	r(o)
}

// put adds an element to a map that is read without a lock.
func put[K comparable, V any](m *Metrics, to *atomic.Pointer[map[K]V], key K, value V) {
	m.adding.Lock()
	defer m.adding.Unlock()
	all := maps.Clone(*to.Load())
	all[key] = value
	to.Store(&all)
}

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
