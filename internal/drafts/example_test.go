package drafts_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

func Example() {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	jo := actor.Actor{Tenant: "acme", User: "jo", Session: "1"}
	mia := actor.Actor{Tenant: "acme", User: "mia", Session: "2"}

	lock, ok := drafts.Lock{}.Take(jo, now, false)
	fmt.Println(ok, *lock.LockedBy)

	_, ok = lock.Take(mia, now.Add(time.Minute), false)
	fmt.Println(ok, lock.Check(mia, now.Add(time.Minute)))

	lock, ok = lock.Take(mia, now.Add(drafts.Lifetime), false) // jo has not renewed it
	fmt.Println(ok, *lock.LockedBy)
	// Output:
	// true jo
	// false The draft is being edited by jo until 12:05:00 UTC: wait, or take over with _edit?force=true.
	// true mia
}
