package local_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains/local"
)

func ExampleDriver_Info() {
	info := local.Driver{}.Info()
	fmt.Println(info.ID, info.LoginMethod, info.UsernameParam, info.PasswordParam)
	// Output:
	// local POST username password
}
