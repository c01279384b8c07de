variable "hosts" {
  description = "The machines, as the module inventory returns them: checked, with defaults filled in. What is not used here is passed on."
  nullable    = false
  type = map(object({
    address          = string
    user             = string
    port             = number
    host_key         = optional(string)
    internal_address = optional(string)
    role             = string
    pool             = optional(string)
    region           = string
    zone             = string
    labels           = optional(map(string), {})
    instance         = optional(string)
    node_labels      = map(string)
    node_taints      = list(object({ key = string, value = string, effect = string }))
  }))

  validation {
    condition     = alltrue([for h in var.hosts : can(regex("^[a-z_][-a-z0-9_.]*$", h.user))])
    error_message = "hosts: user of ${join(", ", [for name, h in var.hosts : name if !can(regex("^[a-z_][-a-z0-9_.]*$", h.user))])} must be the name of a Unix user."
  }
  validation {
    condition     = alltrue([for h in var.hosts : h.host_key == null ? true : can(regex("^(ssh|ecdsa)-[-a-z0-9@.]+ [A-Za-z0-9+/=]+", h.host_key))])
    error_message = "hosts: host_key of ${join(", ", [for name, h in var.hosts : name if h.host_key == null ? false : !can(regex("^(ssh|ecdsa)-[-a-z0-9@.]+ [A-Za-z0-9+/=]+", h.host_key))])} must be a public key, as in a file /etc/ssh/ssh_host_*_key.pub: ssh-ed25519 AAAA..."
  }
}

variable "ssh_private_key_file" {
  description = "Private key for SSH to the machines; null: the SSH agent's keys, or what ~/.ssh/config says. Only its path is kept in the state."
  type        = string
  default     = null

  validation {
    condition     = var.ssh_private_key_file == null ? true : fileexists(pathexpand(var.ssh_private_key_file))
    error_message = "ssh_private_key_file: there is no file ${coalesce(var.ssh_private_key_file, "-")}."
  }
}

variable "ssh" {
  description = <<-EOT
    How hosts are reached.
    `known_hosts_file`: keys of hosts without a host_key. The first one seen is kept, another one
    later is refused; null: known_hosts in the root's folder.
    `proxy_jump`: [user@]host[:port] to go through, with the same private key, the SSH agent's, or
    one that ~/.ssh/config names for it. Its host key is looked for in known_hosts_file and
    ~/.ssh/known_hosts.
    `wait_seconds`: 5 to 1800. How long a host may take to answer when it is taken in.
    `dead_seconds`: 5 to 600. After how long a host that is to be released counts as dead.
  EOT
  type = object({
    known_hosts_file = optional(string)
    proxy_jump       = optional(string, "")
    wait_seconds     = optional(number, 120)
    dead_seconds     = optional(number, 20)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.ssh.wait_seconds >= 5 && var.ssh.wait_seconds <= 1800 && var.ssh.dead_seconds >= 5 && var.ssh.dead_seconds <= 600
    error_message = "ssh: wait_seconds is 5 to 1800, dead_seconds 5 to 600."
  }
}

variable "kubernetes_version" {
  description = "Version of kubeadm and kubelet, with the patch: 1.36.3."
  type        = string
  nullable    = false
}

variable "preparation" {
  description = <<-EOT
    What evaluations need of a machine. It is set, read back, and set again at each boot. What the
    machine then has becomes labels of its node (machine.assay.dev/...). What it was before is kept
    on the machine and put back when the host is released.
    `smt`: on, off or unchanged. Two hardware threads for each core.
    `turbo`: on, off or unchanged. Frequencies above the nominal one.
    `governor`: a CPU frequency governor, for example performance, or unchanged.
    `huge_pages`: number of 2 MiB pages; null: unchanged.
    `nofile`: how many files a container may have open; null: unchanged.
    `swap`: off or unchanged. A kubelet refuses to run with swap unless told otherwise.
    `time_sync`: chrony or unchanged.
    `ntp_servers`: for chrony, beside the distribution's.
    `kernel_modules`: loaded now and at each boot.
    `strict`: fail if something could not be set, instead of only reporting it.
    `software`: where containerd 2, kubelet and kubeadm come from. With apt they are installed. With
    present they are on the machine, and kubectl on the control plane; only their versions are
    checked.
    `kubernetes_repository`, `containerd_repository`: of Debian packages, for apt.
    `image_archives`: files with container images (OCI or docker save) that every machine gets, for
    machines that reach no registry.
    `supported_os`: ID:VERSION_ID of /etc/os-release that machines may have.
  EOT
  type = object({
    smt            = optional(string, "unchanged")
    turbo          = optional(string, "unchanged")
    governor       = optional(string, "unchanged")
    huge_pages     = optional(number)
    nofile         = optional(number, 1048576)
    swap           = optional(string, "off")
    time_sync      = optional(string, "chrony")
    ntp_servers    = optional(list(string), [])
    kernel_modules = optional(list(string), ["overlay", "br_netfilter", "sch_netem", "sch_fq"])
    strict         = optional(bool, false)

    software              = optional(string, "apt")
    kubernetes_repository = optional(string, "https://pkgs.k8s.io/core:/stable:")
    containerd_repository = optional(string, "https://download.docker.com/linux")
    image_archives        = optional(list(string), [])
    supported_os          = optional(list(string), ["debian:12", "debian:13", "ubuntu:22.04", "ubuntu:24.04"])
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["on", "off", "unchanged"], var.preparation.smt) && contains(["on", "off", "unchanged"], var.preparation.turbo)
    error_message = "preparation: smt (\"${var.preparation.smt}\") and turbo (\"${var.preparation.turbo}\") are on, off or unchanged."
  }
  validation {
    condition     = can(regex("^[a-z_]+$", var.preparation.governor))
    error_message = "preparation: governor is \"${var.preparation.governor}\"; it is a name like performance or powersave, or unchanged."
  }
  validation {
    condition     = var.preparation.huge_pages == null ? true : var.preparation.huge_pages >= 0 && floor(var.preparation.huge_pages) == var.preparation.huge_pages
    error_message = "preparation: huge_pages is a whole number of 2 MiB pages, or null."
  }
  validation {
    condition     = var.preparation.nofile == null ? true : var.preparation.nofile >= 1024 && floor(var.preparation.nofile) == var.preparation.nofile
    error_message = "preparation: nofile is at least 1024, or null."
  }
  validation {
    condition     = contains(["off", "unchanged"], var.preparation.swap) && contains(["chrony", "unchanged"], var.preparation.time_sync)
    error_message = "preparation: swap (\"${var.preparation.swap}\") is off or unchanged, time_sync (\"${var.preparation.time_sync}\") chrony or unchanged."
  }
  validation {
    condition     = alltrue([for s in concat(var.preparation.ntp_servers, var.preparation.kernel_modules) : can(regex("^[A-Za-z0-9][-A-Za-z0-9_.:]*$", s))])
    error_message = "preparation: ntp_servers are host names or addresses, kernel_modules names like sch_fq."
  }
  validation {
    condition     = contains(["apt", "present"], var.preparation.software)
    error_message = "preparation: software is \"${var.preparation.software}\"; it is apt or present."
  }
  validation {
    condition     = alltrue([for u in [var.preparation.kubernetes_repository, var.preparation.containerd_repository] : can(regex("^https?://[^ ]+[^/ ]$", u))])
    error_message = "preparation: kubernetes_repository and containerd_repository are URLs without a slash at the end."
  }
  validation {
    condition     = alltrue([for f in var.preparation.image_archives : fileexists(pathexpand(f))])
    error_message = "preparation: image_archives: there is no file ${join(", ", [for f in var.preparation.image_archives : f if !fileexists(pathexpand(f))])}."
  }
}
