# Assay itself: the Helm release, with the values that follow from the cluster. The root configures
# the helm provider.

locals {
  control_plane = "node-role.kubernetes.io/control-plane"
  placement = {
    nodeSelector = var.pool == null ? { (local.control_plane) = "" } : { "assay.dev/pool" = var.pool }
    tolerations = [
      var.pool == null ? { key = local.control_plane, operator = "Exists", effect = "NoSchedule" } :
      { key = "assay.dev/pool", operator = "Equal", value = var.pool, effect = "NoSchedule" },
    ]
  }
}

resource "terraform_data" "cluster" {
  input = var.kubeconfig
}

resource "helm_release" "assay" {
  name             = "assay"
  namespace        = var.namespace
  create_namespace = true
  chart            = var.chart
  repository       = var.repository
  version          = var.chart_version
  timeout          = var.timeout_seconds
  wait             = true
  # A release that did not become ready is taken away, so that the next apply can begin again.
  atomic = true
  # Later ones win.
  values = [yamlencode(local.placement), yamlencode(var.values)]

  depends_on = [terraform_data.cluster]
}
