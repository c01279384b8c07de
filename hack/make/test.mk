##@ Tests

# hack/test runs groups of packages and sums them up. It finds out itself which
# package belongs to which group and prepares what a group needs: see its
# documentation. TEST_FLAGS go to `go test`: make test-unit TEST_FLAGS=-run=TestKnee
# TEST_WITHIN, a duration as 78m, is how long all of it may take: what does not fit
# into it is skipped and named. It is not `go run`, which would add a line after the last one.
run_tests = go build -o .work/test ./hack/test && .work/test $(if $(TEST_FLAGS),-flags='$(TEST_FLAGS)') $(if $(TEST_WITHIN),-within=$(TEST_WITHIN))

.PHONY: test
test: ## All tests, fast ones first. Ends with one line: N passed, N failed, N skipped.
	@$(run_tests) unit chart infra integration netem e2e install

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go.
	@$(run_tests) unit

.PHONY: test-chart
test-chart: ## Render charts/assay and check what comes out.
	@$(run_tests) chart

.PHONY: test-infra
test-infra: ## Terraform: checks, plans and mocks of infra/, and a real apply over SSH; providers are built the first time.
	@$(run_tests) infra

# Not part of `make test`: a machine's processor is emulated. As root, on Debian.
.PHONY: test-libvirt
test-libvirt: ## One real virtual machine by infra/modules/libvirt-nodes, up to a login; some 10 minutes.
	@hack/infra/libvirt/test.sh -v

.PHONY: test-integration
test-integration: ## Tests against a real kube-apiserver and etcd.
	@$(run_tests) integration

.PHONY: test-netem
test-netem: ## Shaping and breaking networks: in the kernel here (as root, or most is skipped) and in a virtual machine with a Debian kernel.
	@$(run_tests) netem

.PHONY: test-e2e
test-e2e: ## Tests on the cluster of `make deploy`, which is created if there is none.
	@$(run_tests) e2e

# Not part of `make test`: it needs a Chromium, and skips without one. The page is
# opened from disk with the network off; SCREENSHOTS=DIR keeps what it looked like,
# REPORT=FILE looks at another page than the one that the test makes.
.PHONY: test-report
test-report: ## The report's page in a real browser: wide, narrow, light, dark, printed.
	ASSAY_REPORT='$(if $(REPORT),$(abspath $(REPORT)))' ASSAY_SCREENSHOTS='$(if $(SCREENSHOTS),$(abspath $(SCREENSHOTS)))' go test -count=1 -v -tags browser -run '^TestPageInABrowser$$' ./operator/internal/report

.PHONY: test-install
test-install: ## Upgrade, rollback, renewal of certificates, removal, some namespaces only, S3, Prometheus, Chaos Mesh, on the cluster of `make deploy`.
	@$(run_tests) install

# Not part of `make test`: the race detector needs cgo, hence a second build of
# everything that is imported. These have goroutines of their own and import
# little.
RACE_PACKAGES ?= ./operator/internal/launcher/... ./operator/internal/loadgen/... ./operator/internal/results/... ./systems/...

.PHONY: test-race
test-race: ## The packages with goroutines of their own under the race detector; needs a C compiler.
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 10m $(RACE_PACKAGES)
