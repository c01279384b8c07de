# Beside this file: hosts.auto.tfvars.json, which Terraform reads by itself. It is written by
#
#   kubectl assay hosts --cloudlab manifest.xml --user YOU --control-plane california \
#     --pool clients='client-*' --pool replicas='*' -o hosts.auto.tfvars.json
#
# and has hosts, pools and regions. Here is the rest.

name = "pesto"

# SSH takes the agent's keys: ssh-add the one that you gave to CloudLab, or name its file here.
# ssh_private_key_file = "~/.ssh/id_ed25519"

# The machines' own network is 10.10.1.0/24; these must not overlap with it.
pod_cidr     = "10.244.0.0/16"
service_cidr = "10.96.0.0/16"

# Assay's images are in no public registry: archives of them for every machine, or chart_values with a registry of yours. See infra/README.md.
# preparation = { image_archives = ["../../.work/images/assay-manager.tar", "../../.work/images/assay-agent.tar", "../../.work/images/assay-basil.tar"] }
