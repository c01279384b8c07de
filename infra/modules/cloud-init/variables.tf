variable "name" {
  description = "Host name of the machine, which becomes the name of its node."
  type        = string
  nullable    = false
}

variable "user" {
  description = "User to make, who may sudo without a password and logs in by key alone."
  type        = string
  default     = "assay"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z_][-a-z0-9_]{0,31}$", var.user)) && var.user != "root"
    error_message = "user is \"${var.user}\"; it must be a name for a new user, who is not root: root's login stays locked."
  }
}

variable "ssh_authorized_keys" {
  description = "Public SSH keys of those who may log in. The private key of one of them is ssh_private_key_file of the root."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.ssh_authorized_keys) > 0
    error_message = "ssh_authorized_keys is empty: nobody could log in."
  }
  validation {
    condition     = alltrue([for k in var.ssh_authorized_keys : can(regex("^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\\.com) [A-Za-z0-9+/=]+( [^\\n]*)?$", trimspace(k)))])
    error_message = "ssh_authorized_keys: key ${join(", ", [for i, k in var.ssh_authorized_keys : i + 1 if !can(regex("^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\\.com) [A-Za-z0-9+/=]+( [^\\n]*)?$", trimspace(k)))])} is not a line of a .pub file, as ssh-ed25519 AAAA... you@there."
  }
}

variable "network" {
  description = "Fixed address of the machine's one network interface, found by its MAC address; null: DHCP."
  type = object({
    mac     = string                     # 52:54:00:...
    address = string                     # with the prefix length: 10.17.3.11/24
    gateway = optional(string)           # null: no way out
    dns     = optional(list(string), []) # resolvers
  })
  default = null

  validation {
    condition     = var.network == null ? true : can(cidrnetmask(var.network.address))
    error_message = "network.address is \"${try(var.network.address, "")}\"; it must be an IPv4 address with its prefix length, as in 10.17.3.11/24."
  }
}
