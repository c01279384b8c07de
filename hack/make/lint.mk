##@ Checks

# A module of its own: its 200 dependencies would otherwise decide the versions
# of the other tools. Built once for each version and each Go, whose export data it reads, outside of
# the tree.
golangci_version = $(shell sed -n 's#^.*golangci-lint/v2 \(v[^ ]*\).*#\1#p' hack/tools/golangci/go.mod)
golangci = $(or $(ASSAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/assay)/golangci-lint/$(golangci_version)-$(shell go env GOVERSION 2>/dev/null)/golangci-lint

# Modules of their own with code of ours, whose tests are lanes of their names (hack/test/lanes.go).
modules = hack/images hack/without-registry/node-image $(patsubst %/go.mod,%,$(wildcard systems/*/go.mod))

# Every file of git that begins as a shell script, but for those of the artifact that is
# kept as authors write theirs.
scripts = $(shell git grep -lE '^\#!/.*(bash|sh)$$' -- ':!systems/sweep/artifact' | while read -r f; do head -n1 "$$f" | grep -qE '^\#!' && echo "$$f"; done)

# Files that scripts source, and shellcheck reads with them.
sourced = $(shell git ls-files '*.env' .shellcheckrc)

.PHONY: lint
lint: $(golangci) lint-scripts lint-workflows ## Run golangci-lint (.golangci.yml), shellcheck and actionlint, compile the plugin for macOS; LINT_FLAGS=--fix repairs what it can.
	$(golangci) run $(LINT_FLAGS) ./...
	@for module in $(filter-out hack/without-registry/node-image,$(modules)); do (cd $$module && $(golangci) run -c $(CURDIR)/.golangci.yml $(LINT_FLAGS) ./...) || exit; done
	GOOS=darwin GOARCH=arm64 go vet ./operator/cmd/kubectl-assay # compiles all that it imports; a release links it
	go -C hack/without-registry/node-image vet ./... # the node image is built anew whenever a file there changes

.PHONY: lint-scripts
lint-scripts: ## Run shellcheck on all shell scripts, unless this version of it has passed on the same files.
	@hack/infra/packages.sh
	@passed=.work/shellcheck/$$({ shellcheck --version; sha256sum $(scripts) $(sourced); } | sha256sum | cut -c1-16); \
	if [ -e $$passed ]; then echo "shellcheck has passed on these scripts"; exit; fi; \
	echo "shellcheck on $(words $(scripts)) scripts"; \
	shellcheck -x --source-path=SCRIPTDIR $(scripts) && rm -rf .work/shellcheck && mkdir -p .work/shellcheck && touch $$passed

.PHONY: lint-workflows
lint-workflows: ## Run actionlint on the workflows of .github.
	go tool -modfile=hack/tools/go.mod actionlint

# Licences that let Assay's programs be given away under its own, by their SPDX names. freetype is
# under the FreeType License or the GPL, whichever one likes, which the program does not recognise.
licences = Apache-2.0,BSD-2-Clause,BSD-3-Clause,CC-BY-4.0,ISC,MIT,MPL-2.0,Unlicense
.PHONY: licences
licences: ## Check that what is linked into the programs has a licence that permits to give them away.
	@mkdir -p .work
	@go tool -modfile=hack/tools/licences/go.mod go-licenses check --ignore assay.dev --ignore github.com/golang/freetype --allowed_licenses=$(licences) ./operator/cmd/... 2>.work/licences.log || { grep -v '^W\|_amd64.s$$' .work/licences.log; exit 1; }

# Published programs that are dependencies of these modules: circl, and relab's HotStuff with the gRPC
# of its authors. Systems and evidence name their versions.
measured = systems/bls systems/hotstuff

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in what Assay's packages call, in all modules with code of ours, by govulncheck.
	@hack/vulnerabilities.sh $(filter-out $(measured),$(modules)) -- $(measured)

.PHONY: update
update: ## Show which dependencies are behind, and which newer versions the module proxy refuses; APPLY=1 takes those that are served.
	@hack/update.sh $(FOLDERS)

$(golangci):
	@echo "building golangci-lint $(golangci_version)"
	@mkdir -p $(@D)
	GOTOOLCHAIN=$$(go env GOVERSION) go build -C hack/tools/golangci -ldflags '-s -w' -o $@.part github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@mv $@.part $@
