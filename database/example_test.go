package database_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/database"
)

func ExampleOpen() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	db, err := database.Open("sqlite:" + filepath.Join(folder, "content.db"))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	fmt.Println(db.Ping())
	_, err = database.Open("content.db")
	fmt.Println(err)
	// Output:
	// <nil>
	// the database URL must start with sqlite: or postgres://
}

// A backup is written beside the running program, and restored into an empty folder.
func ExampleBackup() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db, err := database.Open("sqlite:" + filepath.Join(folder, "app.db"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	files, err := database.FilesOf("sqlite:"+filepath.Join(folder, "app.db"), "")
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer // or an *os.File
	if err := database.Backup(context.Background(), files, &file, folder, nil); err != nil {
		panic(err)
	}
	copied, err := database.FilesOf("sqlite:"+filepath.Join(folder, "copy.db"), "")
	if err != nil {
		panic(err)
	}
	fmt.Println(database.Restore(context.Background(), &file, copied, nil))
	// Output: <nil>
}
