# A local Kubernetes cluster, the container images in it, and the programs that
# API tests need. See docs/guide/cluster.md. Works included and by itself:
#   make -f hack/make/cluster.mk cluster

CLUSTER_MK_ROOT := $(patsubst %/hack/make/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

CLUSTER ?= assay
WORKERS ?= 2
export CLUSTER WORKERS
# Also from the environment: ASSAY_CACHE, NODE_SOURCE (auto, pull, build).

# What to build; all images of hack/images/images.txt and systems/*/images.txt if empty.
IMAGES ?=

.PHONY: cluster cluster-down cluster-status cluster-purge
cluster: ## Create a kind cluster of 1 + WORKERS nodes, or do nothing if it is healthy.
	@$(CLUSTER_MK_ROOT)/hack/cluster/cluster.sh up

cluster-down: ## Remove the cluster, its volumes and its kubeconfig.
	@$(CLUSTER_MK_ROOT)/hack/cluster/cluster.sh down

cluster-status: ## Show the nodes of the cluster; fails unless all are Ready.
	@$(CLUSTER_MK_ROOT)/hack/cluster/cluster.sh status

cluster-purge: ## cluster-down, and remove node images, caches and the docker daemon started here.
	@$(CLUSTER_MK_ROOT)/hack/cluster/cluster.sh purge

.PHONY: images images-load images-docker image
images: ## Build the container images into .work/images; VERSION=v0.2.0 is what their programs say they are.
	@mkdir -p $(CLUSTER_MK_ROOT)/.work/images
	@test -e $(CLUSTER_MK_ROOT)/.work/.gitignore || echo '*' > $(CLUSTER_MK_ROOT)/.work/.gitignore
	@cd $(CLUSTER_MK_ROOT)/hack/images && CGO_ENABLED=0 GOFLAGS=-buildvcs=false \
		go run -trimpath . -list images.txt -list '../../systems/*/images.txt' -root $(CLUSTER_MK_ROOT) -out $(CLUSTER_MK_ROOT)/.work/images -version "$(VERSION)" $(IMAGES)

images-load: images ## Build the images and load what changed into every node.
	@$(CLUSTER_MK_ROOT)/hack/images/load.sh cluster

images-docker: images ## Build the images and load them into the local docker.
	@$(CLUSTER_MK_ROOT)/hack/images/load.sh docker

image: ## Make an image of FILES="build/server build/client", programs that you have built, with their libraries, or of the root that debootstrap made; NAME=lab/kv; load it into every node.
	@$(CLUSTER_MK_ROOT)/hack/images/own.sh "$(NAME)" $(FILES)

.PHONY: machine-image
machine-image: ## Make the image of machines that answer SSH: NAME=lab/exp1 FOLDER=artifact PACKAGES="python3-minimal" INSTALL=build.sh AUTHOR=user; set up once for each recipe; as root.
	@$(CLUSTER_MK_ROOT)/hack/machines/image.sh "$(NAME)" "$(FOLDER)"

.PHONY: prometheus prometheus-down
prometheus: ## Put a small Prometheus with its operator on the cluster, to try Assay with it; ten minutes the first time.
	@$(CLUSTER_MK_ROOT)/hack/without-registry/prometheus/install.sh up

prometheus-down: ## Remove them, with the operator's kinds.
	@$(CLUSTER_MK_ROOT)/hack/without-registry/prometheus/install.sh down

.PHONY: chaos-mesh chaos-mesh-down
chaos-mesh: ## Put Chaos Mesh, built from its Go module, on the cluster; the first time takes some ten minutes.
	@$(CLUSTER_MK_ROOT)/hack/without-registry/chaos-mesh/install.sh up

chaos-mesh-down: ## Undo whatever Chaos Mesh has in force, and remove it.
	@$(CLUSTER_MK_ROOT)/hack/without-registry/chaos-mesh/install.sh down

.PHONY: tools envtest-assets
tools: ## Find or build kind, kubectl and helm; prints the PATH to use.
	@$(CLUSTER_MK_ROOT)/hack/cluster/tools.sh

envtest-assets: ## Provide kube-apiserver and etcd; prints the directory for KUBEBUILDER_ASSETS.
	@$(CLUSTER_MK_ROOT)/hack/cluster/envtest.sh

.PHONY: test-hack
test-hack: ## Vet and test the Go programs of hack/images and hack/without-registry/node-image.
	cd $(CLUSTER_MK_ROOT)/hack/images && go vet ./... && go test ./...
	cd $(CLUSTER_MK_ROOT)/hack/without-registry/node-image && go vet ./... && go test ./...
