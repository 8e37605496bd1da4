package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// The statements of the measurement of workspaces.
const (
	makeThings = `CREATE TABLE things (id integer PRIMARY KEY, name text)`
	addThing   = `INSERT INTO things VALUES (5, 'five')`
	readThing  = `SELECT id, name FROM things WHERE id = $1`
)

// workspace measures connecting to a workspace, one query and closing, by one caller, as each call
// of a handler does that, against the same with a pool of the bare driver.
func workspace(ctx context.Context, w *world) (r result, err error) {
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	place := filepath.Join(dir, "workspaces")
	openBare := func() (*sql.DB, error) { return sql.Open("sqlite", filepath.Join(dir, "bare.db")) }
	if w.engine == "postgres" {
		for _, name := range []string{"workspaces", "bare"} {
			if _, err := w.db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
				return r, err
			}
		}
		at := func(name string) string { return strings.Replace(w.url, "/postgres?", "/"+name+"?", 1) }
		place = at("workspaces")
		openBare = func() (*sql.DB, error) {
			config, err := pgx.ParseConfig(at("bare"))
			if err != nil {
				return nil, err
			}
			return stdlib.OpenDB(*config), nil
		}
	}
	d, err := engines.OpenWorkspaces(place, w.url, 64<<20)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	db, err := openBare()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	of := workspaces.Workspace{
		Tenant:   "default",
		App:      "0192b2a0-0000-7000-8000-000000000001",
		Password: "bench-password-of-a-workspace",
	}
	for _, statement := range []string{makeThings, addThing} {
		if err := inWorkspace(ctx, d, of, statement, nil, "[]"); err != nil {
			return r, err
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return r, err
		}
	}
	o, b, ratio, err := inTurn(
		repeat(func() error {
			return inWorkspace(ctx, d, of, readThing, json.RawMessage(`[5]`), `[{"id":5,"name":"five"}]`)
		}),
		repeat(func() error { return inBare(ctx, db) }),
	)
	return result{ours: perCall(o), bare: perCall(b), ratio: ratio}, err
}

// inWorkspace connects to a workspace, runs a statement, compares its rows and closes.
func inWorkspace(
	ctx context.Context, d workspaces.Driver, w workspaces.Workspace, statement string, params json.RawMessage,
	want string,
) error {
	c, err := d.Connect(ctx, w)
	if err != nil {
		return err
	}
	rows, err := c.Query(ctx, statement, params)
	if err == nil && string(rows) != want {
		err = fmt.Errorf("%s answered %s", statement, rows)
	}
	return errors.Join(err, c.Close())
}

// inBare does the same with a connection of a pool.
func inBare(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	var id int
	var name string
	err = c.QueryRowContext(ctx, readThing, 5).Scan(&id, &name)
	return errors.Join(err, c.Close())
}

// repeat returns a function that measures how often a second something is done, one after the
// other.
func repeat(do func() error) func() (float64, error) {
	return func() (float64, error) {
		begin, n := time.Now(), 0
		for ; time.Since(begin) < time.Second; n++ {
			if err := do(); err != nil {
				return 0, err
			}
		}
		return float64(n) / time.Since(begin).Seconds(), nil
	}
}
