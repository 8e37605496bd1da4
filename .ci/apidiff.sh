#!/usr/bin/env bash
# apidiff.sh: compares the exported API of the stable packages, which are the table of docs/stability.md, with that of the
# last release in CHANGELOG.md, and prints what is not compatible. It fails if CHANGELOG.md does not name, between
# "## Unreleased" and that release, a package with such changes in backquotes, such as `colors`.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

# A release in CHANGELOG.md is a heading "## v0.1.0 …" and below it "Commit `id`.".
read -r release commit < <(awk -F'[ `.]' '/^## v/ { v = substr($0, 4); sub(/[ ,].*/, "", v) } v && /^Commit `[0-9a-f]+`/ { print v, $3; exit }' CHANGELOG.md)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null && ! git fetch -q --depth=1 origin "$commit" 2>/dev/null; then
	echo "**** apidiff was NOT run: this clone does not have $release ($commit) ****" >&2
	exit 0
fi

late=$(awk -v r="## $release" 'index($0, r) == 1 { on = 1 } on && /^- /' CHANGELOG.md | { grep -vxFf <(git show "$commit:CHANGELOG.md") || true; })
if [ -n "$late" ]; then
	echo "apidiff.sh: new entries belong below Unreleased; CHANGELOG.md has these below $release:" >&2
	echo "$late" >&2
	exit 1
fi

tool=.tools/apidiff-20260410-$(go env GOVERSION) # built by the Go in use, whose export data it reads
if [ ! -x "$tool" ]; then
	GOBIN=$PWD/.tools go install golang.org/x/exp/cmd/apidiff@v0.0.0-20260410095643-746e56fc9e2f
	mv .tools/apidiff "$tool"
fi
tool=$PWD/$tool

module=$(go list -m)
work=$(mktemp -d)
trap 'git worktree remove -f "$work/old"; rm -rf "$work"' EXIT
git worktree add -q --detach "$work/old" "$commit"

# quietly COMMAND...: without a line for each package below internal.
quietly() { "$@" 2> >(grep -v '^Ignoring internal package' >&2); }

(cd "$work/old" && quietly "$tool" -m -w "$work/old.export" "$module")
quietly "$tool" -m -w "$work/new.export" "$module"
# Interfaces that are called Store are for stores of this module, and may get methods.
quietly "$tool" -m -incompatible "$work/old.export" "$work/new.export" | awk '!/^- [^:]*\.Store[.:]/' >"$work/changes"

# of prints the changes of one package. Lines are "- Name…" for the root, "- ./colors.Name…" and "- package MODULE/colors: removed".
of() {
	awk -v p="$1" -v removed="- package $module/$1: removed" '
		p == "." ? !/^- (\.\/|package )/ : index($0, "- ./" p ".") == 1 || $0 == removed' "$work/changes"
}

unreleased=$(awk '/^## / { on = /^## Unreleased/ } on' CHANGELOG.md)
unnamed=()
for package in $(awk -F'`' '/^\| `/ { print $2 }' docs/stability.md); do
	name=${package/#./tenantcontent}
	changes=$(of "$package")
	[ -n "$changes" ] || continue
	printf '%s: not compatible with %s\n%s\n' "$name" "$release" "$(sed 's/^/  /' <<<"$changes")"
	grep -qF "\`$name\`" <<<"$unreleased" || unnamed+=("$name")
done
if [ ${#unnamed[@]} -gt 0 ]; then
	echo "apidiff.sh: say in CHANGELOG.md, below Unreleased, what users of these packages do, with each name in backquotes: ${unnamed[*]}" >&2
	exit 1
fi
