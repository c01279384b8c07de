##@ Build and run

.PHONY: build
build: ## Compile everything; the programs land in bin/.
	@mkdir -p bin
	go build -o bin/ ./operator/cmd/...
	go build ./...

.PHONY: deploy
deploy: cluster images-load ## Install or upgrade Assay on the cluster of `make cluster`, with the images as they are now.
	@hack/deploy.sh install

.PHONY: undeploy
undeploy: ## Remove Assay from that cluster, with all experiments and their results.
	@hack/deploy.sh remove

.PHONY: demo demo-kind
demo: ## From nothing to verdicts on this machine, without a cluster: one experiment at smoke size (some four minutes; the first time a few more).
	@hack/demo.sh

.PHONY: ssh-artifact
ssh-artifact: ## From the folder of an artifact that a script drives over SSH to its verdicts, on this machine as root: systems/sweep, or FOLDER, RUN, RESULTS, ...
	@hack/machines/artifact.sh

# The image of machines that tests run their scripts on: bash, ssh and a little more.
shell_image = lab/shell $$(for p in bash mkdir sleep ssh; do readlink -f "$$(command -v $$p)"; done) operator/test/local/testdata/machines

.PHONY: local-programs shell-image
shell-image: # load it into every node, for the lane kind
	@hack/images/own.sh $(shell_image) >/dev/null
local-programs: # what the lane local runs
	@$(MAKE) images IMAGES="assay/agent assay/basil assay/awkward"
	@hack/images/own.sh --only-build $(shell_image) >/dev/null
	@ln -f .work/own/lab/shell/lab-shell.tar .work/images/lab-shell.tar
	@go build -o .work/bin/kubectl-assay ./operator/cmd/kubectl-assay

demo-kind: ## The same on a kind cluster: cluster, operator, experiment (some six minutes; the first time some 30 more).
	@hack/demo-kind.sh

# The version of a dry run; PLATFORMS and ARCHES choose fewer.
VERSION ?=

.PHONY: release-dry-run
release-dry-run: ## Make a release as .github/workflows/release.yml does, for a registry on this machine, and check it: archives, images, chart, checksums, SBOMs in .work/release.
	@hack/release/dryrun.sh "$(or $(VERSION),v0.0.0-dry-run)"
