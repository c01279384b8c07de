# Servers of a Hetzner Cloud project, and a cluster of them. The token comes from the environment (HCLOUD_TOKEN), never from here.

provider "hcloud" {}

module "servers" {
  source = "../modules/hcloud-nodes"

  name                = var.name
  machines            = var.machines
  image               = var.image
  network             = var.network
  access_cidr         = var.access_cidr
  user                = var.user
  ssh_authorized_keys = var.ssh_authorized_keys
}

module "inventory" {
  source = "../modules/inventory"

  name               = var.name
  hosts              = module.servers.hosts
  pools              = var.pools
  regions            = var.regions
  kubernetes_version = var.kubernetes_version
  pod_cidr           = var.pod_cidr
  service_cidr       = var.service_cidr
}

module "machines" {
  source = "../modules/ssh-nodes"

  hosts                = module.inventory.hosts
  ssh_private_key_file = var.ssh_private_key_file
  ssh                  = var.ssh
  kubernetes_version   = module.inventory.kubernetes_version
  preparation          = var.preparation
}

module "cluster" {
  source = "../modules/kubeadm-cluster"

  name                     = module.inventory.name
  hosts                    = module.machines.hosts
  kubernetes_version       = module.inventory.kubernetes_version
  pod_cidr                 = module.inventory.pod_cidr
  service_cidr             = module.inventory.service_cidr
  ssh_private_key_file     = var.ssh_private_key_file
  ssh                      = var.ssh
  kubeconfig_file          = coalesce(var.kubeconfig_file, abspath("${path.root}/kubeconfig"))
  pod_network              = var.pod_network
  kubelet_configuration    = try(var.kubeadm.kubelet_configuration, {})
  kube_proxy_configuration = try(var.kubeadm.kube_proxy_configuration, {})
  ignore_preflight_errors  = try(var.kubeadm.ignore_preflight_errors, [])
  drain_seconds            = try(var.kubeadm.drain_seconds, 120)
}

provider "helm" {
  kubernetes = {
    config_path = module.cluster.kubeconfig
  }
}

module "assay" {
  source = "../modules/assay"

  kubeconfig = module.cluster.kubeconfig
  chart      = coalesce(var.chart, abspath("${path.module}/../../charts/assay"))
  values     = var.chart_values
}
