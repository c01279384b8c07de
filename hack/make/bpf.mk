##@ eBPF

.PHONY: bpf
bpf: ## Compile the eBPF programs, which are committed as objects; needs the clang of Debian 12.
	hack/bpf/build.sh

.PHONY: bpf-check
bpf-check: ## Compile the eBPF programs again and compare with the committed objects.
	hack/bpf/build.sh -check
