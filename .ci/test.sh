#!/usr/bin/env bash
# test.sh [PACKAGE...]: runs the tests, all by default, on both databases, a real directory and a real browser. They run
# with the race detector, but for those of memory and sizes (TestXMemory, TestXSize): it makes moving megabytes ten times
# slower, and their goroutines share no memory but a pipe's or a channel's; and for TestPackages, whose scripts compute for half a minute in
# one goroutine (with it the test runs a few of its cases). SQLite's and QuickJS's translated C code and its C library
# (modernc.org/sqlite/lib, libquickjs, libc, memory) are left out of it, which makes tests on SQLite four times faster: that code works in memory
# that is not the Go heap, where the detector sees no races. modernc.org/sqlite itself stays in: it holds a copy of sync.Map's generic code that the linker may use for every
# package, and uninstrumented the copy hides how sync.Map orders its users, which makes false alarms. Its checks of unsafe pointers
# (checkptr, which -race turns on) say nothing about the memory of that code and are off in all of modernc.org, a fifth of the time.
# A skipped test fails the run. In CI no cached result counts.
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/needs.sh postgres pgbouncer slapd browser node cc promtool
export TENANTCONTENT_TEST_REQUIRE=1 # a test that cannot have its PostgreSQL, directory or browser fails

export GORACE="atexit_sleep_ms=20${GORACE:+ $GORACE}" # not a second at the end of each of the hundreds of processes

# What tests write lives for seconds: it stays in memory where there is plenty of it, and programs there may run.
inMemory() {
	[ "$(df --output=avail -BG /dev/shm 2>/dev/null | tail -1 | tr -dc 0-9)" -ge 8 ] &&
		[ "$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 12 ] || return
	local dir
	dir=$(mktemp -d /dev/shm/tenantcontent.XXXXXX) || return
	chmod 1777 "$dir" # as /tmp: servers of tests run as other users
	printf '#!/bin/sh\n' >"$dir/runs" && chmod +x "$dir/runs" && "$dir/runs" 2>/dev/null && echo "$dir" && return
	rm -rf "$dir"
	return 1
}
made=()
trap 'rm -rf "${made[@]}"' EXIT
if [ -z "${TMPDIR:-}" ] && TMPDIR=$(inMemory 2>/dev/null); then
	export TMPDIR
	made+=("$TMPDIR")
fi

# The processes of all packages start from one migrated SQLite file and one PostgreSQL cluster, which the first of them makes here.
TENANTCONTENT_TEST_SHARED=$(mktemp -d "${TMPDIR:-/tmp}/tenantcontent.XXXXXX")
export TENANTCONTENT_TEST_SHARED
chmod 1777 "$TENANTCONTENT_TEST_SHARED"
made+=("$TENANTCONTENT_TEST_SHARED")

translated=()
for package in sqlite/lib libquickjs libc memory; do
	translated+=("-gcflags=modernc.org/$package=-race=false") # the last of the flags that match counts; checkptr is off without the detector
done

alone='Test(\w*(Memory|Size)|Packages)'
# Tests wait for servers, browsers and time-outs: one package more than there are cores keeps the cores busy.
atOnce=$(($(getconf _NPROCESSORS_ONLN) + 1))
# make lint vets all, and once. -w leaves out what only debuggers read: a second less for each of the ninety programs that are linked.
tests() { go test -p "$atOnce" -vet=off -ldflags=-w -timeout 30m -v ${CI:+-count=1} "$@"; }
{
	failed=0
	# The race detector needs C.
	CGO_ENABLED=1 tests -race -gcflags=modernc.org/...=-d=checkptr=0 "${translated[@]}" -skip "^$alone\$" "${@:-./...}" || failed=1
	with=$(go list -f '{{.Dir}}' "${@:-./...}" | while read -r dir; do
		grep -qsE "^func $alone\(" "$dir"/*_test.go && echo "$dir"
	done || true)
	[ -z "$with" ] || CGO_ENABLED=0 tests -trimpath -run "^$alone\$" $with || failed=1
	exit $failed
} | awk -f .ci/test.awk
