package database_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/database"
)

// The workspaces of a program whose own database is a SQLite file are in a folder beside it.
func ExampleOpenWorkspaces() {
	d, err := database.OpenWorkspaces("", "sqlite:app.db", 0) // for Config.Workspaces
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	fmt.Println(d.Engine())
	// Output: sqlite
}
