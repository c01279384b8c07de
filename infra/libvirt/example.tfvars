# One host with 16 cores: a control plane, three machines for replicas in two regions, two clients.

uri   = "qemu:///system"
image = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"

# The private key is the SSH agent's, or ssh_private_key_file.
ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExa you@there"]

network = {
  cidr = "10.17.3.0/24"
  dns  = ["192.0.2.53"]
}

pools = {
  replicas = {}
  clients  = {}
}

regions = ["us-east-1", "eu-west-1"]

machines = {
  control = { role = "control-plane", region = "us-east-1", address = "10.17.3.10" }

  us-east-1-0 = { pool = "replicas", region = "us-east-1", address = "10.17.3.11", vcpus = 4, memory_mib = 8192 }
  us-east-1-1 = { pool = "replicas", region = "us-east-1", address = "10.17.3.12", vcpus = 4, memory_mib = 8192 }
  eu-west-1-0 = { pool = "replicas", region = "eu-west-1", address = "10.17.3.13", vcpus = 4, memory_mib = 8192 }

  client-0 = { pool = "clients", region = "us-east-1", address = "10.17.3.21" }
  client-1 = { pool = "clients", region = "eu-west-1", address = "10.17.3.22" }
}

# Assay's images are in no public registry: archives of them for every machine, or chart_values with a registry of yours. See infra/README.md.
# preparation = { image_archives = ["../../.work/images/assay-manager.tar", "../../.work/images/assay-agent.tar", "../../.work/images/assay-basil.tar"] }
