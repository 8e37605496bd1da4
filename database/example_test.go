package database_test

import (
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
