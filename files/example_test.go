package files_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
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

	// A Service checks no permission: its callers name the tenant and the user of a file, and decide who may see it.
	s := files.New(files.Options{Store: bunstore.Uploads(db), Blobs: blobstore.New(db), Noun: "Upload", Lifetime: time.Hour})
	draft := files.Draft{Username: "admin", Filename: `C:\reports\june.csv`, ContentType: "text/csv"}
	f, err := s.Create(ctx, "acme", draft, func(w io.Writer) error {
		_, err := io.WriteString(w, "month,total\n")
		return err
	})
	fmt.Println(f.Filename, f.Size, f.ExpiresAt.Sub(f.CreatedAt), err)

	_, err = s.Get(ctx, "acme", f.ID, func(f files.File) bool { return f.Username == "jo" })
	fmt.Println(err)
	// Output:
	// june.csv 12 1h0m0s <nil>
	// Upload not found.
}

func ExampleUploads() {
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

func ExampleDownloads() {
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

func check(err error) {
	if err != nil {
		panic(err)
	}
}
