package domains_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestKnows checks Knows with a directory that is a Finder and with realms that are none.
func TestKnows(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(time.Minute, 50*time.Millisecond, time.Minute, time.Minute)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	w.add(t, "Gate", "gate", `{}`)
	w.stock(2)
	w.paper.long = map[string]string{"one@example.com": "user0001"}
	w.paper.all = append(w.paper.all, domains.Entry{
		Person: &domains.Identity{ID: "off", Username: "off", Disabled: true},
	})
	knows := func(domain, username, sourceID string) error {
		return w.Lookup().CheckUser(t.Context(), "acme", principals.Move{
			Username: username, Domain: domain, SourceID: sourceID,
		})
	}
	is.NoErr(knows("books", "user0001", ""))
	is.NoErr(knows("books", "user0001", "id-0001"))
	is.NoErr(knows("books", "one@example.com", "id-0001")) // a scan renames the user
	is.NoErr(knows("gate", "nobody", ""))
	is.NoErr(knows("local", "nobody", ""))
	is.Equal(errs.CodeOf(knows("none", "user0001", "")), errs.NotFound)
	for _, c := range [][3]string{
		{"nobody", "", "does not know nobody: no line, or more than one, has this name."},
		{"user0001", "id-0002", "sourceId is not that of user0001"},
		{"one@example.com", "", "has another name, user0001: set sourceId to id-0001"},
		{"off", "", "is disabled in the directory"},
	} {
		err := knows("books", c[0], c[1])
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), c[2]))
	}
	w.paper.err = errs.New(errs.Upstream, "The directory is away.")
	err := knows("books", "user0001", "")
	is.Equal(errs.CodeOf(err), errs.Upstream)
	is.Equal(errs.MessageOf(err), "The directory is away.")
	w.paper.wait = make(chan struct{})
	err = knows("books", "user0001", "")
	is.Equal(errs.CodeOf(err), errs.Upstream)
	is.True(strings.Contains(errs.MessageOf(err), "has not said in 50ms"))
}
