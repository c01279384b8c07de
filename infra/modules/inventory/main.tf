# Checks a list of machines (variables.tf) and says which labels and taints each node gets. Creates
# nothing and reaches nothing.

locals {
  pool_label   = "assay.dev/pool"
  region_label = "topology.kubernetes.io/region"
  zone_label   = "topology.kubernetes.io/zone"

  hosts = { for name, h in var.hosts : name => merge(h, {
    zone = coalesce(h.zone, h.region)
    # Null where the address is a name: the machine finds its own.
    internal_address = h.internal_address != null ? h.internal_address : can(regex(local.ipv4, h.address)) ? h.address : null
    node_labels = merge(
      h.pool == null ? {} : var.pools[h.pool].labels,
      h.labels,
      h.pool == null ? {} : { (local.pool_label) = h.pool },
      { (local.region_label) = h.region, (local.zone_label) = coalesce(h.zone, h.region) },
    )
    node_taints = h.pool == null ? [] : [for p in [h.pool] : { key = local.pool_label, value = p, effect = "NoSchedule" } if var.pools[p].taint]
  }) }

  workers = { for name, h in local.hosts : name => h if h.role == "worker" }
}
