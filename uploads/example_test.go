package uploads_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	u, err := app.Uploads.Create(ctx, "palette.json", "application/json", strings.NewReader("[]"))
	if err != nil {
		panic(err)
	}
	_, file, err := app.Uploads.Open(ctx, u.ID)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	fmt.Println(u.Filename, u.Size, string(text), err)
	// Output:
	// palette.json 2 [] <nil>
}
