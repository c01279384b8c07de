variable "name" {
  description = "Name of the cluster; what is made in the project begins with it."
  type        = string
  default     = "assay"
  nullable    = false
}

variable "machines" {
  description = "The servers by the name of their node; role, pool, region, zone and labels as of hosts in infra/README.md."
  nullable    = false
  type = map(object({
    server_type = string                   # with dedicated processors (ccx13), or others' load is measured
    location    = optional(string, "nbg1") # Hetzner's, in network.zone
    address     = string                   # IPv4 in network.cidr, not its first two and not its last
    role        = optional(string, "worker")
    pool        = optional(string)
    region      = string
    zone        = optional(string)
    labels      = optional(map(string), {})
  }))

  validation {
    condition = alltrue([for m in var.machines : can(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0)) ? (
    cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) == cidrhost(var.network.cidr, 0)) : !can(cidrnetmask(var.network.cidr))])
    error_message = "machines: the address of ${join(", ", [for name, m in var.machines : name if try(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) != cidrhost(var.network.cidr, 0), true)])} must be an IPv4 address in network.cidr, ${var.network.cidr}."
  }
  validation {
    condition     = alltrue([for m in var.machines : !can(cidrnetmask(var.network.cidr)) ? true : !contains([cidrhost(var.network.cidr, 0), cidrhost(var.network.cidr, 1), cidrhost(var.network.cidr, -1)], m.address)])
    error_message = "machines: the address of ${join(", ", [for name, m in var.machines : name if try(contains([cidrhost(var.network.cidr, 0), cidrhost(var.network.cidr, 1), cidrhost(var.network.cidr, -1)], m.address), false)])} is Hetzner's: the first two addresses of network.cidr and its last one belong to the network."
  }
  validation {
    condition     = length(distinct([for m in var.machines : m.address])) == length(var.machines)
    error_message = "machines: two of them have one address; each needs its own."
  }
}

variable "image" {
  description = "Name of the image, with cloud-init."
  type        = string
  default     = "debian-12"
  nullable    = false
}

variable "network" {
  description = "The private network that is made: its IPv4 range, of RFC 1918, and Hetzner's network zone, which has all locations of the machines."
  nullable    = false
  type = object({
    cidr = optional(string, "10.17.5.0/24")
    zone = optional(string, "eu-central") # nbg1, fsn1 and hel1
  })
  default = {}

  validation {
    condition     = can(cidrnetmask(var.network.cidr)) ? cidrhost(var.network.cidr, 0) == split("/", var.network.cidr)[0] : false
    error_message = "network.cidr is \"${var.network.cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 10.17.5.0/24."
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
