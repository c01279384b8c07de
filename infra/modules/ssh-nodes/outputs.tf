output "hosts" {
  description = "The hosts, as given. A resource that uses them waits until they are prepared. revision changes when a machine was prepared anew."
  value       = { for name, h in var.hosts : name => merge(h, { revision = terraform_data.prepared[name].id }) }
}
