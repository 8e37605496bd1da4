package bunstore_test

import (
	"fmt"
	"io"

	"github.com/tenantcontent/tenantcontent/files"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// The rows of files are in one Store and their bytes in another.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := files.New(files.Options{Store: bunstore.Uploads(db), Blobs: blobstore.New(db), Noun: "Upload"})
	f, err := s.Create(ctx, "acme", files.Draft{Username: "admin", Filename: "june.csv"}, func(w io.Writer) error {
		_, err := io.WriteString(w, "month,total\n")
		return err
	})
	fmt.Println(f.Filename, f.Size, err)
	// Output:
	// june.csv 12 <nil>
}
