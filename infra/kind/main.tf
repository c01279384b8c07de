# The laptop's cluster with the same pools, regions and outputs as the others'. Machines are containers; hack/cluster makes them (it starts docker,
# gets the node image and waits until every node is Ready), label.sh gives them their pools and regions.

locals {
  repository = abspath("${path.module}/../..")
  # As hack/cluster/lib.sh names it.
  kubeconfig = "${local.repository}/.work/${var.name == "assay" ? "kubeconfig" : "kubeconfig-${var.name}"}"

  workers = { for i, w in var.workers : "${var.name}-worker${i == 0 ? "" : i + 1}" => w }
  hosts = merge(
    { "${var.name}-control-plane" = {
      address = "${var.name}-control-plane"
      role    = "control-plane"
      pool    = null
      region  = coalesce(var.control_plane_region, try(var.workers[0].region, "-"))
      zone    = null
      labels  = {}
    } },
    { for name, w in local.workers : name => {
      address = name
      role    = "worker"
      pool    = try(w.pool, null)
      region  = try(w.region, "")
      zone    = try(w.zone, null)
      labels  = try(w.labels, {})
    } },
  )
}

module "inventory" {
  source = "../modules/inventory"

  name    = var.name
  hosts   = local.hosts
  pools   = var.pools
  regions = var.regions
}

resource "terraform_data" "cluster" {
  # Checked names only: what is refused there creates nothing here.
  input            = { name = module.inventory.name, workers = length(var.workers), kubeconfig = local.kubeconfig }
  triggers_replace = [module.inventory.name, length(var.workers)]

  provisioner "local-exec" {
    command     = "${path.module}/../../hack/cluster/cluster.sh up"
    environment = { CLUSTER = self.input.name, WORKERS = self.input.workers }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "${path.module}/../../hack/cluster/cluster.sh down"
    environment = { CLUSTER = self.input.name }
  }
}

resource "terraform_data" "labels" {
  for_each = module.inventory.hosts

  triggers_replace = [terraform_data.cluster.id, each.value.node_labels, each.value.node_taints]

  provisioner "local-exec" {
    command = "${path.module}/label.sh"
    environment = {
      KUBECONFIG = local.kubeconfig
      NODE       = each.key
      LABELS     = join("\n", [for k, v in each.value.node_labels : "${k}=${v}"])
      TAINTS     = join("\n", [for t in each.value.node_taints : "${t.key}=${t.value}:${t.effect}"])
    }
  }
}
