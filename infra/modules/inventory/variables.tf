# Everything that can be wrong with a list of machines is refused here, before a machine is touched.
# Every root passes its hosts through this module, so that the rules are the same everywhere.

locals {
  # In one place for all messages and tests: the minor versions whose kubeadm configuration
  # (v1beta4) and images the modules are made for.
  supported_minors = ["1.34", "1.35", "1.36"]

  dns_label = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
  ipv4      = "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"

  # Of Kubernetes. A key's prefix may have 253 letters, which is not checked.
  label_key   = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
  label_value = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
  label_rule  = "at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
}

variable "name" {
  description = "Name of the cluster."
  type        = string
  default     = "assay"
  nullable    = false

  validation {
    condition     = can(regex(local.dns_label, var.name))
    error_message = "name is \"${var.name}\"; it must be a DNS label: lower case letters, digits and hyphens, at most 63."
  }
}

variable "hosts" {
  description = "The machines by the name of their node; see infra/README.md."
  nullable    = false
  type = map(object({
    address          = string
    user             = optional(string, "root")
    port             = optional(number, 22)
    host_key         = optional(string)
    internal_address = optional(string)
    role             = optional(string, "worker")
    pool             = optional(string)
    region           = string
    zone             = optional(string)
    labels           = optional(map(string), {})
    instance         = optional(string)
  }))

  validation {
    condition     = alltrue([for name, _ in var.hosts : can(regex(local.dns_label, name))])
    error_message = "hosts: ${join(", ", [for name, _ in var.hosts : "\"${name}\"" if !can(regex(local.dns_label, name))])}: the key is the node's name and must be a DNS label: lower case letters, digits and hyphens, at most 63."
  }
  validation {
    condition     = alltrue([for h in var.hosts : can(regex("^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$", h.address))])
    error_message = "hosts: address of ${join(", ", [for name, h in var.hosts : name if !can(regex("^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$", h.address))])} must be a host name or an IPv4 address, without a user or a port (they have fields of their own)."
  }
  validation {
    condition     = length(distinct([for h in var.hosts : "${h.address}:${h.port}"])) == length(var.hosts)
    error_message = "hosts: the same machine is there twice: ${join("; ", [for at, names in { for name, h in var.hosts : "${h.address}:${h.port}" => name... } : "${join(" and ", names)} have address ${at}" if length(names) > 1])}."
  }
  validation {
    condition     = alltrue([for h in var.hosts : h.internal_address == null ? true : can(regex(local.ipv4, h.internal_address))])
    error_message = "hosts: internal_address of ${join(", ", [for name, h in var.hosts : name if !(h.internal_address == null ? true : can(regex(local.ipv4, h.internal_address)))])} must be an IPv4 address, without a prefix length."
  }
  validation {
    condition     = length(distinct([for h in var.hosts : h.internal_address if h.internal_address != null])) == length([for h in var.hosts : 1 if h.internal_address != null])
    error_message = "hosts: the same internal_address is there twice: ${join("; ", [for at, names in { for name, h in var.hosts : h.internal_address => name... if h.internal_address != null } : "${join(" and ", names)} have ${at}" if length(names) > 1])}."
  }
  validation {
    condition     = alltrue([for h in var.hosts : h.port >= 1 && h.port <= 65535 && floor(h.port) == h.port])
    error_message = "hosts: port of ${join(", ", [for name, h in var.hosts : name if !(h.port >= 1 && h.port <= 65535 && floor(h.port) == h.port)])} must be between 1 and 65535."
  }
  validation {
    condition     = alltrue([for h in var.hosts : contains(["control-plane", "worker"], h.role)])
    error_message = "hosts: role of ${join(", ", [for name, h in var.hosts : "${name} is \"${h.role}\"" if !contains(["control-plane", "worker"], h.role)])}; it is control-plane or worker."
  }
  validation {
    condition     = length([for h in var.hosts : 1 if h.role == "control-plane"]) == 1
    error_message = "hosts: ${length([for h in var.hosts : 1 if h.role == "control-plane"])} have the role control-plane; exactly one must."
  }
  validation {
    condition     = alltrue([for h in var.hosts : h.role == "control-plane" ? h.pool == null : h.pool != null])
    error_message = "hosts: ${join(", ", [for name, h in var.hosts : h.role == "control-plane" ? "${name} is the control plane and has no pool" : "${name} needs a pool" if !(h.role == "control-plane" ? h.pool == null : h.pool != null)])}."
  }
  validation {
    condition     = alltrue([for h in var.hosts : can(regex(local.dns_label, h.region)) && (h.zone == null ? true : can(regex(local.dns_label, h.zone)))])
    error_message = "hosts: region and zone of ${join(", ", [for name, h in var.hosts : name if !(can(regex(local.dns_label, h.region)) && (h.zone == null ? true : can(regex(local.dns_label, h.zone))))])} must be DNS labels: lower case letters, digits and hyphens."
  }
  validation {
    condition     = alltrue(flatten([for x in var.hosts : [for k, _ in x.labels : can(regex(local.label_key, k))]]))
    error_message = "hosts: labels: ${join("; ", flatten([for name, x in var.hosts : [for k, _ in x.labels : "${name} has \"${k}\"" if !can(regex(local.label_key, k))]]))}, which is no label's key: ${local.label_rule}, and perhaps a DNS name and / before it."
  }
  validation {
    condition     = alltrue(flatten([for x in var.hosts : [for v in x.labels : can(regex(local.label_value, v))]]))
    error_message = "hosts: labels: ${join("; ", flatten([for name, x in var.hosts : [for k, v in x.labels : "${name} has ${k} = ${jsonencode(v)}" if !can(regex(local.label_value, v))]]))}, which is no label's value: ${local.label_rule}, or nothing."
  }
}

variable "pools" {
  description = "What machines are for, by name; see infra/README.md."
  nullable    = false
  type = map(object({
    labels = optional(map(string), {})
    taint  = optional(bool, true)
  }))

  validation {
    condition     = alltrue([for name, _ in var.pools : can(regex(local.dns_label, name))])
    error_message = "pools: ${join(", ", [for name, _ in var.pools : "\"${name}\"" if !can(regex(local.dns_label, name))])}: a pool's name must be a DNS label: lower case letters, digits and hyphens."
  }
  validation {
    condition     = alltrue(flatten([for x in var.pools : [for k, _ in x.labels : can(regex(local.label_key, k))]]))
    error_message = "pools: labels: ${join("; ", flatten([for name, x in var.pools : [for k, _ in x.labels : "${name} has \"${k}\"" if !can(regex(local.label_key, k))]]))}, which is no label's key: ${local.label_rule}, and perhaps a DNS name and / before it."
  }
  validation {
    condition     = alltrue(flatten([for x in var.pools : [for v in x.labels : can(regex(local.label_value, v))]]))
    error_message = "pools: labels: ${join("; ", flatten([for name, x in var.pools : [for k, v in x.labels : "${name} has ${k} = ${jsonencode(v)}" if !can(regex(local.label_value, v))]]))}, which is no label's value: ${local.label_rule}, or nothing."
  }
  # Here and not with hosts, since rules that refer to each other in a circle are refused.
  validation {
    condition     = alltrue([for h in var.hosts : h.pool == null ? true : contains(keys(var.pools), h.pool)])
    error_message = "hosts: unknown pool: ${join(", ", [for name, h in var.hosts : "${name} is in \"${h.pool}\"" if !(h.pool == null ? true : contains(keys(var.pools), h.pool))])}; pools has ${join(", ", keys(var.pools))}."
  }
  validation {
    condition     = length(setsubtract(keys(var.pools), [for h in var.hosts : h.pool if h.pool != null])) == 0
    error_message = "pools: no host is in ${join(", ", setsubtract(keys(var.pools), [for h in var.hosts : h.pool if h.pool != null]))}; remove the pool, or give it a host."
  }
}

variable "regions" {
  description = "The regions that experiments name; empty: those of the hosts."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.regions) == 0 || alltrue([for h in var.hosts : contains(var.regions, h.region)])
    error_message = "hosts: unknown region: ${join(", ", [for name, h in var.hosts : "${name} is in \"${h.region}\"" if !contains(var.regions, h.region)])}; regions has ${join(", ", var.regions)}."
  }
  validation {
    condition     = length(setsubtract(var.regions, [for h in var.hosts : h.region if h.role == "worker"])) == 0
    error_message = "regions: no worker is in ${join(", ", setsubtract(var.regions, [for h in var.hosts : h.region if h.role == "worker"]))}; remove the region, or give it a host."
  }
}

variable "kubernetes_version" {
  description = "Version of Kubernetes, with the patch: 1.36.3."
  type        = string
  default     = "1.36.3"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.kubernetes_version))
    error_message = "kubernetes_version is \"${var.kubernetes_version}\"; it must have three numbers and no v, as in 1.36.3."
  }
  validation {
    condition     = !can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.kubernetes_version)) || contains(local.supported_minors, join(".", slice(split(".", var.kubernetes_version), 0, 2)))
    error_message = "kubernetes_version ${var.kubernetes_version} is not supported; take a patch of ${join(", ", local.supported_minors)}."
  }
}

variable "pod_cidr" {
  description = "IPv4 range of the pods; each node gets a /24 of it."
  type        = string
  default     = "10.244.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.pod_cidr)) ? cidrhost(var.pod_cidr, 0) == split("/", var.pod_cidr)[0] : false
    error_message = "pod_cidr is \"${var.pod_cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 10.244.0.0/16."
  }
  validation {
    condition     = can(cidrnetmask(var.pod_cidr)) ? tonumber(split("/", var.pod_cidr)[1]) <= 24 - ceil(log(max(length(var.hosts), 2), 2)) : true
    error_message = "pod_cidr ${var.pod_cidr} is too small: each of the ${length(var.hosts)} nodes needs a /24, so that the prefix length may be at most ${24 - ceil(log(max(length(var.hosts), 2), 2))}."
  }
}

variable "service_cidr" {
  description = "IPv4 range of the Services."
  type        = string
  default     = "10.96.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.service_cidr)) ? cidrhost(var.service_cidr, 0) == split("/", var.service_cidr)[0] : false
    error_message = "service_cidr is \"${var.service_cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 10.96.0.0/16."
  }
  validation {
    condition     = can(cidrnetmask(var.service_cidr)) ? tonumber(split("/", var.service_cidr)[1]) >= 12 && tonumber(split("/", var.service_cidr)[1]) <= 24 : true
    error_message = "service_cidr ${var.service_cidr}: the API server wants a prefix length from 12 to 24."
  }
  validation {
    # Two ranges overlap if they have the same first address once both are cut to the shorter
    # prefix.
    condition = can(cidrnetmask(var.service_cidr)) && can(cidrnetmask(var.pod_cidr)) ? (
      cidrhost("${split("/", var.service_cidr)[0]}/${min(split("/", var.service_cidr)[1], split("/", var.pod_cidr)[1])}", 0) !=
      cidrhost("${split("/", var.pod_cidr)[0]}/${min(split("/", var.service_cidr)[1], split("/", var.pod_cidr)[1])}", 0)
    ) : true
    error_message = "service_cidr ${var.service_cidr} and pod_cidr ${var.pod_cidr} overlap."
  }
  validation {
    condition = alltrue([for cidr in [var.service_cidr, var.pod_cidr] : can(cidrnetmask(cidr)) ? alltrue([
      for h in var.hosts : alltrue([for a in [h.address, coalesce(h.internal_address, h.address)] :
      can(regex(local.ipv4, a)) ? cidrhost("${a}/${split("/", cidr)[1]}", 0) != cidrhost(cidr, 0) : true])
    ]) : true])
    error_message = "service_cidr and pod_cidr must not contain the address of a host: ${join(", ", distinct(flatten([for cidr in [var.service_cidr, var.pod_cidr] : [
      for name, h in var.hosts : "${name} is in ${cidr}" if anytrue([for a in [h.address, coalesce(h.internal_address, h.address)] :
      can(regex(local.ipv4, a)) && can(cidrnetmask(cidr)) ? cidrhost("${a}/${split("/", cidr)[1]}", 0) == cidrhost(cidr, 0) : false])
    ]])))}."
  }
}
