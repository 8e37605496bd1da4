package bunstore_test

import (
	"fmt"
	"time"

	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/store/sessions"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// A session is of a user, whom another Store keeps.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	now := time.Now().UTC().Truncate(time.Microsecond)
	users := principalstore.New(db)
	err := users.InsertUser(ctx, "acme", principals.User{Tenant: "acme", Username: "mia", Domain: principals.Local, Enabled: true, CreatedAt: now, UpdatedAt: now})
	if err != nil {
		panic(err)
	}
	s := bunstore.New(db)
	err = s.InsertSession(ctx, "acme", sessions.Session{ID: "hash", Username: "mia", CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
	fmt.Println(err)
	session, _, err := s.Session(ctx, "acme", "hash")
	fmt.Println(session.Username, err)
	// Output:
	// <nil>
	// mia <nil>
}
