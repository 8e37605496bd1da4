package bunstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLoginsScanNoUsers: on SQLite the statements of a login look up users by an index, however
// many a tenant has.
func TestLoginsScanNoUsers(t *testing.T) {
	is := is.New(t)
	db, counter := dbtest.Counted(t, dbtest.SQLite)
	s := bunstore.New(db)
	for what, ask := range map[string]func(ctx context.Context) error{
		"source_id=": func(ctx context.Context) error { _, err := s.UserFrom(ctx, "acme", "ldap", "x"); return err },
		"email_key=": func(ctx context.Context) error {
			all, err := s.UsersWithEmail(ctx, "acme", "ldap", "x")
			if err == nil && len(all) == 0 {
				err = errors.New("nobody")
			}
			return err
		},
		"folded=":   func(ctx context.Context) error { _, err := s.Login(ctx, "acme", "x", ""); return err },
		"username=": func(ctx context.Context) error { _, err := s.User(ctx, "acme", "x"); return err },
	} {
		counter.Take()
		is.True(ask(t.Context()) != nil) // a user that does not exist
		statement := counter.Take()[0]
		rows, err := db.DB.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, []any{"acme", "x", ""}[:2+
			strings.Count(statement, "$3")]...)
		is.NoErr(err)
		is.True(rows.Next())
		var id, parent, unused int
		var plan string
		is.NoErr(rows.Scan(&id, &parent, &unused, &plan))
		is.NoErr(rows.Close())
		t.Log(plan)
		is.True(strings.Contains(plan, what))
	}
}
