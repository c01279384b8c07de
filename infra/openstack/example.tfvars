# Replicas on whole machines (a flavor of Ironic's), everything else on virtual ones. Credentials: OS_CLOUD, or an openrc file.

image       = "debian-12"
access_cidr = "192.0.2.0/24"

# The private key is the SSH agent's, or ssh_private_key_file.
ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExa you@there"]

network = {
  cidr             = "10.17.4.0/24"
  external_network = "public"
}

pools = {
  replicas = { labels = { "example.org/hardware" = "bare-metal" } }
  clients  = {}
}

regions = ["us-east-1", "eu-west-1"]

machines = {
  control = { role = "control-plane", region = "us-east-1", flavor = "m1.large", volume_gib = 40 }

  us-east-1-0 = { pool = "replicas", region = "us-east-1", flavor = "baremetal.general", bare_metal = true }
  us-east-1-1 = { pool = "replicas", region = "us-east-1", flavor = "baremetal.general", bare_metal = true }
  eu-west-1-0 = { pool = "replicas", region = "eu-west-1", flavor = "baremetal.general", bare_metal = true }

  client-0 = { pool = "clients", region = "us-east-1", flavor = "m1.large" }
  client-1 = { pool = "clients", region = "eu-west-1", flavor = "m1.large" }
}

# Assay's images are in no public registry: archives of them for every machine, or chart_values with a registry of yours. See infra/README.md.
# preparation = { image_archives = ["../../.work/images/assay-manager.tar", "../../.work/images/assay-agent.tar", "../../.work/images/assay-basil.tar"] }
