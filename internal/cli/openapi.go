package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

type openapiCommand struct {
	BaseURL string `default:"http://127.0.0.1:8080" env:"TENANTCONTENT_BASE_URL" help:"URL of the server."`
	YAML    bool   `help:"Print YAML in place of JSON."`
}

// Run prints the description of all routes. It needs no server, and no database but an empty one,
// which it does not read.
func (o *openapiCommand) Run(t terminal) (err error) {
	dir, err := os.MkdirTemp("", "tenantcontent-openapi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := engines.Open("sqlite:" + filepath.Join(dir, "empty.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(), BaseURL: o.BaseURL, DomainDrivers: drivers(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	document, err := app.OpenAPI()
	if err == nil && o.YAML {
		document, err = openapi.YAML(document)
	}
	if err != nil {
		return err
	}
	_, err = t.out.Write(append(document, '\n'))
	return err
}
