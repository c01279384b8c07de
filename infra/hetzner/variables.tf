# What the fields of these variables may be called. Their modules would drop any other one without a word.
locals {
  preparation_fields = [
    "smt", "turbo", "governor", "huge_pages", "nofile", "swap", "time_sync", "ntp_servers", "kernel_modules", "strict",
    "software", "kubernetes_repository", "containerd_repository", "image_archives", "supported_os",
  ]
  ssh_fields     = ["known_hosts_file", "proxy_jump", "wait_seconds", "dead_seconds"]
  kubeadm_fields = ["kubelet_configuration", "kube_proxy_configuration", "ignore_preflight_errors", "drain_seconds"]
  machine_fields = ["server_type", "location", "address", "role", "pool", "region", "zone", "labels"]
  pool_fields    = ["labels", "taint"]
  network_fields = ["cidr", "zone"]
}

variable "machines" {
  description = "The servers by the name of their node; see modules/hcloud-nodes."
  type        = any # an object type would drop misspelt fields
  nullable    = false

  validation {
    condition     = alltrue([for x in var.machines : length(setsubtract(keys(x), local.machine_fields)) == 0])
    error_message = "machines: unknown ${join("; ", [for name, x in var.machines : "${join(", ", setsubtract(keys(x), local.machine_fields))} of ${name}" if length(setsubtract(keys(x), local.machine_fields)) > 0])}; a machine has ${join(", ", local.machine_fields)}."
  }
}

variable "image" {
  description = "Name of the image, with cloud-init."
  type        = string
  default     = "debian-12"
}

variable "network" {
  description = "The private network of the servers; see modules/hcloud-nodes."
  type        = any # an object type would drop misspelt fields
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.network), local.network_fields)) == 0
    error_message = "network: unknown ${join(", ", setsubtract(keys(var.network), local.network_fields))}; it has ${join(", ", local.network_fields)}."
  }
}

variable "access_cidr" {
  description = "IPv4 range from which SSH and the API server are reached: yours."
  type        = string
}

variable "user" {
  description = "User to make on the machines."
  type        = string
  default     = "assay"
}

variable "ssh_authorized_keys" {
  description = "Public SSH keys of that user; one belongs to ssh_private_key_file or is in the SSH agent."
  type        = list(string)
}

variable "pools" {
  description = "What machines are for, by name; see infra/README.md."
  type        = any # an object type would drop misspelt fields
  nullable    = false

  validation {
    condition     = alltrue([for x in var.pools : length(setsubtract(keys(x), local.pool_fields)) == 0])
    error_message = "pools: unknown ${join("; ", [for name, x in var.pools : "${join(", ", setsubtract(keys(x), local.pool_fields))} of ${name}" if length(setsubtract(keys(x), local.pool_fields)) > 0])}; a pool has ${join(", ", local.pool_fields)}."
  }
}

variable "regions" {
  description = "The regions that experiments name; empty: those of the machines."
  type        = set(string)
  default     = []
}

variable "name" {
  description = "Name of the cluster."
  type        = string
  default     = "assay"
}

variable "kubernetes_version" {
  description = "Version of Kubernetes, with the patch."
  type        = string
  default     = "1.36.3"
}

variable "pod_cidr" {
  description = "IPv4 range of the pods; each node gets a /24 of it."
  type        = string
  default     = "10.244.0.0/16"
}

variable "service_cidr" {
  description = "IPv4 range of the Services."
  type        = string
  default     = "10.96.0.0/16"
}

variable "ssh_private_key_file" {
  description = "Private key for SSH to the machines; null: the SSH agent's keys."
  type        = string
  default     = null
}

variable "preparation" {
  description = "What to set on the machines before they are measured; see modules/ssh-nodes."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = length(setsubtract(keys(var.preparation), local.preparation_fields)) == 0
    error_message = "preparation: unknown ${join(", ", setsubtract(keys(var.preparation), local.preparation_fields))}; it has ${join(", ", local.preparation_fields)}."
  }
}

variable "kubeconfig_file" {
  description = "Where to write the kubeconfig; null: kubeconfig in this folder."
  type        = string
  default     = null
}

variable "ssh" {
  description = "Jump host, known hosts and waiting times; see modules/ssh-nodes."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = length(setsubtract(keys(var.ssh), local.ssh_fields)) == 0
    error_message = "ssh: unknown ${join(", ", setsubtract(keys(var.ssh), local.ssh_fields))}; it has ${join(", ", local.ssh_fields)}."
  }
}

variable "pod_network" {
  description = "Manifest of the CNI plugin, a file or an https URL; null: Flannel from its release page; see modules/kubeadm-cluster."
  type        = string
  default     = null
}

variable "kubeadm" {
  description = "Special needs of the machines: kubelet_configuration, kube_proxy_configuration, ignore_preflight_errors, drain_seconds; see modules/kubeadm-cluster."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = length(setsubtract(keys(var.kubeadm), local.kubeadm_fields)) == 0
    error_message = "kubeadm: unknown ${join(", ", setsubtract(keys(var.kubeadm), local.kubeadm_fields))}; it has ${join(", ", local.kubeadm_fields)}."
  }
}

variable "chart" {
  description = "Folder of Assay's chart; null: the one of this repository."
  type        = string
  default     = null
}

variable "chart_values" {
  description = "Values of the chart, for instance the images' registry and tags."
  type        = any
  default     = {}
}
