package webhooks_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// A config is checked when an app is deployed.
func ExampleCheckConfig() {
	fmt.Println(
		webhooks.CheckConfig(
			json.RawMessage(`{"keep": true, "verify": {"preset": "github", "secret": "env.GITHUB_SECRET"}}`),
		),
	)
	fmt.Println(
		errs.MessageOf(
			webhooks.CheckConfig(json.RawMessage(`{"verify": {"preset": "gitlab", "secret": "env.SECRET"}}`)),
		),
	)
	// Output:
	// <nil>
	// config.verify.preset must be one of github, shopify, slack, standard, stripe
}
