##@ Documents

# SAMPLE=100 prints that many random sentences with their length.
SAMPLE ?= 0

.PHONY: docs-check
docs-check: ## Check the documents: plain English, links, make targets; SAMPLE=100 prints random sentences.
	@go run ./hack/docs/language -sample $(SAMPLE)
	@go test ./hack/docs/...

.PHONY: docs
docs: ## Build the static site of all documents into .work/docs/site; a broken link fails. The first time it fetches its programs from PyPI.
	@hack/docs/site/site.sh

.PHONY: tutorial
tutorial: local-programs ## Do what docs/tutorial.md says, on this machine as root and on the cluster of make deploy, and compare the output; some ten minutes.
	@go run ./hack/docs/tutorial

.PHONY: first-screens
first-screens: ## Take pictures of the first screens of three reports, for docs/design/first-screens.md; BEFORE=dc1d792 takes those of that commit too. Needs Chromium.
	@hack/docs/first-screens.sh $(BEFORE)

.PHONY: live-pictures
live-pictures: local-programs ## Take the pictures of docs/guide/live-page.md from two short runs on this machine, as root. Needs Chromium; takes some three minutes.
	@hack/docs/live-pictures.sh
