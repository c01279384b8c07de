# The same in every root: infra/README.md.

output "kubeconfig" {
  description = "Path of the cluster's kubeconfig."
  value       = local.kubeconfig
  # Not before there is one.
  depends_on = [terraform_data.labels]
}

output "api_server" {
  description = "URL of the API server."
  # Read once the cluster is there: its output is not known before.
  value = try(yamldecode(file(terraform_data.cluster.output.kubeconfig)).clusters[0].cluster.server, null)
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
