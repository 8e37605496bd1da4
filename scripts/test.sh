#!/usr/bin/env bash
# test.sh [PACKAGE...]: runs the tests, all by default, on both databases, a real directory and a real browser. They run
# with the race detector, but for those of memory and sizes (TestXMemory, TestXSize): it makes moving megabytes ten times
# slower, and they have no concurrency. A skipped test fails the run. In CI no cached result counts.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/needs.sh postgres slapd browser cc
export TENANTCONTENT_TEST_REQUIRE_POSTGRES=1 # a test that cannot have its PostgreSQL fails
export TENANTCONTENT_TEST_REQUIRE_SLAPD=1    # and one that cannot have its directory
export TENANTCONTENT_TEST_REQUIRE_BROWSER=1  # or its browser

sizes='Test\w*(Memory|Size)'
tests() { go test -timeout 30m -v ${CI:+-count=1} "$@"; }
{
	failed=0
	CGO_ENABLED=1 tests -race -skip "^$sizes\$" "${@:-./...}" || failed=1 # the race detector needs C
	with=$(go list -f '{{.Dir}}' "${@:-./...}" | while read -r dir; do
		grep -qsE "^func $sizes\(" "$dir"/*_test.go && echo "$dir"
	done || true)
	[ -z "$with" ] || CGO_ENABLED=0 tests -run "^$sizes\$" $with || failed=1
	exit $failed
} | awk -f scripts/test.awk
