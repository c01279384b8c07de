# Assay on a cluster that is there, from a registry of one's own.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

provider "helm" {
  kubernetes = {
    config_path = pathexpand("~/.kube/config")
  }
}

module "assay" {
  source = "../.."

  kubeconfig = pathexpand("~/.kube/config")
  chart      = "../../../../../charts/assay"
  values = {
    images   = { registry = "registry.example.org/mirror" }
    livePage = { enabled = true }
  }
}
