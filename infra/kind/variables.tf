# What the fields of these variables may be called. Their modules would drop any other one without a word.
locals {
  worker_fields = ["pool", "region", "zone", "labels"]
  pool_fields   = ["labels", "taint"]
}

variable "name" {
  description = "Name of the kind cluster. Its nodes are NAME-control-plane, NAME-worker, NAME-worker2 and so on."
  type        = string
  default     = "assay"
}

variable "workers" {
  description = "The workers, in the order of their names: pool, region, zone and labels as of hosts in infra/README.md. A change of their number replaces the cluster, a change of labels does not."
  type        = any # an object type would drop misspelt fields
  nullable    = false

  validation {
    condition     = alltrue([for x in var.workers : length(setsubtract(keys(x), local.worker_fields)) == 0])
    error_message = "workers: unknown ${join("; ", [for name, x in var.workers : "${join(", ", setsubtract(keys(x), local.worker_fields))} of ${name}" if length(setsubtract(keys(x), local.worker_fields)) > 0])}; a worker has ${join(", ", local.worker_fields)}."
  }
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
  type        = any # an object type would drop misspelt fields
  nullable    = false

  validation {
    condition     = alltrue([for x in var.pools : length(setsubtract(keys(x), local.pool_fields)) == 0])
    error_message = "pools: unknown ${join("; ", [for name, x in var.pools : "${join(", ", setsubtract(keys(x), local.pool_fields))} of ${name}" if length(setsubtract(keys(x), local.pool_fields)) > 0])}; a pool has ${join(", ", local.pool_fields)}."
  }
}

variable "regions" {
  description = "The regions that experiments name; empty: those of the workers."
  type        = set(string)
  default     = []
}
