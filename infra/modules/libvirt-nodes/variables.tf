variable "name" {
  description = "Name of the cluster; what is made on the host begins with it."
  type        = string
  default     = "assay"
  nullable    = false
}

variable "machines" {
  description = "The virtual machines by the name of their node; role, pool, region, zone and labels as of hosts in infra/README.md."
  nullable    = false
  type = map(object({
    address    = string # IPv4, in network.cidr
    vcpus      = optional(number, 2)
    memory_mib = optional(number, 4096)
    disk_gib   = optional(number, 20)
    role       = optional(string, "worker")
    pool       = optional(string)
    region     = string
    zone       = optional(string)
    labels     = optional(map(string), {})
  }))

  validation {
    condition = alltrue([for m in var.machines : can(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0)) ? (
    cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) == cidrhost(var.network.cidr, 0)) : !can(cidrnetmask(var.network.cidr))])
    error_message = "machines: the address of ${join(", ", [for name, m in var.machines : name if try(cidrhost("${m.address}/${split("/", var.network.cidr)[1]}", 0) != cidrhost(var.network.cidr, 0), true)])} must be an IPv4 address in network.cidr, ${var.network.cidr}."
  }
  validation {
    condition     = length(distinct([for m in var.machines : m.address])) == length(var.machines)
    error_message = "machines: the same address is there twice: ${join("; ", [for at, names in { for name, m in var.machines : m.address => name... } : "${join(" and ", names)} have ${at}" if length(names) > 1])}."
  }
  validation {
    condition     = alltrue([for m in var.machines : var.network.gateway == null ? m.address != try(cidrhost(var.network.cidr, 1), "") : m.address != var.network.gateway])
    error_message = "machines: ${join(", ", [for name, m in var.machines : name if m.address == try(coalesce(var.network.gateway, cidrhost(var.network.cidr, 1)), "")])} has the gateway's address."
  }
  validation {
    condition     = alltrue([for m in var.machines : m.vcpus >= 2 && m.memory_mib >= 1700 || m.role != "control-plane"])
    error_message = "machines: the control plane needs 2 vcpus and 1700 MiB of memory, kubeadm says."
  }
  validation {
    condition     = alltrue([for m in var.machines : m.vcpus >= 1 && m.memory_mib >= 256 && m.disk_gib >= 2])
    error_message = "machines: ${join(", ", [for name, m in var.machines : name if !(m.vcpus >= 1 && m.memory_mib >= 256 && m.disk_gib >= 2)])}: at least 1 vcpu, 256 MiB of memory and 2 GiB of disk."
  }
}

variable "image" {
  description = "Disk image with cloud-init, qcow2 or raw: a URL, or a path on the machine that runs Terraform. For instance Debian's genericcloud image."
  type        = string
  nullable    = false
}

variable "image_format" {
  description = "qcow2 or raw."
  type        = string
  default     = "qcow2"
  nullable    = false

  validation {
    condition     = contains(["qcow2", "raw"], var.image_format)
    error_message = "image_format is \"${var.image_format}\"; it is qcow2 or raw."
  }
}

variable "storage_pool" {
  description = "libvirt's storage pool for the disks. It exists."
  type        = string
  default     = "default"
  nullable    = false
}

variable "network" {
  description = "Where the machines are. Without a bridge, a network behind the host (NAT) is made, which only the host reaches. With one of the host, nothing is made."
  nullable    = false
  type = object({
    cidr    = string
    bridge  = optional(string)           # of the host
    gateway = optional(string)           # default without a bridge: the host, which has the first address; with one: none
    dns     = optional(list(string), []) # resolvers
  })
  default = { cidr = "10.17.3.0/24" }

  validation {
    condition     = can(cidrnetmask(var.network.cidr)) ? cidrhost(var.network.cidr, 0) == split("/", var.network.cidr)[0] : false
    error_message = "network.cidr is \"${var.network.cidr}\"; it must be the first address of an IPv4 range and its prefix length, as in 10.17.3.0/24."
  }
}

variable "virtualization" {
  description = "kvm, or qemu: software emulation, ten times slower and more. What it measures is worth nothing."
  type        = string
  default     = "kvm"
  nullable    = false

  validation {
    condition     = contains(["kvm", "qemu"], var.virtualization)
    error_message = "virtualization is \"${var.virtualization}\"; it is kvm or qemu."
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
