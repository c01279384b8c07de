output "kubeconfig" {
  description = "Path of the administrator's kubeconfig. A resource that uses it waits until all nodes have joined and have their labels."
  value       = terraform_data.kubeconfig.output
  depends_on  = [terraform_data.labels]
}

output "api_server" {
  description = "URL of the API server."
  value       = local.api_server
  depends_on  = [terraform_data.control_plane]
}
