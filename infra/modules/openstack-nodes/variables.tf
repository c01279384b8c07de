variable "name" {
  description = "Name of the cluster; what is made in the project begins with it."
  type        = string
  default     = "assay"
  nullable    = false
}

variable "machines" {
  description = "The instances by the name of their node; role, pool, region, zone and labels as of hosts in infra/README.md."
  nullable    = false
  type = map(object({
    flavor            = string
    bare_metal        = optional(bool, false) # the flavor is Ironic's: a whole machine
    availability_zone = optional(string)      # OpenStack's
    volume_gib        = optional(number)      # boot from a volume of this size; null: the flavor's own disk
    address           = optional(string)      # IPv4, in network.cidr; null: OpenStack chooses
    role              = optional(string, "worker")
    pool              = optional(string)
    region            = string
    zone              = optional(string)
    labels            = optional(map(string), {})
  }))

  validation {
    condition     = alltrue([for m in var.machines : !(m.bare_metal && m.volume_gib != null)])
    error_message = "machines: ${join(", ", [for name, m in var.machines : name if m.bare_metal && m.volume_gib != null])}: bare metal boots from its own disk; leave volume_gib out."
  }
  validation {
    condition     = alltrue([for m in var.machines : m.volume_gib == null ? true : m.volume_gib >= 10])
    error_message = "machines: volume_gib of ${join(", ", [for name, m in var.machines : name if m.volume_gib == null ? false : m.volume_gib < 10])} must be at least 10: the images of Kubernetes and Assay alone take some."
  }
  validation {
    condition = alltrue([for m in var.machines : m.address == null ? true : can(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0)) ? (
    cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) == cidrhost(var.network.cidr, 0)) : !can(cidrnetmask(var.network.cidr))])
    error_message = "machines: the address of ${join(", ", [for name, m in var.machines : name if m.address == null ? false : try(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) != cidrhost(var.network.cidr, 0), true)])} must be an IPv4 address in network.cidr, ${var.network.cidr}."
  }
}

variable "image" {
  description = "Name of the image, with cloud-init. For bare metal a whole-disk image."
  type        = string
  nullable    = false
}

variable "network" {
  description = "Where the instances are. Without network_id and subnet_id, a network is made, with a router to external_network if that is given."
  nullable    = false
  type = object({
    cidr             = string                     # of the subnet, also of one that exists
    dns              = optional(list(string), []) # resolvers; empty: the cloud's
    external_network = optional(string)           # its name. Also where floating IPs come from
    network_id       = optional(string)
    subnet_id        = optional(string)
  })
  default = { cidr = "10.17.4.0/24" }

  validation {
    condition     = can(cidrnetmask(var.network.cidr)) ? cidrhost(var.network.cidr, 0) == split("/", var.network.cidr)[0] : false
    error_message = "network.cidr is \"${var.network.cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 10.17.4.0/24."
  }
  validation {
    condition     = (var.network.network_id == null) == (var.network.subnet_id == null)
    error_message = "network: network_id and subnet_id go together: give both for a network that exists, none for a new one."
  }
}

variable "floating_ips" {
  description = "Give each instance a floating IP of network.external_network, by which Terraform reaches it. Without, Terraform must run where the subnet can be reached."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.floating_ips || var.network.external_network != null
    error_message = "floating_ips is true and network.external_network is missing: name the network that floating IPs come from, or set floating_ips to false."
  }
}

variable "access_cidr" {
  description = "IPv4 range from which SSH and the API server are reached: yours."
  type        = string
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.access_cidr)) ? cidrhost(var.access_cidr, 0) == split("/", var.access_cidr)[0] : false
    error_message = "access_cidr is \"${var.access_cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 192.0.2.0/24, or 192.0.2.7/32 for one address."
  }
}

variable "pod_cidr" {
  description = "IPv4 range of the pods, whose packets the cloud must let through."
  type        = string
  nullable    = false
}

variable "user" {
  description = "User to make on the machines."
  type        = string
  default     = "assay"
  nullable    = false
}

variable "ssh_authorized_keys" {
  description = "Public SSH keys of that user."
  type        = list(string)
  nullable    = false
}
