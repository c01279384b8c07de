# Replicas in two data centers some 1,000 km apart, and the rest in one of them. The token: HCLOUD_TOKEN.

access_cidr = "192.0.2.0/24"

# The private key is the SSH agent's, or ssh_private_key_file.
ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExa you@there"]

pools = {
  replicas = {}
  clients  = {}
}

machines = {
  control = { role = "control-plane", region = "nuremberg", server_type = "ccx13", address = "10.17.5.10" }

  nuremberg-0 = { pool = "replicas", region = "nuremberg", server_type = "ccx23", address = "10.17.5.11" }
  nuremberg-1 = { pool = "replicas", region = "nuremberg", server_type = "ccx23", address = "10.17.5.12" }
  helsinki-0  = { pool = "replicas", region = "helsinki", server_type = "ccx23", location = "hel1", address = "10.17.5.13" }

  client-0 = { pool = "clients", region = "nuremberg", server_type = "ccx23", address = "10.17.5.14" }
}

# Assay's images are in no public registry: archives of them for every machine, or chart_values with a registry of yours. See infra/README.md.
# preparation = { image_archives = ["../../.work/images/assay-manager.tar", "../../.work/images/assay-agent.tar", "../../.work/images/assay-basil.tar"] }
