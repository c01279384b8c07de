# Assay. `make help` lists what there is; the rules are in hack/make/.

# One set of flags for every Go command: a second one would be a second build
# cache of several gigabytes.
export CGO_ENABLED := 0
export GOFLAGS := -buildvcs=false -trimpath

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

include hack/make/*.mk

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z][a-z-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
