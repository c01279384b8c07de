#!/usr/bin/env bash
# Installs what the tests of infra/ run beside Terraform: an SSH client, and shellcheck for the scripts.
#
# Changes on the machine: Debian packages (openssh-client, shellcheck).
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

packages ssh=openssh-client ssh-keygen=openssh-client shellcheck=shellcheck
