# Papers' own programs, run by Assay. What each one is and how it is built: systems/<name>/README.md.

##@ Artifacts

.PHONY: artifact-pequin
artifact-pequin: ## Build the Pequin artifact (SOURCE=clone or directory of clones), run Basil, Tapir and Pesto on the cluster, compare with the artifact's own output.
	@$(CLUSTER_MK_ROOT)/systems/pequin/run.sh

.PHONY: artifact-eiger-port
artifact-eiger-port: ## Build the Eiger-PORT artifact (SOURCE=clone or a directory with it), run Eiger-PORT beside Eiger on the cluster.
	@$(CLUSTER_MK_ROOT)/systems/eiger-port/run.sh

.PHONY: artifact-hats
artifact-hats: ## Build the HATS artifact (SOURCE=clone or a directory with it), run HATS beside mLSM on the cluster.
	@$(CLUSTER_MK_ROOT)/systems/hats/run.sh
