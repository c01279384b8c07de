##@ Benchmarks

.PHONY: bench-loadgen
bench-loadgen: ## Measure the load generator against a bare TCP client; takes 2 processors and a minute.
	@mkdir -p .work/bench
	@go build -o .work/bench/loadgen ./operator/cmd/loadgen
	@go build -o .work/bench/bench-loadgen ./hack/bench/loadgen
	@.work/bench/bench-loadgen -loadgen .work/bench/loadgen $(BENCH_FLAGS)
