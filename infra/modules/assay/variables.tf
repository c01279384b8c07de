variable "kubeconfig" {
  description = "The cluster's kubeconfig, kubeadm-cluster's output. The helm provider reads it; here it makes the release wait for the cluster."
  type        = string
  nullable    = false
}

variable "chart" {
  description = "The chart: a folder, an archive, or a name in repository."
  type        = string
  nullable    = false
}

variable "repository" {
  description = "URL of the chart's repository (https or oci); null: chart is a folder or an archive."
  type        = string
  default     = null
}

variable "chart_version" {
  description = "Version of the chart in repository."
  type        = string
  default     = null
}

variable "namespace" {
  description = "Namespace of the managers. It is made."
  type        = string
  default     = "assay-system"
  nullable    = false
}

variable "pool" {
  description = "Pool whose nodes run the managers; null: the control plane, so that they are off the machines that are measured."
  type        = string
  default     = null
}

variable "values" {
  description = "Further values of the chart (charts/assay/values.yaml), for instance { images = { registry = \"registry.example.org/mirror\" } }."
  type        = any
  default     = {}
  nullable    = false
}

variable "timeout_seconds" {
  description = "How long the managers may take to become ready."
  type        = number
  default     = 300
  nullable    = false
}
