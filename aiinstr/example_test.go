package aiinstr_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func ExampleService_Expand() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	for slug, content := range map[string]string{"tone": "Be brief.", "sum-up": "${tone} Sum up the report."} {
		if _, err := app.AIInstructions.Create(ctx, aiinstr.Instruction{Slug: slug, Content: content}); err != nil {
			panic(err)
		}
	}
	text, unknown, err := app.AIInstructions.Expand(ctx, "${sum-up} In $${language}: ${language}.")
	fmt.Println(text, unknown, err)
	// Output:
	// Be brief. Sum up the report. In ${language}: ${language}. [language] <nil>
}
