# Six machines in a rack, reached by SSH as root with a key of the SSH agent: a control plane, three replicas in two (emulated) regions, two clients.
hosts = {
  head = { address = "192.0.2.10", role = "control-plane", region = "us-east-1" }
  r1   = { address = "192.0.2.11", pool = "replicas", region = "us-east-1" }
  r2   = { address = "192.0.2.12", pool = "replicas", region = "us-east-1" }
  r3   = { address = "192.0.2.13", pool = "replicas", region = "eu-west-1" }
  c1   = { address = "192.0.2.14", pool = "clients", region = "us-east-1" }
  c2   = { address = "192.0.2.15", pool = "clients", region = "eu-west-1" }
}

pools = {
  replicas = {}
  clients  = {}
}

regions = ["us-east-1", "eu-west-1"]

# Steady clocks instead of fast ones, and no two replicas on one core. A machine that cannot do one of these says so in its labels.
preparation = {
  smt      = "off"
  turbo    = "off"
  governor = "performance"

  # Assay's images are in no public registry: archives of them for every machine, or chart_values with a registry of yours. See infra/README.md.
  # image_archives = ["../../.work/images/assay-manager.tar", "../../.work/images/assay-agent.tar", "../../.work/images/assay-basil.tar"]
}
