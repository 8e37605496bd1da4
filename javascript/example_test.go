package javascript_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// The program's main function begins with javascript.Child().
func Example() {
	folder, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	check(err)
	defer db.Close()
	check(tenantcontent.Migrate(context.Background(), db))
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
		Scripts:   javascript.New(javascript.Options{Processes: 8}),
	})
	fmt.Println(err)
	check(app.Close())
	// Output: <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
