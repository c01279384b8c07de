variable "name" {
  description = "Name of the kind cluster. Its nodes are NAME-control-plane, NAME-worker, NAME-worker2 and so on."
  type        = string
  default     = "assay"
}

variable "workers" {
  description = "The workers, in the order of their names: pool, region, zone and labels as of hosts in infra/README.md. A change of their number replaces the cluster, a change of labels does not."
  type = list(object({
    pool   = string
    region = string
    zone   = optional(string)
    labels = optional(map(string), {})
  }))
  nullable = false

  validation {
    condition     = length(var.workers) >= 1 && length(var.workers) <= 20
    error_message = "workers has ${length(var.workers)}; there are 1 to 20 (each is a container of some 100 MiB when idle)."
  }
}

variable "control_plane_region" {
  description = "Region of the control plane, which runs no experiment; null: the first worker's."
  type        = string
  default     = null
}

variable "pools" {
  description = "What workers are for, by name; see infra/README.md."
  type = map(object({
    labels = optional(map(string), {})
    taint  = optional(bool, true)
  }))
}

variable "regions" {
  description = "The regions that experiments name; empty: those of the workers."
  type        = set(string)
  default     = []
}
