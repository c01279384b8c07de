##@ Generated files

tool := go tool -modfile=hack/tools/go.mod

.PHONY: generate
generate: manifests ## Write everything that is generated: deep copies, manifests, API reference.
	$(tool) controller-gen object paths=./operator/api/...
	hack/docs/reference.sh
	go test -count=1 ./operator/cmd/kubectl-assay -run "^TestReferenceIsCurrent$$" -args -update >/dev/null

.PHONY: manifests
manifests: ## Write CRDs and RBAC rules from the markers in the Go types, and copy them into the chart.
	$(tool) controller-gen crd paths=./operator/api/... output:crd:dir=config/crd/bases
	$(tool) controller-gen rbac:roleName=assay-manager,fileName=role.yaml paths=./operator/... output:rbac:dir=config/rbac
	@mkdir -p charts/assay/files/crds
	rm -f charts/assay/files/crds/*.yaml
	cp config/crd/bases/*.yaml charts/assay/files/crds/
	cp config/rbac/role.yaml charts/assay/files/role.yaml
