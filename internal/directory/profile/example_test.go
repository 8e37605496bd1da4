package profile_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
)

func Example() {
	w := profile.NewWriter("LDAP", func(who profile.Identity, invalid error) {
		fmt.Printf("%s: %s\n", who.Username, errs.MessageOf(invalid))
	})
	u := w.NewUser(profile.Identity{ID: "0d4f2c3a", Username: "mia", DisplayName: "Mia", Timezone: "Mars"})
	w.Update(&u, profile.Identity{ID: "0d4f2c3a", Username: "mia", Email: "mia@example.com"})
	fmt.Println(u.Source, u.SourceID, u.DisplayName, u.Email)
	// Output:
	// mia: timezone must be an IANA name such as Europe/Berlin
	// LDAP 0d4f2c3a Mia mia@example.com
}
