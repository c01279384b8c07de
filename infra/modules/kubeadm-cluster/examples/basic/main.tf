# Prepared machines become a cluster.

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
  source = "../../../ssh-nodes"

  hosts              = module.inventory.hosts
  kubernetes_version = module.inventory.kubernetes_version
}

module "cluster" {
  source = "../.."

  hosts              = module.machines.hosts
  kubernetes_version = module.inventory.kubernetes_version
  kubeconfig_file    = abspath("${path.root}/kubeconfig")
}

output "kubeconfig" {
  description = "The file to put into KUBECONFIG."
  value       = module.cluster.kubeconfig
}
