#!/usr/bin/env bash
# needs.sh THING...: installs what is missing of postgres, pgbouncer, slapd, browser, node, cc, cxx,
# make, promtool, samba, ds389, simplesamlphp and lemonldap with the system's package manager.
set -euo pipefail

say() { printf 'needs.sh: %s\n' "$*" >&2; }

# Looks where internal/testkit/pgtest does.
have_postgres() {
	local dir
	for dir in "${PG_BIN:-}" "$(dirname "$(readlink -f "$(command -v postgres)" || true)")" \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
		if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then return; fi
		if [ -n "${PG_BIN:-}" ]; then # then only there
			say "PG_BIN=$PG_BIN holds no initdb and postgres: correct it, or unset it to use the installed ones"
			exit 1
		fi
	done
	return 1
}

# A test of package database/postgres runs it.
have_pgbouncer() { command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; }

# Looks where internal/testkit/slapd does.
have_slapd() {
	local file
	if [ -n "${SLAPD:-}" ]; then # then only there
		[ -x "$SLAPD" ] && return
		say "SLAPD=$SLAPD is no program: correct it, or unset it to use the installed one"
		exit 1
	fi
	for file in "$(command -v slapd || true)" /usr/sbin/slapd /usr/lib/openldap/slapd /usr/local/libexec/slapd \
		/opt/homebrew/opt/openldap/libexec/slapd /usr/local/opt/openldap/libexec/slapd; do
		if [ -x "$file" ]; then return; fi
	done
	return 1
}

# Looks where internal/testkit/endtoend does.
have_browser() {
	local file
	if [ -n "${CHROMIUM:-}" ]; then # then only there
		command -v "$CHROMIUM" >/dev/null && return
		say "CHROMIUM=$CHROMIUM is no program: correct it, or unset it to use the installed one"
		exit 1
	fi
	for file in chromium chromium-browser google-chrome google-chrome-stable \
		"/Applications/Chromium.app/Contents/MacOS/Chromium" "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
		if command -v "$file" >/dev/null; then return; fi
	done
	return 1
}

# A test builds a front end with it.
have_node() { command -v node >/dev/null && command -v npm >/dev/null; }

# The race detector is linked against the C library: a compiler without its headers is not enough.
have_cc() { echo '#include <stdlib.h>' | $(go env CC) -E -x c - >/dev/null 2>&1; }

# npm builds packages in C++ with it.
have_cxx() { command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null; }

# internal/testkit/interop runs these two. Samba's files for new domains of Active Directory are a package of their own.
have_samba() { command -v samba >/dev/null && command -v samba-tool >/dev/null && [ -d /usr/share/samba/setup/ad-schema ]; }
have_ds389() { command -v ns-slapd >/dev/null && command -v certutil >/dev/null && command -v pk12util >/dev/null && command -v openssl >/dev/null; }

have_simplesamlphp() { command -v php >/dev/null && [ -d /usr/share/simplesamlphp/www ]; }

have_lemonldap() {
	[ -f /usr/share/lemonldap-ng/portal/htdocs/index.psgi ] && command -v plackup >/dev/null &&
		perl -MLasso -MXML::Simple -MIO::String -MUnicode::String -MString::Random -MEmail::Sender::Simple -MCrypt::OpenSSL::Bignum -MCrypt::OpenSSL::X509 -MMIME::Entity -e 1 2>/dev/null
}

# A test checks the alerts of docs/monitoring with it.
have_promtool() { command -v promtool >/dev/null; }

have_make() { command -v make >/dev/null; }

# as_root COMMAND...: through sudo where needed; without a terminal sudo must not ask for a password.
as_root() {
	local sudo=()
	if [ "$(id -u)" != 0 ]; then
		sudo=(sudo)
		[ -t 0 ] || sudo=(sudo -n)
	fi
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		say "not root, and no sudo here; run as root, then try again: .ci/needs.sh ${missing[*]}"
		return 1
	fi
	say running: "${sudo[@]}" "$@"
	"${sudo[@]}" "$@"
}

# package THING MANAGER: what the manager calls it.
package() {
	case $1:$2 in
	postgres:apt-get | postgres:apk) echo postgresql ;;
	postgres:dnf) echo postgresql-server ;;
	postgres:brew) echo postgresql@17 ;;
	pgbouncer:*) echo pgbouncer ;;
	slapd:apt-get) echo slapd ;;
	slapd:dnf) echo openldap-servers ;;
	slapd:apk) echo openldap openldap-back-mdb openldap-overlay-refint ;;
	slapd:brew) echo openldap ;;
	browser:*) echo chromium ;;
	node:brew) echo node ;;
	node:*) echo nodejs npm ;;
	cc:apt-get) echo gcc libc6-dev ;;
	cc:dnf) echo gcc glibc-devel ;;
	cc:apk) echo gcc musl-dev ;;
	cc:brew) echo gcc ;;
	cxx:dnf) echo gcc-c++ make python3 ;;
	cxx:brew) echo gcc make python3 ;;
	cxx:*) echo g++ make python3 ;;
	make:*) echo make ;;
	promtool:apt-get) echo prometheus ;;
	promtool:dnf) echo golang-github-prometheus ;;
	promtool:apk | promtool:brew) echo prometheus ;;
	samba:apt-get) echo samba-ad-dc samba-ad-provision ;;
	samba:dnf) echo samba-dc samba-dc-provision samba-tools ;;
	simplesamlphp:apt-get) echo simplesamlphp php-cli php-xml ;;
	lemonldap:apt-get) # what it recommends and needs for SAML and OpenID Connect
		echo liblemonldap-ng-portal-perl lemonldap-ng-fastcgi-server libplack-perl liblasso-perl libxml-simple-perl libio-string-perl libunicode-string-perl \
			libstring-random-perl libemail-sender-perl libcrypt-openssl-bignum-perl libcrypt-openssl-x509-perl libmime-tools-perl
		;;
	ds389:apt-get) echo 389-ds-base libnss3-tools openssl ;;
	ds389:dnf) echo 389-ds-base nss-tools openssl ;;
	esac
}

# stop_servers PACKAGE...: systemd has started the server that comes with a package of Debian. Nobody wants that one.
stop_servers() {
	[ -d /run/systemd/system ] || return 0
	[[ " $* " != *" slapd "* ]] || as_root systemctl disable -q --now slapd
	[[ " $* " != *" prometheus "* ]] || as_root systemctl disable -q --now prometheus
	[[ " $* " != *" pgbouncer "* ]] || as_root systemctl disable -q --now pgbouncer || true
	[[ " $* " != *" samba-ad-dc "* ]] || as_root systemctl disable -q --now samba-ad-dc smbd nmbd winbind || true # those that there are
	[[ " $* " != *" lemonldap-ng-fastcgi-server "* ]] || as_root systemctl disable -q --now lemonldap-ng-fastcgi-server || true
	[[ " $* " != *" simplesamlphp "* ]] || as_root systemctl disable -q --now apache2 || true
}

install_packages() {
	local manager=$1
	shift
	case $manager in
	apt-get) # RUNLEVEL=1 keeps Debian from starting a server of its own, where there is no systemd
		as_root apt-get update -q &&
			as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qy --no-install-recommends "$@" &&
			stop_servers "$@"
		;;
	dnf) as_root dnf install -qy "$@" ;;
	apk) as_root apk add -q "$@" ;;
	brew) say "running: brew install $*" && brew install -q "$@" ;;
	esac
}

missing=()
for thing; do
	"have_$thing" || missing+=("$thing")
done
[ ${#missing[@]} -gt 0 ] || exit 0
say "missing: ${missing[*]}"

for manager in apt-get dnf apk brew; do
	command -v $manager >/dev/null || continue
	packages=()
	for thing in "${missing[@]}"; do
		read -ra names <<<"$(package "$thing" $manager)"
		packages+=("${names[@]}")
	done
	install_packages $manager "${packages[@]}" || { say "could not install ${packages[*]}" && exit 1; }
	for thing in "${missing[@]}"; do
		"have_$thing" || { say "$manager installed ${packages[*]}, yet $thing is not found" && exit 1; }
	done
	exit 0
done
say "no apt-get, dnf, apk or brew here: install by hand (postgres: the server with initdb; pgbouncer: PgBouncer; \
slapd: OpenLDAP's server; browser: Chromium; node: Node.js with npm; cc: $(go env CC) and C headers; cxx: \
g++, make and Python; promtool: Prometheus; samba: Samba's AD DC with samba-tool; ds389: 389 Directory \
Server, certutil, pk12util, openssl; simplesamlphp: SimpleSAMLphp in /usr/share, and php; lemonldap: \
LemonLDAP::NG's portal in /usr/share, Lasso and plackup)"
exit 1
