##@ Checks

# A module of its own: its 200 dependencies would otherwise decide the versions
# of the other tools. Built once for each version, outside of the tree.
golangci_version = $(shell sed -n 's#^.*golangci-lint/v2 \(v[^ ]*\).*#\1#p' hack/tools/golangci/go.mod)
golangci = $(or $(ASSAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/assay)/golangci-lint/$(golangci_version)/golangci-lint

.PHONY: lint
lint: $(golangci) ## Run golangci-lint (.golangci.yml); LINT_FLAGS=--fix repairs what it can.
	$(golangci) run $(LINT_FLAGS) ./...

$(golangci):
	@echo "building golangci-lint $(golangci_version)"
	@mkdir -p $(@D)
	go build -C hack/tools/golangci -ldflags '-s -w' -o $@.part github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@mv $@.part $@
