##@ Tests

# hack/test runs groups of packages and sums them up. It finds out itself which
# package belongs to which group and prepares what a group needs: see its
# documentation. TEST_FLAGS go to `go test`: make test-unit TEST_FLAGS=-run=TestKnee
# It is not `go run`, which would add a line after the last one.
run_tests = go build -o .work/test ./hack/test && .work/test $(if $(TEST_FLAGS),-flags='$(TEST_FLAGS)')

.PHONY: test
test: ## All tests, fast ones first. Ends with one line: N passed, N failed, N skipped.
	@$(run_tests) unit chart integration netem e2e

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go.
	@$(run_tests) unit

.PHONY: test-chart
test-chart: ## Render charts/assay and check what comes out.
	@$(run_tests) chart

.PHONY: test-integration
test-integration: ## Tests against a real kube-apiserver and etcd.
	@$(run_tests) integration

.PHONY: test-netem
test-netem: ## The agent and the shaping and breaking of networks, in the kernel; as root, or most of it is skipped.
	@$(run_tests) netem

.PHONY: test-e2e
test-e2e: ## Tests on the cluster of `make deploy`, which is created if there is none.
	@$(run_tests) e2e

# Not part of `make test`: the race detector needs cgo, hence a second build of
# everything that is imported. These have goroutines of their own and import
# little.
RACE_PACKAGES ?= ./operator/internal/launcher/... ./operator/internal/loadgen/... ./operator/internal/results/... ./systems/...

.PHONY: test-race
test-race: ## The packages with goroutines of their own under the race detector; needs a C compiler.
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 10m $(RACE_PACKAGES)
