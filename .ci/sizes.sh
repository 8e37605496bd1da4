#!/usr/bin/env bash
# sizes.sh: builds programs outside the module, without a SQL driver, and prints how many modules
# they link and how large they are, stripped: colors with its store and migrations, the root with
# colors and comments, and the server, which has everything. It fails where a program is above its
# goal. BENCHMARKS.md has the figures.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

# The goals: modules, and MB (1,000,000 bytes).
colors_modules=12 colors_mb=12
root_modules=30 root_mb=25
server_modules=86 server_mb=66 # 86 and 64.2 in November 2026: a growth is to be seen

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=$(go list -m)
mkdir "$work/colors" "$work/root"

cat >"$work/colors/main.go" <<'END'
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func run(ctx context.Context) error {
	pool, err := sql.Open("sqlite", "app.db") // a program links the driver of its choice
	if err != nil {
		return err
	}
	db := bun.NewDB(pool, sqlitedialect.New())
	if err := database.Migrate(ctx, db); err != nil {
		return err
	}
	keys, err := tenants.ParseKeys(os.Getenv("SECRET_KEY"))
	if err != nil {
		return err
	}
	all := tenants.New(tenants.Options{Store: database.Tenants(db), Keys: keys})
	if _, err := all.Unchecked().Add(ctx, tenants.Tenant{ID: "acme"}); err != nil {
		return err
	}
	palette := colors.New(colors.Options{Store: database.Colors(db)})
	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
	_, err = palette.Put(ctx, "red", "#ff0000")
	return err
}

func main() { fmt.Println(run(context.Background())) }
END

cat >"$work/root/main.go" <<'END'
package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func run(ctx context.Context) error {
	pool, err := sql.Open("sqlite", "app.db")
	if err != nil {
		return err
	}
	db := bun.NewDB(pool, sqlitedialect.New())
	if err := tenantcontent.Migrate(ctx, db); err != nil {
		return err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKeyFile: "secret.key"})
	if err != nil {
		return err
	}
	if _, err := app.AddTenant(ctx, tenants.Tenant{ID: "acme"}, "a long password"); err != nil {
		return err
	}
	jo := actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
	if _, err := app.Colors.Put(jo, "red", "#ff0000"); err != nil {
		return err
	}
	if _, err := app.Comments.Create(jo, entity.Key{Kind: "report", ID: "sales"}, "Hello"); err != nil {
		return err
	}
	go app.Run(ctx)
	return http.ListenAndServe("127.0.0.1:8080", app)
}

func main() { fmt.Println(run(context.Background())) }
END

# build FOLDER OUT PACKAGE
build() { (cd "$1" && go build -trimpath -ldflags='-s -w' -o "$2" "$3"); }

for program in colors root; do
	sed 's#^module .*#module example.com/host#' go.mod >"$work/$program/go.mod"
	printf 'require %s v0.0.0\nreplace %s => %s\n' "$module" "$module" "$PWD" >>"$work/$program/go.mod"
	cp go.sum "$work/$program/"
	GOFLAGS=-mod=mod build "$work/$program" "$work/$program.bin" .
done
build . "$work/server.bin" ./cmd/tenantcontent

failed=0
# check NAME FILE MODULES MB
check() {
	local modules bytes
	modules=$(go version -m "$2" | grep -c '^	dep') # with this one, in programs outside
	bytes=$(stat -c %s "$2" 2>/dev/null || stat -f %z "$2")
	awk -v n="$1" -v m="$modules" -v b="$bytes" -v gm="$3" -v gb="$4" 'BEGIN {
		bad = m > gm || b > gb * 1e6
		printf "%-44s %3d modules (goal %d), %5.1f MB (goal %s)%s\n", n, m, gm, b / 1e6, gb, bad ? ": ABOVE" : ""
		exit bad }' || failed=1
}
check "colors with its store and migrations" "$work/colors.bin" $colors_modules $colors_mb
check "root with colors and comments" "$work/root.bin" $root_modules $root_mb
check "server" "$work/server.bin" $server_modules $server_mb
exit $failed
