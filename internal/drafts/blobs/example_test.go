package blobs_test

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
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func ExamplePut() {
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

	const id = "0192b2a0-0000-7000-8000-000000000001"
	store := bunstore.New(db)
	info, err := blobs.Put(ctx, store, "acme", id, 1<<20, time.Now(), strings.NewReader("some bytes"))
	fmt.Println(info.Size, err)
	r, err := store.Open(ctx, "acme", id)
	check(err)
	defer r.Close()
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err)
	// Output:
	// 10 <nil>
	// some bytes <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
