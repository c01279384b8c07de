# Machines are made ready for measurements: no turbo, no second hardware threads, a fixed governor.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"
}

module "inventory" {
  source = "../../../inventory"

  hosts = {
    control = { address = "192.0.2.10", role = "control-plane", region = "local" }
    one     = { address = "192.0.2.11", pool = "replicas", region = "local" }
    two     = { address = "192.0.2.12", pool = "clients", region = "local" }
  }
  pools = {
    replicas = {}
    clients  = {}
  }
}

module "machines" {
  source = "../.."

  hosts              = module.inventory.hosts
  kubernetes_version = module.inventory.kubernetes_version
  preparation = {
    smt      = "off"
    turbo    = "off"
    governor = "performance"
  }
}

output "hosts" {
  description = "The machines as they were found, for kubeadm-cluster."
  value       = module.machines.hosts
}
