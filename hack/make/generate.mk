##@ Generated files

tool := go tool -modfile=hack/tools/go.mod
publish_tool := go tool -modfile=hack/tools/publish/go.mod

# Folders of infra/ whose README has tables of variables and outputs.
terraform_folders := $(sort $(dir $(wildcard infra/*/variables.tf infra/modules/*/variables.tf)))

.PHONY: generate
generate: manifests tables ## Write everything that is generated: deep copies, manifests, references, tables.
	$(tool) controller-gen object paths=./operator/api/...
	hack/docs/reference.sh
	go test -count=1 ./operator/internal/cli/schema -run "^TestSchemasAreCurrent$$" -args -update >/dev/null
	go test -count=1 ./operator/cmd/kubectl-assay -run "^TestReferenceIsCurrent$$" -args -update >/dev/null
	go test -count=1 ./operator/test/experiments -run "^TestReadmesAreCurrent$$" -args -update >/dev/null

.PHONY: manifests
manifests: ## Write CRDs and RBAC rules from the markers in the Go types, and copy them into the chart.
	$(tool) controller-gen crd paths=./operator/api/... output:crd:dir=config/crd/bases
	$(tool) controller-gen rbac:roleName=assay-manager,fileName=role.yaml paths=./operator/... output:rbac:dir=config/rbac
	@mkdir -p charts/assay/files/crds
	rm -f charts/assay/files/crds/*.yaml
	cp config/crd/bases/*.yaml charts/assay/files/crds/
	cp config/rbac/role.yaml charts/assay/files/role.yaml

# Not in generate, which needs no helm. The lane chart compares.
.PHONY: manager-manifest
manager-manifest: ## Write config/manager/manager.yaml, what the chart renders with its default values.
	@eval "$$(hack/cluster/tools.sh helm)" && helm template assay charts/assay --namespace assay-system --no-hooks --set crds.install=false | \
		go run ./hack/release -plain >.work/manager.yaml && mv .work/manager.yaml config/manager/manager.yaml

.PHONY: tables
tables: ## Write the tables of values, variables and outputs into the READMEs of chart and infra.
	$(publish_tool) helm-docs --chart-search-root charts/assay --sort-values-order file --log-level warning
	@for d in $(terraform_folders); do $(publish_tool) terraform-docs -c infra/.terraform-docs.yml $$d >/dev/null || exit 1; done
