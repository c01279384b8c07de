# The same in every root: infra/README.md.

output "kubeconfig" {
  description = "Path of the cluster's kubeconfig."
  value       = module.cluster.kubeconfig
}

output "api_server" {
  description = "URL of the API server."
  value       = module.cluster.api_server
}

output "pools" {
  description = "The pools, with their nodes and what selects them."
  value       = module.inventory.pools
}

output "regions" {
  description = "The regions that have workers, with these and their zones."
  value       = module.inventory.regions
}

output "nodes" {
  description = "Where each node is."
  value       = module.inventory.nodes
}
