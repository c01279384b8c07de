##@ Build and run

.PHONY: build
build: ## Compile everything; the programs land in bin/.
	@mkdir -p bin
	go build -o bin/ ./operator/cmd/...
	go build ./...

# Image tags name the content, so a rollout happens exactly when an image
# changed. The fields of index.tsv: name, tag, digest, archive.
image_tag = $$(awk -F '\t' '$$1 == "assay/$(1)" {print $$2}' .work/images/index.tsv)

.PHONY: deploy
deploy: images-load ## Install or upgrade Assay on the cluster of `make cluster`, with the images as they are now.
	@eval "$$(hack/cluster/tools.sh helm kubectl)"; export KUBECONFIG=.work/kubeconfig
	kubectl apply --server-side --force-conflicts -f config/crd/bases
	helm upgrade --install assay charts/assay --namespace assay-system --create-namespace \
		--set images.manager.tag=$(call image_tag,manager) --set images.agent.tag=$(call image_tag,agent) \
		--wait --timeout 3m $(HELM_FLAGS)

.PHONY: undeploy
undeploy: ## Remove Assay from that cluster; experiments and their results go with it.
	@eval "$$(hack/cluster/tools.sh helm kubectl)"; export KUBECONFIG=.work/kubeconfig
	kubectl delete experiments.assay.dev --all --all-namespaces --ignore-not-found --timeout 5m || true
	helm uninstall assay --namespace assay-system --ignore-not-found --wait --timeout 3m
	kubectl delete --ignore-not-found -f config/crd/bases

.PHONY: demo
demo: ## Cluster, images, operator, one experiment of a paper at smoke size, its report (the first time some 30 minutes).
	@hack/demo.sh
