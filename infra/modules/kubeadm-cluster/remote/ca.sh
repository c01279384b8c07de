#!/usr/bin/env bash
# On the control plane: prints the hash of the certificate authority's public key, by which a joining machine knows the cluster.
set -euo pipefail

openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum | cut -d' ' -f1
