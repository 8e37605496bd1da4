package database_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// A program with colors, and the tenants that they belong to.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db")) // or the program's own *bun.DB
	check(err)
	defer db.Close()
	check(database.Migrate(ctx, db))

	key := make([]byte, 32) // a program keeps it; openssl rand -base64 32 makes one
	rand.Read(key)
	keys, err := tenants.ParseKeys(base64.StdEncoding.EncodeToString(key))
	check(err)
	all := tenants.New(tenants.Options{Store: database.Tenants(db), Keys: keys})
	_, err = all.Unchecked().Add(ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc."})
	check(err)

	palette := colors.New(colors.Options{Store: database.Colors(db)})
	jo := actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
	_, err = palette.Put(jo, "brand/red", "#ff0000")
	check(err)
	_, err = palette.Put(jo, "brand/blue", "bluish")
	fmt.Println(err)
	page, err := palette.List(jo, paging.Query{Limit: 10})
	fmt.Println(page.Total, page.Rows[0].Key, page.Rows[0].Color, err)
	// Output:
	// Invalid color format
	// 1 brand/red #ff0000 <nil>
}

func ExampleColors() {
	db, jo, remove := open()
	defer remove()
	palette := colors.New(colors.Options{Store: database.Colors(db)})
	red, err := palette.Put(jo, "brand/red", "#ff0000")
	fmt.Println(red.Tenant, red.Key, red.Color, err)
	// Output: acme brand/red #ff0000 <nil>
}

func ExampleAIInstructions() {
	db, jo, remove := open()
	defer remove()
	people := database.Principals(db)
	texts := aiinstr.New(aiinstr.Options{
		Store: database.AIInstructions(db), Settings: aiForAll{}, Directory: people,
	})
	_, err := texts.Create(jo, aiinstr.Instruction{Slug: "tone", Content: "Be brief."})
	check(err)
	text, _, err := texts.Expand(jo, "${tone} Sum up the report.")
	fmt.Println(text, err)
	// Output: Be brief. Sum up the report. <nil>
}

// aiForAll has AI on in each tenant. The Service of tenants is such Settings, too.
type aiForAll struct{}

func (aiForAll) AIEnabled(context.Context, string) (bool, error) { return true, nil }

// Comments are on entities of a kind that the program names.
func ExampleComments() {
	db, jo, remove := open()
	defer remove()
	kinds := entity.NewRegistry()
	check(kinds.Add(entity.Type{
		Kind: "recipe", Commented: true,
		Lookup: func(_ context.Context, _, id string) (entity.Ref, error) {
			return entity.Ref{Kind: "recipe", ID: id, Name: id}, nil
		},
	}))
	said := comments.New(comments.Options{
		Store: database.Comments(db), Queue: database.CommentQueue(db), Entities: kinds,
		Users: principals.New(principals.Options{Store: database.Principals(db)}),
	})
	c, err := said.Create(jo, entity.Key{Kind: "recipe", ID: "soup"}, "More salt?")
	fmt.Println(c.UserID, c.Entity.ID, c.Message, err)
	// Output: jo soup More salt? <nil>
}

func ExampleContent() {
	db, jo, remove := open()
	defer remove()
	kept := content.New(content.Options{
		Store: database.Content(db), Files: database.LibraryFiles(db, 1<<20), Directory: database.Principals(db),
	})
	library, err := kept.Create(jo, content.Entity{Kind: content.Library, Name: "Logos"})
	check(err)
	f, err := kept.PutFile(jo, library.ID, entity.File{Path: "red.svg"}, strings.NewReader("<svg/>"))
	fmt.Println(f.Path, f.ContentType, f.Size, err)
	// Output: red.svg image/svg+xml 6 <nil>
}

func ExampleUploads() {
	db, jo, remove := open()
	defer remove()
	uploads := files.NewUploads(files.Options{Store: database.Uploads(db), Blobs: database.Blobs(db)})
	f, err := uploads.Create(jo, files.Draft{
		Filename: "notes.txt", ContentType: "text/plain",
	}, strings.NewReader("Buy salt."))
	fmt.Println(f.Filename, f.Size, err)
	// Output: notes.txt 9 <nil>
}

func ExamplePrincipals() {
	db, jo, remove := open()
	defer remove()
	people := principals.New(principals.Options{Store: database.Principals(db), Blobs: database.Blobs(db)})
	mia, err := people.CreateUser(jo, principals.User{Username: "mia", Enabled: true}, "")
	fmt.Println(mia.Tenant, mia.Username, err)
	// Output: acme mia <nil>
}

// People log in with the passwords of a program's own users.
func ExampleSessions() {
	db, jo, remove := open()
	defer remove()
	keys, err := tenants.ParseKeys(key)
	check(err)
	people := principals.New(principals.Options{Store: database.Principals(db)})
	logins := sessions.New(sessions.Options{
		Store: database.Sessions(db), Authenticator: people.Unchecked(),
		Tenants: tenants.New(tenants.Options{Store: database.Tenants(db), Keys: keys}).Unchecked(),
	})
	_, err = people.CreateUser(jo, principals.User{Username: "mia", Enabled: true}, "a long password")
	check(err)
	login, err := logins.Login(context.Background(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "mia", Password: "a long password",
	})
	check(err)
	caller, err := logins.Authenticate(context.Background(), login.Token, netip.MustParseAddr("192.0.2.1"))
	fmt.Println(caller.Tenant, caller.User, err)
	// Output: acme mia <nil>
}

const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// open returns a database with the tenant acme and its user jo, a context whose actor is jo, and a
// function that removes the database.
func open() (db *bun.DB, jo context.Context, remove func()) {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	check(err)
	db, err = sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	check(database.Migrate(ctx, db))
	keys, err := tenants.ParseKeys(key)
	check(err)
	all := tenants.New(tenants.Options{Store: database.Tenants(db), Keys: keys})
	_, err = all.Unchecked().Add(ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc."})
	check(err)
	jo = actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true, AI: true})
	people := principals.New(principals.Options{Store: database.Principals(db)})
	_, err = people.CreateUser(jo, principals.User{Username: "jo", Enabled: true}, "")
	check(err)
	return db, jo, func() {
		check(db.Close())
		check(os.RemoveAll(folder))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
