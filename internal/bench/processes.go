package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// fewTenants is how many tenants the database has that one with many is compared with.
const fewTenants = 10

// processRows measures processes of the built program on a database with 10,002 tenants against one
// with 10: the server from its start until it answers, and commands from their start to their end.
func processRows(ctx context.Context, engine string, pattern *regexp.Regexp) (all []result, err error) {
	add := func(id string) []string { return []string{"tenant", "add", id} }
	measured := []struct {
		name   string
		before func(id string) []string // a command that is not measured, nil for none
		args   func(id string) []string // of the command, nil: the server; id is a new one
	}{
		{"start of the server", nil, nil},
		{"tenant add", nil, add},
		{"tenant delete", add, func(id string) []string { return []string{"tenant", "delete", id, "--yes"} }},
		{"tenant show", nil, func(string) []string { return []string{"tenant", "show", "default"} }},
		{"user passwd", nil, func(string) []string { return []string{"user", "passwd", "admin"} }},
		{"domain list", nil, func(string) []string { return []string{"domain", "list"} }},
		{"queue dead", nil, func(string) []string { return []string{"queue", "dead"} }},
	}
	n := 0
	name := func(of string) string { return "size, processes: " + of + ", 10,002 tenants against 10" }
	p := &processes{world: &world{engine: engine}}
	for _, m := range measured {
		if !pattern.MatchString(name(m.name)) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s on %s …\n", name(m.name), engine)
		if p.binary == "" {
			defer func() { err = errors.Join(err, p.close()) }()
			if err := p.prepare(ctx); err != nil {
				return nil, err
			}
		}
		side := func(url string) func() (float64, error) {
			return func() (float64, error) {
				if m.args == nil {
					return startOnce(ctx, p.binary, "/healthz", p.flags(url)...)
				}
				n++
				id := fmt.Sprintf("added-%d", n)
				if m.before != nil {
					if _, err := p.command(ctx, append(m.before(id), p.flags(url)...)...); err != nil {
						return 0, err
					}
				}
				return p.command(ctx, append(m.args(id), p.flags(url)...)...)
			}
		}
		many, few, ratio, err := inTurn(side(p.many), side(p.few))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, result{
			name:   name(m.name),
			engine: engine,
			ours:   seconds(many),
			bare:   seconds(few),
			ratio:  ratio,
			must:   "≤ 1.50",
			met:    ratio <= 1.5,
		})
	}
	return all, nil
}

// processes are those of the built program on two databases.
type processes struct {
	*world
	binary, key string
	few, many   string // URLs of the databases
}

func (p *processes) flags(url string) []string {
	return []string{"--database=" + url, "--secret-key=" + p.key}
}

// command runs a command and returns the seconds that it has taken.
func (p *processes) command(ctx context.Context, args ...string) (float64, error) {
	c := exec.CommandContext(ctx, p.binary, args...)
	c.Env = append(os.Environ(), "TENANTCONTENT_PASSWORD="+password, "TENANTCONTENT_ADMIN_PASSWORD="+password)
	begin := time.Now()
	if text, err := c.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, text)
	}
	return time.Since(begin).Seconds(), nil
}

// prepare builds the program and makes the databases.
func (p *processes) prepare(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return err
	}
	p.ends = append(p.ends, func() error { return os.RemoveAll(dir) })
	if p.binary, err = buildServer(ctx, dir); err != nil {
		return err
	}
	p.key = tenantcontent.NewSecretKey()
	p.few, p.many = "sqlite:"+filepath.Join(dir, "few.db"), "sqlite:"+filepath.Join(dir, "many.db")
	if p.engine == "postgres" {
		url, err := p.database(ctx)
		if err != nil {
			return err
		}
		db, err := engines.Open(url)
		if err != nil {
			return err
		}
		for _, name := range []string{"few", "many"} {
			if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
				return errors.Join(err, db.Close())
			}
		}
		if err := db.Close(); err != nil {
			return err
		}
		p.few, p.many = strings.Replace(url, "/postgres?", "/few?", 1), strings.Replace(url, "/postgres?", "/many?", 1)
	}
	return errors.Join(p.fill(ctx, p.few, fewTenants), p.fill(ctx, p.many, manyTenants+2))
}

// fill makes a database with some tenants.
func (p *processes) fill(ctx context.Context, url string, n int) (err error) {
	db, err := engines.Open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := tenantcontent.Migrate(ctx, db); err != nil {
		return err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: p.key,
	})
	if err != nil {
		return err
	}
	if _, _, err := app.FirstStart(ctx, password); err != nil {
		return err
	}
	return app.InTx(ctx, func(ctx context.Context) error {
		for i := range n - 1 {
			if _, err := app.Tenants.Unchecked().Add(ctx, tenants.Tenant{ID: fmt.Sprintf("many-%d", i)}); err != nil {
				return err
			}
		}
		return nil
	})
}
