#!/usr/bin/env bash
# openapi.sh: lints docs/openapi.json with Redocly's rules, and prints what in it breaks clients of the last release in
# CHANGELOG.md. It fails if CHANGELOG.md does not name, between "## Unreleased" and that release, the path of such a change.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 REDOCLY_TELEMETRY=off
redocly=2.77.0 oasdiff=1.37.0

tools=$PWD/.tools/redocly-$redocly
if [ ! -d "$tools" ]; then
	rm -rf "$tools.part"
	npm install --silent --no-save --no-package-lock --no-audit --no-fund --prefix "$tools.part" "@redocly/cli@$redocly" >/dev/null
	mv "$tools.part" "$tools"
fi
"$tools/node_modules/.bin/redocly" lint --config .ci/redocly.yaml --format=stylish docs/openapi.json

# A release in CHANGELOG.md is a heading "## v0.1.0 …" and below it "Commit `id`.".
read -r release commit < <(awk -F'[ `.]' '/^## v/ { v = substr($0, 4); sub(/[ ,].*/, "", v) } v && /^Commit `[0-9a-f]+`/ { print v, $3; exit }' CHANGELOG.md)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null && ! git fetch -q --depth=1 origin "$commit" 2>/dev/null; then
	echo "**** openapi.sh compared nothing: this clone does not have $release ($commit) ****" >&2
	exit 0
fi
if ! git cat-file -e "$commit:docs/openapi.json" 2>/dev/null; then
	echo "openapi.sh: $release has no docs/openapi.json to compare with"
	exit 0
fi

tool=$PWD/.tools/oasdiff-$oasdiff
if [ ! -x "$tool" ]; then
	GOBIN=$PWD/.tools GOFLAGS= go install "github.com/oasdiff/oasdiff@v$oasdiff"
	mv .tools/oasdiff "$tool"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git show "$commit:docs/openapi.json" >"$work/old.json"
"$tool" breaking --format json "$work/old.json" docs/openapi.json >"$work/changes.json"
awk '/^## / { on = /^## Unreleased/ } on' CHANGELOG.md >"$work/unreleased.md"
node - "$work/changes.json" "$work/unreleased.md" "$release" <<'END'
const fs = require("fs")
const [changes, unreleased, release] = process.argv.slice(2)
const named = fs.readFileSync(unreleased, "utf8")
const paths = new Set()
for (const c of JSON.parse(fs.readFileSync(changes, "utf8") || "[]") || []) {
	console.log(`breaks clients of ${release}: ${c.operation} ${c.path}: ${c.text}`)
	if (!named.includes("`" + c.path + "`") && !named.includes(`${c.operation} ${c.path}`)) paths.add(c.path)
}
if (paths.size > 0) {
	console.error(`openapi.sh: say in CHANGELOG.md, below Unreleased, what clients do, with each path in backquotes: ${[...paths].join(" ")}`)
	process.exit(1)
}
END
