#!/usr/bin/env bash
# fuzz.sh: runs every fuzz target for FUZZTIME (20s) each, all of them even when one finds something.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0 found=0
while IFS=: read -r file func; do
	found=$((found + 1))
	echo "$(dirname "$file"): $func"
	go test -run '^$' -fuzz "^${func#func }\$" -fuzztime "${FUZZTIME:-20s}" "$(dirname "$file")" </dev/null || failed=$((failed + 1))
done < <(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' .)
echo "fuzz targets: $found run, $failed failed"
[ $found -gt 0 ] && [ $failed = 0 ]
