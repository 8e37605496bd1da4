package libraries_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(folder)
	db, err := database.Open("sqlite:" + filepath.Join(folder, "content.db"))
	check(err)
	defer db.Close()
	check(tenantcontent.Migrate(ctx, db))
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey(), Scripts: jsvm.None{}})
	check(err)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "acme"}, "a long password")
	check(err)

	// Files does not ask who calls: its callers lock the library and check rights in the transaction that names the file.
	l := libraries.New(libraries.Options{Store: bunstore.New(db, "library"), Blobs: blobstore.New(db)})
	lock := func(context.Context) error { return nil }
	first, err := l.Put(ctx, "acme", "site", "index.html", "", strings.NewReader("<h1>Hello</h1>"), lock)
	check(err)
	second, err := l.Put(ctx, "acme", "copy", "home.html", "", strings.NewReader("<h1>Hello</h1>"), lock)
	check(err)
	fmt.Println(first.ContentType, first.Size, first.ContentID == second.ContentID)

	_, r, err := l.Open(ctx, "acme", "copy", "home.html")
	check(err)
	defer r.Close()
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err)
	// Output:
	// text/html 14 true
	// <h1>Hello</h1> <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
