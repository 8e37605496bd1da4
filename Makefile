# `make` lists the targets. The program needs no C; test.sh alone turns cgo on, for the race detector.
export CGO_ENABLED = 0

# Built by the Go in use, as it reads no code of a newer one; kept, as `go run` would ask the module proxy each time.
STATICCHECK = .tools/staticcheck-0.8.2-$(shell go env GOVERSION)

# The same flags for all that compiles the program without the race detector, so that nothing is compiled twice.
vet staticcheck build run partitions postgres interop: export GOFLAGS := $(shell go env GOFLAGS) -trimpath

.NOTPARALLEL:
.PHONY: help run test interop partitions postgres check lint vet staticcheck beside vuln sizes build bench api openapi fmt fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: export TENANTCONTENT_OPEN_LICENSES ?= true
run: ## start the server on an embedded database in ./data
	@go build -o bin/ ./cmd/tenantcontent
	bin/tenantcontent serve

test: ## every test on both databases, with the race detector, none skipped; installs PostgreSQL, slapd, Chromium and Node.js when missing
	.ci/test.sh

interop: ## tests against servers that others wrote, as root: Samba's Active Directory, 389 Directory Server, oidc-provider, SimpleSAMLphp, LemonLDAP::NG; installs them when missing
	.ci/interop.sh

partitions: ## the suites of all stores on a PostgreSQL whose tables have partitions
	.ci/partitions.sh

postgres: ## the suites of all stores on the newest PostgreSQL 14, 15, 16, 17 and 18 that npm has
	.ci/postgres.sh

check: vet vuln sizes beside build ## what CI runs: lint, vuln, sizes, test, build

# The tests wait for servers and browsers a fifth of the time: staticcheck has the processors then, at the lowest priority.
beside: $(STATICCHECK)
	@nice -n 19 $(MAKE) -s staticcheck >.tools/staticcheck.log 2>&1 & lint=$$!; \
	.ci/test.sh; tests=$$?; \
	wait $$lint || { echo "make staticcheck:"; cat .tools/staticcheck.log; exit 1; } >&2; \
	exit $$tests

lint: vet staticcheck ## gofmt, go mod tidy, NOTICE, documents, vet, staticcheck: complain, change nothing

vet:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; } >&2
	go mod tidy -diff
	.ci/notice.sh --check
	.ci/docs.sh
	go vet ./...

staticcheck: $(STATICCHECK)
	$(STATICCHECK) ./...

$(STATICCHECK):
	GOBIN=$(CURDIR)/.tools go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	mv .tools/staticcheck $@

vuln: ## known vulnerabilities, where their database is reachable
	.ci/vuln.sh

sizes: ## how large programs are that import the library; fails above a goal
	.ci/sizes.sh

build: ## compile everything; the server goes to ./bin
	go build ./...
	go build -o bin/ ./cmd/tenantcontent

bench: ## ratios against a bare handler, on both databases, and against Node.js with isolated-vm
	.ci/needs.sh postgres slapd node cxx
	go run ./internal/bench

api: ## incompatible changes of the stable packages since the last release; fails if CHANGELOG.md does not name them
	.ci/apidiff.sh

openapi: ## lint the description of the routes, and what in it breaks clients of the last release; fails if CHANGELOG.md does not name that
	.ci/needs.sh node
	.ci/openapi.sh

fmt: ## format the code, tidy go.mod and write NOTICE
	gofmt -w .
	go mod tidy
	.ci/notice.sh

fuzz: ## every fuzz target for FUZZTIME (20s) each
	.ci/fuzz.sh
