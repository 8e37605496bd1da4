#!/usr/bin/env bash
# test.sh [PACKAGE...]: runs the tests, all by default, on both databases, a real directory and a real browser, with the race
# detector. A skipped test fails the run. In CI no cached result counts.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/needs.sh postgres slapd browser cc
export TENANTCONTENT_TEST_REQUIRE_POSTGRES=1 # a test that cannot have its PostgreSQL fails
export TENANTCONTENT_TEST_REQUIRE_SLAPD=1    # and one that cannot have its directory
export TENANTCONTENT_TEST_REQUIRE_BROWSER=1  # or its browser
export CGO_ENABLED=1                         # for the race detector alone
go test -race -timeout 30m -v ${CI:+-count=1} "${@:-./...}" | awk -f scripts/test.awk
