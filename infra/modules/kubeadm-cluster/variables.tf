variable "name" {
  description = "Name of the cluster."
  type        = string
  default     = "assay"
  nullable    = false
}

variable "hosts" {
  description = "Prepared machines: the output hosts of ssh-nodes, or several of them merged. Exactly one is the control plane."
  nullable    = false
  type = map(object({
    address          = string
    user             = string
    port             = number
    host_key         = optional(string)
    internal_address = optional(string)
    instance         = optional(string)
    role             = string
    node_labels      = map(string)
    node_taints      = list(object({ key = string, value = string, effect = string }))
    revision         = optional(string, "")
  }))

  validation {
    condition     = length([for h in var.hosts : 1 if h.role == "control-plane"]) == 1
    error_message = "hosts: ${length([for h in var.hosts : 1 if h.role == "control-plane"])} have the role control-plane; exactly one must."
  }
}

variable "kubernetes_version" {
  description = "Version of Kubernetes, with the patch: 1.36.3. A cluster is made with it; changing it later upgrades nothing."
  type        = string
  nullable    = false
}

variable "pod_cidr" {
  description = "IPv4 range of the pods; each node gets a /24 of it."
  type        = string
  default     = "10.244.0.0/16"
  nullable    = false
}

variable "service_cidr" {
  description = "IPv4 range of the Services."
  type        = string
  default     = "10.96.0.0/16"
  nullable    = false
}

variable "ssh_private_key_file" {
  description = "Private key for SSH to the machines; null: the SSH agent's keys. Only its path is kept in the state."
  type        = string
  default     = null
}

variable "ssh" {
  description = "How hosts are reached, as in ssh-nodes."
  type = object({
    known_hosts_file = optional(string)
    proxy_jump       = optional(string, "")
    wait_seconds     = optional(number, 120)
    dead_seconds     = optional(number, 20)
  })
  default  = {}
  nullable = false
}

variable "kubeconfig_file" {
  description = "Where to write the administrator's kubeconfig, mode 0600. It is not in the state."
  type        = string
  nullable    = false
}

variable "pod_network" {
  description = <<-EOT
    Manifest of the CNI plugin: a file here, or an https URL that the control plane fetches. #sha256=CHECKSUM at the end of the URL has the control
    plane refuse any other content. 10.244.0.0/16 (Flannel's) and {{ .PodSubnet }} (kind's) in it become pod_cidr. Its images must be where the nodes
    can get them.
  EOT
  type        = string
  default     = "https://github.com/flannel-io/flannel/releases/download/v0.27.4/kube-flannel.yml"
  nullable    = false

  validation {
    condition     = startswith(var.pod_network, "https://") || fileexists(pathexpand(var.pod_network))
    error_message = "pod_network: ${var.pod_network} is neither an https URL nor a file."
  }
}

variable "kubelet_configuration" {
  description = "Further fields of every kubelet's KubeletConfiguration, for instance { maxPods = 50, cpuManagerPolicy = \"static\" }. Read when the cluster is made."
  type        = any
  default     = {}
  nullable    = false
}

variable "kube_proxy_configuration" {
  description = "Fields of KubeProxyConfiguration, for instance { mode = \"nftables\" }. Read when the cluster is made."
  type        = any
  default     = {}
  nullable    = false
}

variable "ignore_preflight_errors" {
  description = "Checks of kubeadm that may fail, for instance SystemVerification on a kernel that hides its configuration."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for c in var.ignore_preflight_errors : can(regex("^[-A-Za-z0-9_]+$", c))])
    error_message = "ignore_preflight_errors: names as kubeadm prints them, in brackets: [ERROR Name]."
  }
}

variable "drain_seconds" {
  description = "How long the pods of a node that is removed may take to leave. After that they are ended."
  type        = number
  default     = 120
  nullable    = false

  validation {
    condition     = var.drain_seconds >= 1 && var.drain_seconds <= 3600
    error_message = "drain_seconds is 1 to 3600."
  }
}
