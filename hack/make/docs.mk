##@ Documents

# SAMPLE=100 prints that many random sentences with their length.
SAMPLE ?= 0

.PHONY: docs-check
docs-check: ## Check the documents: plain English, links, make targets; SAMPLE=100 prints random sentences.
	@go run ./hack/docs/language -sample $(SAMPLE)
	@go test ./hack/docs/...

.PHONY: tutorial
tutorial: ## Do what docs/tutorial.md says, on the cluster of make deploy, and compare the output; some ten minutes.
	@go run ./hack/docs/tutorial
