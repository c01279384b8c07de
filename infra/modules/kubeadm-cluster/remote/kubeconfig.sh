#!/usr/bin/env bash
# On the control plane: prints the administrator's kubeconfig.
set -euo pipefail

cat /etc/kubernetes/admin.conf
