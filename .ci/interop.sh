#!/usr/bin/env bash
# interop.sh [ARGUMENTS of go test]: tests against servers that other people wrote (internal/testkit/interop), which it installs. None is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/needs.sh samba ds389 node simplesamlphp lemonldap
export TENANTCONTENT_INTEROP=1 CGO_ENABLED=0
go vet -tags interop ./internal/testkit/interop/...
go test -tags interop -count=1 -timeout 10m "$@" ./internal/testkit/interop/...
