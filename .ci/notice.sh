#!/usr/bin/env bash
# notice.sh [--check]: writes NOTICE, the modules that the server links on Linux, macOS and Windows, each with its version
# and the licenses that its files in the module cache have. With --check it fails if NOTICE is another one.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C CGO_ENABLED=0

# licenses FILE: the SPDX names of the licenses in a file, one a line.
licenses() {
	local text known=
	text=$(tr -s '[:space:]>*#' ' ' <"$1")
	has() { grep -qiF -- "$1" <<<"$text"; }
	name() { known=true && echo "$1"; }
	! has 'Apache License' || name Apache-2.0
	! has 'Mozilla Public License' || name MPL-2.0
	! has 'Permission is hereby granted, free of charge' || name MIT
	! has 'Permission to use, copy, modify, and/or distribute this software' || name ISC
	if has 'Redistribution and use in source and binary forms'; then
		if has 'Neither the name' || has 'names of its contributors may' || has 'may not be used to endorse'; then
			name BSD-3-Clause
		else
			name BSD-2-Clause
		fi
	fi
	[ -n "$known" ] || ! has 'public domain' || name 'public domain'
	[ -n "$known" ] || { echo "notice.sh: add the license in $1 to this script" >&2; return 1; }
}

notice() {
	local format='{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' modules path version dir file names
	cat <<-END
		tenantcontent
		Copyright 2026 The tenantcontent authors

		A server links these modules and the standard library of Go (BSD-3-Clause). .ci/notice.sh writes this list.

	END
	modules=$(for os in linux darwin windows; do GOOS=$os go list -deps -f "$format" ./cmd/tenantcontent; done | sort -u)
	while read -r path version dir; do
		[ -n "$dir" ] || continue
		names=
		for file in "$dir"/*; do
			case ${file##*/} in
			LICENSE-LOGO* | LICENSE_TEST262* | *.go | *.license) ;; # of files that no program links
			LICENSE-3RD-PARTY*) names+="others in its ${file##*/}"$'\n' ;;
			LICEN[CS]E* | COPYING*) [ ! -f "$file" ] || names+="$(licenses "$file")"$'\n' ;;
			esac
		done
		[ -n "$names" ] || { echo "notice.sh: $path has no file with a license: look into $dir" >&2; return 1; }
		echo "$path $version: $(sort -u <<<"${names%$'\n'}" | paste -sd, - | sed 's/,/, /g')"
	done <<<"$modules"
}

if [ "${1:-}" = --check ]; then
	diff <(notice) NOTICE >&2 || { echo "NOTICE is not what .ci/notice.sh writes: run it" >&2; exit 1; }
else
	notice >NOTICE.new
	mv NOTICE.new NOTICE
fi
