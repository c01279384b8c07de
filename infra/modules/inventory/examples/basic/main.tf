# Three machines that answer SSH: the list is checked, and becomes nodes with labels and taints.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"
}

module "inventory" {
  source = "../.."

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

output "nodes" {
  description = "Each machine with the labels and taints of its node."
  value       = module.inventory.nodes
}
