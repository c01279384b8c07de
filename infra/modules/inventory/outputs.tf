output "name" {
  description = "Name of the cluster."
  value       = var.name
}

output "hosts" {
  description = "The hosts with defaults filled in, node_labels (map of string) and node_taints (list of {key, value, effect})."
  value       = local.hosts
}

output "kubernetes_version" {
  description = "As given, checked."
  value       = var.kubernetes_version
}

output "pod_cidr" {
  description = "As given, checked."
  value       = var.pod_cidr
}

output "service_cidr" {
  description = "As given, checked."
  value       = var.service_cidr
}

output "pools" {
  description = "The pools with their nodes, sorted, and what selects them."
  value = { for name, p in var.pools : name => {
    nodes  = sort([for n, h in local.workers : n if h.pool == name])
    labels = merge(p.labels, { (local.pool_label) = name })
    taint  = p.taint
  } }
}

output "regions" {
  description = "The regions that have workers, with these and their zones, sorted."
  value = { for region in setunion(var.regions, [for h in local.workers : h.region]) : region => {
    nodes = sort([for n, h in local.workers : n if h.region == region])
    zones = sort(distinct([for h in local.workers : h.zone if h.region == region]))
  } }
}

output "nodes" {
  description = "Where each node is."
  value = { for name, h in local.hosts : name => {
    address          = h.address
    user             = h.user
    port             = h.port
    internal_address = h.internal_address
    role             = h.role
    pool             = h.pool
    region           = h.region
    zone             = h.zone
  } }
}
