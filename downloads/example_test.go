package downloads_test

import (
	"fmt"
	"io"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	d, err := app.Downloads.Create(ctx, "report.csv", "text/csv", func(w io.Writer) error {
		_, err := io.WriteString(w, "month,total\n")
		return err
	})
	fmt.Println(d.Filename, d.Size, d.Username, err)
	// Output:
	// report.csv 12 admin <nil>
}
