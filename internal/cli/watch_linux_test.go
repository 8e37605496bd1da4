package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestAccessLogThatCannotBeWritten: requests go on, and the log, /readyz and the metrics tell it.
// Of all systems, Linux has /dev/full.
func TestAccessLogThatCannotBeWritten(t *testing.T) {
	is, at := is.New(t), freeAddress(t)
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := spawn(t, append(onSQLite(t), "--access-log=/dev/full", "--metrics-listen="+at)...)
	var body string
	for range 500 {
		var status int
		status, body = getFrom(t, s.url+"/readyz", "")
		is.Equal(status, http.StatusOK) // it serves
		if strings.Contains(body, "warnings") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	is.True(strings.Contains(body, `"warnings":["The access log cannot be written: no space left on device. 0 lines`))
	is.True(strings.Contains(s.stderr.String(), "the access log cannot be written: requests go on"))
	_, served := getFrom(t, "http://"+at+"/metrics", "")
	is.True(strings.Contains(served, "\ntenantcontent_access_log_lost_total 0"))
	is.Equal(s.stop(), 0)
	is.True(strings.Contains(s.stderr.String(), "the access log was not written to its end"))
}
