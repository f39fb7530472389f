# Everything is built with one set of flags, so that no package is compiled twice; only the tests use -race.
SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help
export GOWORK := off

GO_BUILD := CGO_ENABLED=0 go
GO_FLAGS := -trimpath
# The race detector needs cgo.
# API servers and tests with the race detector allocate a lot: collecting garbage less often takes a tenth off the time, for more memory.
# Nobody reads a memory profile of the tests, and each garbage collection goes over all of its stack traces.
# A program with the race detector sleeps for a second before it ends, unless it is told otherwise, and there are a hundred packages.
TEST_ENV := GODEBUG=memprofilerate=0 GORACE=atexit_sleep_ms=100
TESTSUM := $(TEST_ENV) GOGC=300 CGO_ENABLED=1 go run $(GO_FLAGS) ./hack/testsum $(if $(LOAD),-load=$(LOAD))
# LOAD=2 runs two busy loops beside the tests: they have to pass on a busy machine too.
# No cached results: the tests run the managers as programs, which the go command does not count among what a test depends on.
# Most packages run API servers or whole clusters, and wait for most of their time: four at a time keep two cores busy, if the longest
# begin. make lint runs vet, once for the whole repository. There are a hundred programs to link, which takes a quarter less without
# DWARF, which only a debugger reads. The time limit ends a package that hangs, not one that is slow.
TEST_FLAGS := -trimpath -vet=off -race -ldflags=-w -count=1 -timeout=45m -p=4
# make test-contract and its parts run without the race detector. They start the managers as programs, so that it would see nothing but the
# simulators and the test itself. make test runs the simulators with it, and its package test/e2e builds the managers with it; make test-e2e
# and make test-chaos run crashes and faults with it.
CONTRACT_SUM := $(TEST_ENV) GOGC=300 CGO_ENABLED=0 go run $(GO_FLAGS) ./hack/testsum $(if $(LOAD),-load=$(LOAD)) \
	$(filter-out -race,$(TEST_FLAGS))

# tool builds a third-party program from its pinned module below hack/tools, once, and prints its path.
tool = $(GO_BUILD) run $(GO_FLAGS) ./test/localcontrolplane/cmd/tools $(1)

UNIT_PACKAGES := ./api/... ./internal/... ./bootstrap/... ./controlplane/... ./hack/...
E2E_PACKAGES := ./test/e2e/... ./test/infrastructure/...
FAULT_PACKAGES := ./test/chaos/... ./test/faults/...
# What make test leaves out, to stay short: crashes and faults of whole clusters, the pages of capabilities, Cluster API's rules, templates
# and releases as they are installed, and what is replayed with Prometheus.
# The longest begin: they are named first, and go runs a package that is named twice once.
CONTRACT_PACKAGES := ./test/clusterctl $(FAULT_PACKAGES) ./test/contract/machines ./test/monitoring ./test/contract/topology \
	./test/contract/controlplane ./test/operator/... ./test/chart/... ./test/capabilities/... ./test/contract/bootstrap \
	./test/clusterctl/... ./test/contract/... ./test/templates/... ./test/release/... ./test/monitoring/...
integration_packages = $$($(GO_BUILD) list ./test/... | grep -v -e /test/e2e -e /test/chaos -e /test/faults -e /test/infrastructure \
	-e /test/contract -e /test/templates -e /test/release -e /test/clusterctl -e /test/operator -e /test/capabilities -e /test/monitoring \
	-e /test/chart)

# What `make generate` writes and `make verify` compares.
GENERATED := ':(glob)**/zz_generated.*' ':(glob)config/*/crd/bases/*' ':(glob)config/*/rbac/role.yaml' \
	':(glob)config/*/webhook/manifests.yaml' docs/reference/api.md docs/reference/conditions.md docs/reference/contract.md \
	docs/reference/coverage.md docs/reference/flags.md docs/reference/metrics.md ':(glob)config/dashboards/*.json'

##@ General

.PHONY: help
help: ## Show this text.
	@awk 'BEGIN {FS = ":.*##"; print "Usage: make \033[36m<target>\033[0m"} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^##>/ {printf "%21s%s\n", "", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*##/ {printf "  \033[36m%-18s\033[0m%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## Download every Go module that the other targets need; nothing is built.
	$(GO_BUILD) mod download
	cd test/e2e-capi && $(GO_BUILD) mod download
	$(call tool,-download)

.PHONY: clean
clean: ## Remove what the other targets made in this folder.
	rm -rf bin out

##@ Build

# Without VERSION it is the tag or the commit: the go command knows it only where GOFLAGS does not turn that off.
version = $(or $(VERSION),$(shell git describe --tags --always --dirty 2>/dev/null))
# A commit of its own name, and -dirty behind it where files have changed since.
revision = $(or $(REVISION),$(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null))
version_package := github.com/capi-openshift/agent-providers/internal/version
link_flags = -s -w -X $(version_package).revision=$(revision) -X $(version_package).stamped=$(version)

.PHONY: build
build: ## Build both managers into bin/: VERSION=v0.1.0.
	$(GO_BUILD) build $(GO_FLAGS) -ldflags "$(link_flags)" -o bin/bootstrap ./bootstrap
	$(GO_BUILD) build $(GO_FLAGS) -ldflags "$(link_flags)" -o bin/controlplane ./controlplane

# The time of everything in the images; https://reproducible-builds.org/specs/source-date-epoch
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
image_flags = $(if $(REGISTRY),-registry=$(REGISTRY)) $(if $(PLATFORMS),-platforms=$(PLATFORMS)) $(if $(BUILDER),-builder=$(BUILDER)) \
	$(if $(FIPS),-fips=certified)
image_folder = out/images$(if $(FIPS),-fips)

.PHONY: images
images: ## Write the images of both managers, their SBOMs and provenance, into out/images: no docker, no root; twice the same digests.
##> VERSION=v0.1.0 REGISTRY=host/owner PLATFORMS=linux/amd64,linux/arm64 BUILDER=uri; FIPS=1 writes those with Go's FIPS 140-3 module
	$(GO_BUILD) run $(GO_FLAGS) ./hack/images -version=$(version) -revision=$(revision) -ldflags="$(link_flags)" -out=$(image_folder) \
		$(image_flags)

.PHONY: push-images
push-images: ## Send what make images has written to REGISTRY=host/owner, with the credentials of docker or podman.
	@[[ -n "$(REGISTRY)" ]] || { echo "make push-images needs REGISTRY=host/owner" >&2; exit 1; }
	$(GO_BUILD) run $(GO_FLAGS) ./hack/images -out=$(image_folder) -push=$(REGISTRY)

.PHONY: sign
sign: ## Sign with cosign what make push-images has sent to REGISTRY=host/owner, with the private key KEY=file: images, SBOMs, provenance.
##> COSIGN=program uses another cosign than the one that is built on first use; COSIGN_FLAGS=flags a transparency log
	@[[ -n "$(REGISTRY)" && -n "$(KEY)" ]] || { echo "make sign needs REGISTRY=host/owner and KEY=file" >&2; exit 1; }
	cosign=$(or $(COSIGN),$$($(call tool,cosign))); \
	$(GO_BUILD) run $(GO_FLAGS) ./hack/images -out=$(image_folder) -sign=$(REGISTRY) -key=$(KEY) -cosign="$$cosign" \
		-cosign-flags="$(COSIGN_FLAGS)"

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what the managers call: in the database of the folder DB, or in Go's on the internet.
	govulncheck=$$($(call tool,govulncheck)); \
	CGO_ENABLED=0 "$$govulncheck" $(if $(DB),-db=file://$(abspath $(DB))) ./bootstrap ./controlplane

release_flags = $(if $(REGISTRY),-registry=$(REGISTRY)) $(if $(BOOTSTRAP_IMAGE),-bootstrap-image=$(BOOTSTRAP_IMAGE)) \
	$(if $(CONTROL_PLANE_IMAGE),-control-plane-image=$(CONTROL_PLANE_IMAGE))

.PHONY: release
release: ## Write a release into out/release: VERSION=v0.1.0 REGISTRY=host/owner BOOTSTRAP_IMAGE=ref CONTROL_PLANE_IMAGE=ref.
	kustomize=$$($(call tool,kustomize)); \
	$(GO_BUILD) run $(GO_FLAGS) ./hack/release -version=$(VERSION) -out=out/release -kustomize="$$kustomize" $(release_flags)

.PHONY: chart
chart: release ## Write the Helm chart of that release into out/openshift-assisted, with the flags of make release.
	kustomize=$$($(call tool,kustomize)); \
	$(GO_BUILD) run $(GO_FLAGS) ./hack/chart -version=$(VERSION) -out=out -release=out/release -kustomize="$$kustomize"

.PHONY: release-notes
release-notes: ## Write what changed since a revision into out/release-notes.md: FROM=v0.1.0 TO=v0.2.0; the last tag and HEAD by default.
	@mkdir -p out
	$(GO_BUILD) run $(GO_FLAGS) ./hack/releasenotes $(if $(FROM),-from=$(FROM)) $(if $(TO),-to=$(TO)) >out/release-notes.md
	@echo out/release-notes.md

.PHONY: released-api
released-api: ## Take the API of a revision for that of the last release: REVISION=v0.1.0. Run it after each release.
	rm -f api/testdata/released/*.yaml
	git archive $(REVISION) config/bootstrap/crd/bases config/controlplane/crd/bases | \
		tar --extract --directory=api/testdata/released --strip-components=4 --wildcards '*.yaml'
	git rev-parse --verify --end-of-options '$(REVISION)^{commit}' >api/testdata/released/revision

.PHONY: book
book: ## Build the documentation as a website into out/book; links that lead nowhere fail.
	$(GO_BUILD) run $(GO_FLAGS) ./hack/book -out=out/book

##@ Generate and check

.PHONY: generate
generate: ## Write deep-copy functions, CRDs, roles, webhook manifests and reference documents.
	gen=$$($(call tool,controller-gen)); \
	"$$gen" object:headerFile=hack/boilerplate.go.txt paths=./api/... paths=./internal/... paths=./test/sim/...; \
	for provider in bootstrap controlplane; do \
		"$$gen" crd:crdVersions=v1 paths=./api/$$provider/... output:crd:dir=config/$$provider/crd/bases; \
		"$$gen" rbac:roleName=manager-role webhook paths=./$$provider/... \
			output:rbac:dir=config/$$provider/rbac output:webhook:dir=config/$$provider/webhook; \
	done
	$(GO_BUILD) run $(GO_FLAGS) ./hack/apidoc
	$(GO_BUILD) run $(GO_FLAGS) ./hack/conditionsdoc
	$(GO_BUILD) run $(GO_FLAGS) ./hack/contractdoc
	$(GO_BUILD) run $(GO_FLAGS) ./hack/coveragedoc
	$(GO_BUILD) run $(GO_FLAGS) ./hack/dashboards
	$(GO_BUILD) run $(GO_FLAGS) ./hack/flagsdoc
	$(GO_BUILD) run $(GO_FLAGS) ./hack/metricsdoc

.PHONY: verify
verify: generate ## Fail when a generated file, go.mod or a tool's module is not up to date.
	@changes=$$(git status --porcelain --untracked-files=all -- $(GENERATED)); \
	if [[ -n "$$changes" ]]; then \
		git --no-pager diff -- $(GENERATED); \
		echo "these generated files are not up to date, commit what make generate wrote:" >&2; echo "$$changes" >&2; exit 1; \
	fi
	go mod tidy -diff
	cd test/e2e-capi && go mod tidy -diff
	go mod verify

.PHONY: apidiff
apidiff: ## Fail when the Go API is not compatible with that of the last release: BASE=revision for another one.
	apidiff=$$($(call tool,apidiff)); \
	GOFLAGS=$(GO_FLAGS) $(GO_BUILD) run ./hack/apidiff -apidiff="$$apidiff" $(if $(BASE),-base=$(BASE))

.PHONY: lint
lint: ## Run golangci-lint.
	@# golangci-lint has packages compiled, as apidiff has: with other flags than the rest, they would be compiled once more.
	golangci_lint=$$($(call tool,golangci-lint)); export CGO_ENABLED=0 GOFLAGS=$(GO_FLAGS); \
	"$$golangci_lint" run ./...; \
	cd test/e2e-capi && "$$golangci_lint" run ./...

.PHONY: format
format: ## Format the code as lint wants it.
	CGO_ENABLED=0 $$($(call tool,golangci-lint)) fmt ./...

##@ Test

.PHONY: test
test: ## Run the tests with the race detector; the last line is "N passed, N failed".
	@# The longest first, and three packages at a time: beside a fourth a whole cluster takes twice as long on two cores.
	$(TESTSUM) $(TEST_FLAGS) -p=3 ./test/e2e/... ./test/sim/assisted ./test/scale ./controlplane/internal/controlplane ./test/sim/metal3 \
		$(E2E_PACKAGES) $(integration_packages) $(UNIT_PACKAGES)

.PHONY: test-unit
test-unit: ## Run the tests of the code below api, internal, bootstrap, controlplane and hack; one of them starts an API server.
	$(TESTSUM) $(TEST_FLAGS) $(UNIT_PACKAGES)

.PHONY: test-lifecycles
test-lifecycles: ## Run the stories of both managers with every seed, call and crash, without the race detector.
##> With it make test tries a few.
	$(TEST_ENV) GOGC=800 CGO_ENABLED=0 go run $(GO_FLAGS) ./hack/testsum $(GO_FLAGS) -vet=off -ldflags=-w -count=1 \
		./controlplane/internal/controlplane ./bootstrap/internal/config

.PHONY: test-integration
test-integration: ## Run the tests against a real API server, and the simulators against their recordings.
	$(TESTSUM) $(TEST_FLAGS) $(integration_packages)

.PHONY: test-e2e
test-e2e: ## Run the tests of both managers as processes, from template to cluster.
	$(TESTSUM) $(TEST_FLAGS) $(E2E_PACKAGES) $(FAULT_PACKAGES) ./test/capabilities/...

.PHONY: test-chaos
test-chaos: ## Kill managers, and let everything around them fail, one thing after the other: CHAOS_SEED=n chooses when they die.
	CHAOS_DAY=true $(TESTSUM) $(TEST_FLAGS) ./test/chaos/...

.PHONY: test-contract
test-contract: ## Run crashes and faults, Cluster API's rules that need whole clusters, templates and releases.
	$(CONTRACT_SUM) $(CONTRACT_PACKAGES)

.PHONY: test-report
test-report: ## Measure the report of 1, 6 and 200 Machines in headless Chromium, and leave pictures in out/: CHROMIUM=program.
	@command -v "$(or $(CHROMIUM),chromium)" >/dev/null || { \
		echo "make test-report needs Chromium: apt-get install chromium, or CHROMIUM=program; make test needs none" >&2; exit 1; }
	$(GO_BUILD) run $(GO_FLAGS) ./hack/testsum $(GO_FLAGS) -count=1 -tags=browser -run='InBrowser|Measure' ./internal/report

.PHONY: test-images
test-images: ## Make the images of both managers for all platforms, twice, run those of this one, sign, and scan; minutes of compiling.
	export COSIGN=$$($(call tool,cosign)); \
	$(GO_BUILD) run $(GO_FLAGS) ./hack/testsum $(GO_FLAGS) -count=1 -timeout=1h -tags=images -run='Managers|Signature|Vulncheck' ./hack/images

.PHONY: fuzz
fuzz: ## Run every fuzz target for a while, e.g. FUZZTIME=10s: the parsers of what users, hosts and registries send.
	for package in $$(grep -rl --include=*_test.go '^func Fuzz' api bootstrap controlplane internal | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -rhoP --include=*_test.go '^func \KFuzz\w+' "$$package"); do \
			echo "$$package $$target"; \
			$(GO_BUILD) test $(GO_FLAGS) "./$$package" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(FUZZTIME),60s) -fuzzminimizetime 1s; \
		done; \
	done

.PHONY: contract-report
contract-report: ## Run the tests of Cluster API's rules and show, for every rule, what was decided and how its tests ended.
	$(GO_BUILD) run $(GO_FLAGS) ./hack/contractreport $(filter-out -race,$(TEST_FLAGS))

.PHONY: test-clusterctl
test-clusterctl: ## Install, upgrade, move and remove with the real clusterctl, and kubectl, on local management clusters.
	$(CONTRACT_SUM) ./test/clusterctl/...

.PHONY: test-operator
test-operator: ## Install releases with the Cluster API operator, which is built on first use.
	$(CONTRACT_SUM) ./test/operator/...

.PHONY: test-monitoring
test-monitoring: ## Replay the alerts with promtool, which is built on first use, and check every query and path of what is monitored.
	$(CONTRACT_SUM) ./test/monitoring/... ./hack/dashboards

# Only of the command line: the variable of a shell may name a cluster that somebody uses.
e2e_capi_flags = $(if $(findstring command,$(origin KUBECONFIG)),-management=$(abspath $(KUBECONFIG))) \
	$(if $(CONFIG),-config=$(abspath $(CONFIG))) $(if $(KEEP),-keep) $(if $(OUT),-artifacts=$(abspath $(OUT)))

.PHONY: test-e2e-capi
test-e2e-capi: ## Compile the specs of make e2e-capi and load their configurations; no cluster is started.
	cd test/e2e-capi && $(TEST_ENV) $(GO_BUILD) test $(GO_FLAGS) -count=1 -run=TestConfigurations .

.PHONY: e2e-capi
e2e-capi: ## Run Cluster API's own specs on a local management cluster, or on that of KUBECONFIG=file CONFIG=file:
##> LABELS=filter runs some of them, KEEP=true leaves the clusters behind, OUT=folder gets logs and objects
	cd test/e2e-capi && $(TEST_ENV) $(GO_BUILD) test $(GO_FLAGS) -count=1 -timeout=$(or $(TIMEOUT),1h) -v . \
		-args -ginkgo.v -ginkgo.timeout=$(or $(TIMEOUT),1h) $(if $(LABELS),-ginkgo.label-filter='$(LABELS)') $(e2e_capi_flags)

.PHONY: test-compat
test-compat: ## Check every foreign field that the managers use against the CRDs in the folder CRDS.
	$(GO_BUILD) run $(GO_FLAGS) ./hack/testsum -trimpath ./test/compat -args -crds="$(if $(CRDS),$(abspath $(CRDS)))"

##@ Sandbox

sandbox_flags = $(if $(TOPOLOGY),-topology=$(TOPOLOGY)) $(if $(WORKERS),-workers=$(WORKERS)) $(if $(HOLD),-hold=$(HOLD)) \
	$(if $(FAULT),-fault=$(FAULT)) $(if $(SPEED),-speed=$(SPEED)) $(if $(SEED),-seed=$(SEED)) $(if $(TEMPLATE),-template=$(TEMPLATE)) \
	$(if $(RETRY),-retry=$(RETRY)) $(if $(BOOT),-boot=$(BOOT)) $(if $(METAL3),-metal3=$(METAL3)) $(if $(STORY),-story=$(STORY)) \
	$(if $(RELEASE),-release=$(RELEASE))

.PHONY: sandbox
sandbox: ## Install a cluster on this machine, add a worker to it and delete it:
##> TOPOLOGY=ha|compact|sno|four|five|arbiter|fencing TEMPLATE=flavor|file WORKERS=n BOOT=userdata METAL3=v1beta1|v1beta2
##> RELEASE=4.20.0|5.0.1 HOLD=true FAULT=name RETRY=true SPEED=n SEED=n
##> STORY=scale|replace|remediate|rollout|upgrade|rotate|retry
	$(GO_BUILD) run $(GO_FLAGS) ./test/sandbox/cmd/sandbox -out=out $(sandbox_flags)

scale_flags = $(if $(PROFILE),-profile=$(PROFILE)) $(if $(SIZES),-sizes=$(SIZES)) $(if $(SPEED),-speed=$(SPEED)) \
	$(if $(WINDOW),-window=$(WINDOW)) -out=$(or $(OUT),out)

report_flags = $(if $(NAMESPACE),-namespace=$(NAMESPACE)) $(if $(OUT),-out=$(OUT)) $(if $(DOCS),-docs=$(DOCS))

.PHONY: report
report: ## Write a page about a cluster of any management cluster: CLUSTER=name NAMESPACE=name KUBECONFIG=file OUT=file DOCS=address
	$(GO_BUILD) run $(GO_FLAGS) ./hack/report -cluster=$(CLUSTER) $(report_flags)

.PHONY: scale
scale: ## Measure what both managers cost with many clusters, and with many hosts of one, and how that grows:
##> PROFILE=idle,restart,storm,resync,failover,burst,fairness,install SPEED=0.1 WINDOW=5m
##> SIZES=small|full|50,200,500|hosts:300,1000 OUT=folder
	$(GO_BUILD) run $(GO_FLAGS) ./test/scale/cmd/scale $(scale_flags)
