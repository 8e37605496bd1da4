package cli

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/cli/accesslog"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/metrics"
)

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// getFrom returns the status and body of a GET, with a Host if it is not "".
func getFrom(t *testing.T, url, host string) (int, string) {
	t.Helper()
	is := is.New(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	is.NoErr(err)
	r.Host = host
	res, err := http.DefaultClient.Do(r)
	is.NoErr(err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	is.NoErr(err)
	return res.StatusCode, string(body)
}

func TestMetricsHaveAListenerOfTheirOwn(t *testing.T) {
	is, at, profiles := is.New(t), freeAddress(t), freeAddress(t)
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := serving(t, append(onSQLite(t), "--metrics-listen="+at, "--pprof-listen="+profiles)...)
	session := s.login(t, "", "admin", password)
	for range 3 {
		status, _ := call(t, "GET", s.url+"/api/colors", session, "")
		is.Equal(status, http.StatusOK)
	}
	var body string
	const round = `tenantcontent_task_last_success_timestamp_seconds{task="token_uses"} 1.`
	for start := time.Now(); !strings.Contains(body, round); time.Sleep(50 * time.Millisecond) {
		is.True(time.Since(start) < 30*time.Second) // there is a round each second
		var status int
		status, body = getFrom(t, "http://"+at+"/metrics", "")
		is.Equal(status, http.StatusOK)
	}
	for _, want := range []string{
		`http_server_request_duration_seconds_count{error_type="",http_request_method="GET",` +
			`http_response_status_code="200",http_route="/api/colors",url_scheme="http"} 3`,
		`http_server_active_requests 0`,
		`db_client_operation_duration_seconds_count{db_operation_name="SELECT",error_type=""}`,
		`go_sql_open_connections{db_name="main"}`, `go_goroutines`, `process_cpu_seconds_total`,
		`tenantcontent_build_info{version=`,
		`tenantcontent_login_attempts_total{driver="local",outcome="ok"} 1`,
		`tenantcontent_credential_lookups_total{source="database"} `,
		`http_server_request_body_size_bytes_sum{http_request_method="GET",http_route="/api/colors"} 0`,
		`http_server_response_body_size_bytes_count{http_request_method="GET",http_route="/api/colors"} 3`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s:\n%s", want, body)
		}
	}
	is.True(!strings.Contains(body, "admin"))
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		status, _ := getFrom(t, s.url+path, "")
		is.Equal(status, http.StatusNotFound) // by the public listener
	}
	status, _ := getFrom(t, "http://"+at+"/debug/pprof/", "")
	is.Equal(status, http.StatusNotFound)
	status, body = getFrom(t, "http://"+profiles+"/debug/pprof/goroutine?debug=1", "")
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(body, "goroutine profile"))
	status, _ = getFrom(t, "http://"+profiles+"/debug/pprof/cmdline", "rebound.example.com")
	is.Equal(status, http.StatusForbidden)
	is.Equal(s.stop(), 0)
	_, err := net.Dial("tcp", at)
	is.True(err != nil) // it ends with the server
}

func TestMonitoringIsRefusedWhereItIsNotSafe(t *testing.T) {
	is := is.New(t)
	for _, at := range []string{"0.0.0.0:0", ":6060", "[::]:6060", "10.0.0.1:6060", "example.com:6060", "6060"} {
		if err := (monitoring{PprofListen: at}).check(); err == nil ||
			!strings.HasPrefix(err.Error(), "--pprof-listen: ") {
			t.Errorf("pprof at %s: %v", at, err)
		}
	}
	for _, at := range []string{"", "127.0.0.1:6060", "localhost:0", "[::1]:6060"} {
		is.NoErr((monitoring{PprofListen: at}).check())
	}
}

// TestMonitoringOpensNothingAtAWrongAddress: the server refuses a wrong address before it makes a
// folder of data, and an address in use before the first start, which prints a password once.
func TestMonitoringOpensNothingAtAWrongAddress(t *testing.T) {
	is, data := is.New(t), filepath.Join(t.TempDir(), "data")
	for flag, says := range map[string]string{
		"--metrics-listen=127.0.0.1:notaport": "--metrics-listen: cannot listen",
		"--pprof-listen=0.0.0.0:0":            "is not a loopback address",
	} {
		fails(t, 2, says, "", "serve", "--listen=127.0.0.1:0", flag, "--data="+data)
		_, err := os.Stat(data)
		is.True(errors.Is(err, fs.ErrNotExist))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer func() { _ = l.Close() }()
	for _, flag := range []string{"--metrics-listen", "--pprof-listen"} {
		fails(t, 2, flag+": cannot listen", "", "serve", "--listen=127.0.0.1:0", flag+"="+l.Addr().String(), "--data="+data)
	}
	s := serving(t, "--data="+data)
	is.True(strings.Contains(s.stdout.String(), "First start")) // the failed starts did not use it up
}

// TestDocumentsNameMetricsThatAreServed: a metric of the dashboard, the alerts or the page is one
// of a server that has done each kind of work, and promtool accepts the alerts and the exposition.
func TestDocumentsNameMetricsThatAreServed(t *testing.T) {
	is := is.New(t)
	m := metrics.New(metrics.Options{})
	for _, work := range []entity.Work{
		entity.RequestWork, entity.StatementWork, entity.JobWork, entity.HandlerWork, entity.ModelWork,
		entity.ScanWork, entity.ArchiveWork, entity.TurnWork, entity.LoginWork, entity.CredentialWork, entity.TaskWork,
	} {
		m.Observe(m.Begin(t.Context(), work, "GET"), entity.Observation{Work: work, Kind: "GET /", Outcome: entity.OK})
	}
	db, err := sqlite.Open(t.TempDir() + "/a.db")
	is.NoErr(err)
	defer func() { is.NoErr(db.Close()) }()
	w := httptest.NewRecorder()
	access := accesslog.New(io.Discard, slog.Default())
	defer func() { is.NoErr(access.Close()) }()
	exposition(tenantcontent.Config{DB: db, Log: slog.Default()}, observers{m, access}).ServeHTTP(
		w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil),
	)
	is.Equal(w.Code, http.StatusOK)
	served := w.Body.String()

	name := regexp.MustCompile(`\b(http_server|db_client|tenantcontent|gen_ai_client|go_sql|process)_[a-z0-9_]+`)
	documents, err := filepath.Glob("../../docs/monitoring/*")
	is.NoErr(err)
	is.Equal(len(documents), 3)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		is.NoErr(err)
		found := name.FindAllString(string(text), -1)
		is.True(len(found) > 6)
		for _, metric := range found {
			if !strings.HasSuffix(metric, "_") && !strings.Contains(served, "\n"+metric) {
				t.Errorf("%s names %s, which is not served", document, metric)
			}
		}
	}
	for _, args := range [][]string{{"check", "metrics"}, {"check", "rules", "../../docs/monitoring/alerts.yml"}} {
		check := exec.CommandContext(t.Context(), "promtool", args...)
		check.Stdin = strings.NewReader(served)
		out, err := check.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			needs.Start(t, err, exec.ErrNotFound)
		}
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
