package signatures_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/signatures"
)

func ExampleParse() {
	s, err := signatures.Parse(json.RawMessage(`{"preset": "github", "secret": "env.GITHUB_SECRET"}`))
	fmt.Println(s.Variable(), err)
	headers := map[string]string{"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
	header := func(name string) string { return headers[name] }
	fmt.Println(s.Verify("It's a Secret to Everybody", header, []byte("Hello, World!"), time.Now()))
	fmt.Println(s.Verify("It's a Secret to Everybody", header, []byte("Hello!"), time.Now()))
	// Output:
	// GITHUB_SECRET <nil>
	// <nil>
	// the signature in x-hub-signature-256 is not that of the body
}
