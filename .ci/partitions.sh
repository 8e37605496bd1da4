#!/usr/bin/env bash
# partitions.sh: runs the suites of all stores, but for tests of memory and sizes, on a PostgreSQL whose tables have two partitions each,
# and the test of kept totals.
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/needs.sh postgres
export TENANTCONTENT_TEST_PARTITIONS=2 TENANTCONTENT_TEST_REQUIRE=1

# The processes of all packages start from one PostgreSQL cluster, which the first of them makes here.
TENANTCONTENT_TEST_SHARED=$(mktemp -d)
export TENANTCONTENT_TEST_SHARED
trap 'rm -rf "$TENANTCONTENT_TEST_SHARED"' EXIT
chmod 1777 "$TENANTCONTENT_TEST_SHARED" # as /tmp: servers of tests run as other users
stores=$(go list -f '{{if eq .Name "bunstore"}}{{.ImportPath}}{{end}}' ./internal/store/...)
go test -vet=off ${CI:+-count=1} -run /postgres -skip 'Test\w*(Memory|Size)$' $stores
go test -vet=off ${CI:+-count=1} -run '^TestTotalsAreExact$/postgres' ./internal/store/migrations
