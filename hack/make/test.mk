##@ Tests

# hack/test runs groups of packages and sums them up. It finds out itself which
# package belongs to which group, see its documentation.
run_tests = go run ./hack/test $(TEST_FLAGS)
kubebuilder_assets = export KUBEBUILDER_ASSETS="$$(hack/cluster/envtest.sh)"
cluster_tools = eval "$$(hack/cluster/tools.sh)"

.PHONY: test
test: ## All tests, fast ones first. Ends with one line: N passed, N failed, N skipped.
	@$(kubebuilder_assets); $(cluster_tools); $(run_tests) unit chart integration netem e2e

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go.
	@$(run_tests) unit

.PHONY: test-chart
test-chart: ## Render charts/assay and check what comes out.
	@$(cluster_tools); $(run_tests) chart

.PHONY: test-integration
test-integration: ## Tests against a real kube-apiserver and etcd.
	@$(kubebuilder_assets); $(run_tests) integration

.PHONY: test-netem
test-netem: ## Tests that shape and break networks in the kernel; needs root.
	@$(run_tests) netem

.PHONY: test-e2e
test-e2e: ## Tests on a kind cluster, which is created if there is none.
	@$(cluster_tools); $(run_tests) e2e

.PHONY: test-race
test-race: ## The small packages that have goroutines, under the race detector (needs a C compiler).
	CGO_ENABLED=1 go test -race -shuffle=on $(RACE_PACKAGES)
