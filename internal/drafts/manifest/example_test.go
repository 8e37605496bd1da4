package manifest_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
)

func ExampleRead() {
	m, err := manifest.Read("informer.yaml", []byte(`
access:
  - datasets/*
  - POST queries/:id/_run
roles:
  - id: approver
    name: Approvers
`))
	fmt.Println(m.Access, m.Roles[0].Name, err)
	_, err = manifest.Read("informer.yaml", []byte(`
access:
  - datasets/*
  - GET /api/tokens
`))
	fmt.Println(errs.MessageOf(err))
	// Output:
	// [GET datasets/* POST queries/:id/_run] Approvers <nil>
	// informer.yaml:4:5: access[1]: the path is relative to /api/: write datasets/*, not /api/datasets/*
}

func ExampleManifest_Allows() {
	m, err := manifest.Read("informer.yaml", []byte("access: [datasets/*, users/**]"))
	fmt.Println(err)
	fmt.Println(
		m.Allows("GET", "datasets/sales"), m.Allows("POST", "datasets/sales"),
		m.Allows("GET", "datasets/sales/rows"),
	)
	fmt.Println(m.Allows("GET", "datasets/..%2Ftokens"), m.Allows("GET", "users/jo"), m.Allows("GET", "teams/design"))
	// Output:
	// <nil>
	// true false false
	// false true false
}
