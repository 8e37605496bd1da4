package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/metrics"
)

// gather returns the series of all metrics as lines such as name{label="value"} and what each has:
// the number of observations, or the value.
func gather(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	is.New(t).NoErr(registry.Register(m))
	families, err := registry.Gather()
	is.New(t).NoErr(err)
	all := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			all[f.GetName()+labels(one)] = value(one)
		}
	}
	return all
}

func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		all = append(all, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(all, ",") + "}"
}

func value(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	if c := m.GetCounter(); c != nil {
		return c.GetValue()
	}
	return m.GetGauge().GetValue()
}

func TestEachKindOfWorkHasAMetric(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	m := metrics.New(metrics.Options{URLScheme: "https", Version: "v1.2.3"})
	for _, o := range []entity.Observation{
		{Work: entity.RequestWork, Kind: "GET /api/colors/{key}", Status: 200, Outcome: entity.OK},
		{Work: entity.RequestWork, Kind: "GET /api/colors/{key}", Status: 200, Outcome: entity.OK},
		{Work: entity.RequestWork, Kind: "PUT /api/colors/{key}", Status: 403, Outcome: string(errs.Forbidden)},
		{Work: entity.RequestWork, Kind: "GET /api/apps/{id}/view/{path}", Status: 200, Outcome: entity.OK},
		{Work: entity.RequestWork, Status: 404, Outcome: string(errs.NotFound)},
		{Work: entity.StatementWork, Kind: "SELECT", Outcome: entity.OK},
		{Work: entity.JobWork, Kind: "messages", Outcome: string(errs.Unavailable)},
		{Work: entity.HandlerWork, Kind: "webhooks order/{id}", Outcome: "timeout"},
		{Work: entity.HandlerWork, Kind: "webhooks other", Outcome: "timeout"},
		{Work: entity.ModelWork, Kind: "chat", Outcome: entity.OK},
		{Work: entity.ScanWork, Kind: "ldap", Outcome: entity.OK},
		{Work: entity.ArchiveWork, Kind: "export", Outcome: entity.OK, Sent: 500},
		{Work: entity.ArchiveWork, Kind: "import", Outcome: string(errs.Invalid), Received: 20},
		{Work: entity.TurnWork, Kind: "write", Outcome: entity.OK},
		{Work: entity.TurnWork, Kind: "write", Outcome: string(errs.Unavailable)},
		{Work: entity.TurnWork, Kind: "write", Outcome: string(errs.Canceled)},
		{Work: entity.LoginWork, Kind: "LDAP", Outcome: string(errs.Unauthenticated)},
		{Work: entity.LoginWork, Kind: "local", Outcome: entity.OK},
		{Work: entity.CredentialWork, Kind: "cache", Outcome: entity.OK},
		{Work: entity.TaskWork, Kind: "sweep", Outcome: entity.OK, Start: time.Unix(1000, 0)},
		{Work: entity.TaskWork, Kind: "sweep", Outcome: string(errs.Unavailable), Start: time.Unix(2000, 0)},
		{Work: entity.TaskWork, Kind: "index", Outcome: string(errs.Unavailable), Start: time.Unix(2000, 0)},
		{Work: "something new", Kind: "x", Outcome: entity.OK},
	} {
		o.Tenant, o.Duration = "acme", 20*time.Millisecond
		m.Observe(m.Begin(ctx, o.Work, o.Kind), o)
	}
	const request = `http_server_request_duration_seconds{error_type=%q,http_request_method=%q,` +
		`http_response_status_code=%q,http_route=%q,url_scheme="https"}`
	is.Equal(gather(t, m), map[string]float64{
		fmt.Sprintf(request, "", "GET", "200", "/api/colors/{key}"):                            2,
		fmt.Sprintf(request, "forbidden", "PUT", "403", "/api/colors/{key}"):                   1,
		fmt.Sprintf(request, "", "GET", "200", "/api/apps/{id}/view/{path}"):                   1,
		fmt.Sprintf(request, "not_found", "_OTHER", "404", ""):                                 1,
		`db_client_operation_duration_seconds{db_operation_name="SELECT",error_type=""}`:       1,
		`tenantcontent_job_duration_seconds{kind="messages",outcome="unavailable"}`:            1,
		`tenantcontent_handler_duration_seconds{area="webhooks",outcome="timeout"}`:            2,
		`gen_ai_client_operation_duration_seconds{error_type="",gen_ai_operation_name="chat"}`: 1,
		`tenantcontent_scan_duration_seconds{driver="ldap",outcome="ok"}`:                      1,
		`tenantcontent_archive_duration_seconds{operation="export",outcome="ok"}`:              1,
		`tenantcontent_archive_duration_seconds{operation="import",outcome="invalid"}`:         1,
		`tenantcontent_archive_operations_total{operation="export",outcome="ok"}`:              1,
		`tenantcontent_archive_operations_total{operation="import",outcome="invalid"}`:         1,
		`tenantcontent_archive_bytes_total{operation="export"}`:                                500,
		`tenantcontent_archive_bytes_total{operation="import"}`:                                20,
		`tenantcontent_turns_waiting{kind="write"}`:                                            0,
		`tenantcontent_turns_refused_total{kind="write"}`:                                      1,
		`tenantcontent_login_attempts_total{driver="LDAP",outcome="unauthenticated"}`:          1,
		`tenantcontent_login_attempts_total{driver="local",outcome="ok"}`:                      1,
		`tenantcontent_credential_lookups_total{source="cache"}`:                               1,
		`tenantcontent_task_last_success_timestamp_seconds{task="sweep"}`:                      1000.02,
		`tenantcontent_task_last_success_timestamp_seconds{task="index"}`:                      0,
		`http_server_active_requests{}`:                                                        0,
		`tenantcontent_build_info{version="v1.2.3"}`:                                           1,
		size("request", "GET", "/api/colors/{key}"):                                            2,
		size("request", "PUT", "/api/colors/{key}"):                                            1,
		size("request", "GET", "/api/apps/{id}/view/{path}"):                                   1,
		size("request", "_OTHER", ""):                                                          1,
		size("response", "GET", "/api/colors/{key}"):                                           2,
		size("response", "PUT", "/api/colors/{key}"):                                           1,
		size("response", "GET", "/api/apps/{id}/view/{path}"):                                  1,
		size("response", "_OTHER", ""):                                                         1,
	})
}

// size returns the line of a histogram of the sizes of bodies.
func size(of, method, route string) string {
	return fmt.Sprintf("http_server_%s_body_size_bytes{http_request_method=%q,http_route=%q}", of, method, route)
}

// TestWaitingTurns: a turn is counted as waiting until it ends.
func TestWaitingTurns(t *testing.T) {
	is, m := is.New(t), metrics.New(metrics.Options{})
	const waiting = `tenantcontent_turns_waiting{kind="write"}`
	ctx := m.Begin(t.Context(), entity.TurnWork, "write")
	m.Begin(t.Context(), entity.TurnWork, "write")
	is.Equal(gather(t, m)[waiting], 2.0)
	m.Observe(ctx, entity.Observation{Work: entity.TurnWork, Kind: "write", Outcome: entity.OK})
	is.Equal(gather(t, m)[waiting], 1.0)
}

func TestActiveRequests(t *testing.T) {
	is, m := is.New(t), metrics.New(metrics.Options{})
	ctx := m.Begin(t.Context(), entity.RequestWork, "GET")
	m.Begin(t.Context(), entity.RequestWork, "GET")
	m.Begin(ctx, entity.StatementWork, "SELECT")
	is.Equal(gather(t, m)["http_server_active_requests{}"], 2.0)
	m.Observe(ctx, entity.Observation{Work: entity.RequestWork})
	is.Equal(gather(t, m)["http_server_active_requests{}"], 1.0)
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var to entity.Observer = metrics.New(metrics.Options{})
	for _, o := range []entity.Observation{
		{Work: entity.RequestWork, Kind: "GET /api/colors/{key}", Status: 200, Outcome: entity.OK},
		{Work: entity.StatementWork, Kind: "SELECT", Outcome: entity.OK},
		{Work: entity.TurnWork, Kind: "write", Outcome: entity.OK},
		{Work: entity.CredentialWork, Kind: "cache", Outcome: entity.OK},
		{Work: entity.HandlerWork, Kind: "server /orders", Outcome: "ok"},
	} {
		o.Duration = time.Millisecond
		n := testing.AllocsPerRun(1000, func() { to.Observe(entity.Begin(t.Context(), to, o.Work, o.Kind), o) })
		if n != 0 {
			t.Errorf("a %s costs %v allocations", o.Work, n)
		}
	}
}

func TestSeveralGoroutinesLoseNothing(t *testing.T) {
	is, m := is.New(t), metrics.New(metrics.Options{})
	var running sync.WaitGroup
	for n := range 8 {
		running.Go(func() {
			for i := range 1000 {
				m.Observe(t.Context(), entity.Observation{
					Work: entity.JobWork, Kind: fmt.Sprint("kind", (i+n)%50), Outcome: entity.OK,
				})
			}
		})
	}
	running.Wait()
	all := 0.0
	for _, n := range gather(t, m) {
		all += n
	}
	is.Equal(all, 8*1000+1.0) // and the build
}

func BenchmarkObserve(b *testing.B) {
	m := metrics.New(metrics.Options{})
	o := entity.Observation{
		Work: entity.RequestWork, Kind: "GET /api/colors/{key}", Status: 200, Outcome: entity.OK,
		Duration: time.Millisecond,
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(b.Context(), o)
	}
}
