#!/usr/bin/env bash
# docs.sh: checks the links of README.md, docs/*.md and the other documents to files and headings of this repository, that
# docs/README.md lists every document in docs/, that what CONTRIBUTING.md names is there, and that README.md and ARCHITECTURE.md stay short.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

failed=0
fail() { echo "docs.sh: $*" >&2; failed=1; }

# anchors FILE: the anchors of its headings, as GitHub and others make them.
anchors() {
	awk '/^```/ { code = !code; next }
	!code && /^#+ / {
		sub(/^#+ +/, ""); gsub(/\[|\]\([^)]*\)/, ""); $0 = tolower($0)
		gsub(/[^a-z0-9 _\200-\377-]/, ""); gsub(/ /, "-")
		print seen[$0]++ ? $0 "-" seen[$0] - 1 : $0
	}' "$1"
}

# links FILE: the targets of its links, one a line, but those in code.
links() {
	awk '/^ *```/ { code = !code; next } !code' "$1" | sed 's/`[^`]*`//g' | { grep -oE '\]\([^)]+\)' || true; } | sed 's/^](//; s/)$//; s/ ".*"$//'
}

while read -r document; do
	while read -r link; do
		case $link in http://* | https://* | mailto:*) continue ;; esac
		path=${link%%#*} target=$document
		[ -z "$path" ] || target=$(dirname "$document")/$path
		if [ ! -e "$target" ]; then
			fail "$document: there is no $link"
		elif [[ $link == *#* ]] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
			fail "$document: $target has no heading #${link#*#}"
		fi
	done < <(links "$document")
done < <(git ls-files --cached --others --exclude-standard '*.md' | grep -v /testdata/)

# CONTRIBUTING.md says "`name` in [file](file)" where things are.
while IFS='`' read -r _ name rest; do
	file=${rest##*(} file=${file%)}
	grep -qw -- "$name" "$file" 2>/dev/null || fail "CONTRIBUTING.md: there is no $name in $file"
done < <(grep -oE '`[A-Za-z]+` in \[[^]]+\]\([^)]+\)' CONTRIBUTING.md)

for document in docs/*.md; do
	name=${document#docs/}
	[ "$name" = README.md ] || grep -qF "]($name)" docs/README.md || fail "docs/README.md does not list $name"
done

# short FILE BYTES
short() { [ "$(wc -c <"$1")" -le "$2" ] || fail "$1 has more than $2 bytes: move what is not for everybody to docs/"; }
short README.md 8192
short ARCHITECTURE.md 12288
exit $failed
