package staffcsv_test

import (
	"encoding/json"
	"os"
	"testing"
	"testing/fstest"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/examples/domaindriver/staffcsv"
)

func TestStaff(t *testing.T) {
	drivertest.Test(t, staffcsv.Driver{Files: os.DirFS("testdata")}, drivertest.Fixture{
		Config: json.RawMessage(`{"file": "staff.csv"}`),
		Bad: map[string]string{
			`{}`: "file", `{"file": 1}`: "file", `{"file": "../staff.csv"}`: "file", `{"file": "/etc/passwd"}`: "file",
			`{"File": "staff.csv"}`: "file",
		},
		Login: "jo", Password: "jo's secret",
		Disabled: map[string]string{"kim": "jo's secret"},
	})
}

// TestBadLists: a file that is away or not in order refuses nobody.
func TestBadLists(t *testing.T) {
	const head = "id,username,name,email,password,groups\n"
	files := fstest.MapFS{
		"empty.csv": {}, "other.csv": {Data: []byte("a,b\n1,2\n")}, "short.csv": {Data: []byte(head + "1,jo\n")},
		"twice.csv": {Data: []byte(head + "1,jo,,,,\n1,sam,,,,\n")}, "nameless.csv": {Data: []byte(head + "1,,,,,\n")},
	}
	for _, name := range []string{"missing.csv", "empty.csv", "other.csv", "short.csv", "twice.csv", "nameless.csv"} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			realm, err := staffcsv.Driver{Files: files}.Open(json.RawMessage(`{"file": "` + name + `"}`))
			is.NoErr(err)
			_, err = realm.(domains.PasswordLogin).Login(t.Context(), "jo", "jo's secret")
			is.Equal(errs.CodeOf(err), errs.Upstream)
			for _, err = range realm.(domains.Directory).Entries(t.Context()) {
				is.Equal(errs.CodeOf(err), errs.Upstream)
			}
		})
	}
}
