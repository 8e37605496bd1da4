package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/database/sqlite"
)

func ExampleOpen() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	fmt.Println(db.Ping())
	_, err = sqlite.Open("sqlite:content.db")
	fmt.Println(err)
	// Output:
	// <nil>
	// the database must be the path of a file, without sqlite: before it
}

// A backup is written beside the running program, and restored into an empty folder.
func ExampleBackup() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "app.db")
	db, err := sqlite.Open(path)
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	var file bytes.Buffer // or an *os.File
	files := sqlite.Files{Database: path, Workspaces: path + ".workspaces"}
	if err := sqlite.Backup(context.Background(), files, &file, folder, nil); err != nil {
		panic(err)
	}
	copied := sqlite.Files{Database: filepath.Join(folder, "copy.db")}
	fmt.Println(sqlite.Restore(context.Background(), &file, copied, nil))
	// Output: <nil>
}

// Apps have SQL databases in a folder, such as one beside the program's own file.
func ExampleOpenWorkspaces() {
	d, err := sqlite.OpenWorkspaces("app.db.workspaces", 0) // for Config.Workspaces
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	fmt.Println(d.Engine())
	// Output: sqlite
}
