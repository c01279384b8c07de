# The real schema, and no cluster.
mock_provider "helm" {}

variables {
  kubeconfig = "/somewhere/kubeconfig"
  chart      = "charts/assay"
}

run "beside_the_control_plane" {
  assert {
    condition = jsonencode(yamldecode(helm_release.assay.values[0])) == jsonencode({
      nodeSelector = { "node-role.kubernetes.io/control-plane" = "" }
      tolerations  = [{ key = "node-role.kubernetes.io/control-plane", operator = "Exists", effect = "NoSchedule" }]
    })
    error_message = "values: ${jsonencode(helm_release.assay.values)}"
  }
  assert {
    condition     = helm_release.assay.namespace == "assay-system" && helm_release.assay.create_namespace && helm_release.assay.wait && helm_release.assay.atomic
    error_message = "the release is waited for, in a namespace of its own, and taken away if it fails"
  }
}

run "in_a_pool_with_values" {
  variables {
    pool   = "services"
    values = { images = { registry = "registry.example.org/mirror" } }
  }
  assert {
    condition = jsonencode(yamldecode(helm_release.assay.values[0])) == jsonencode({
      nodeSelector = { "assay.dev/pool" = "services" }
      tolerations  = [{ key = "assay.dev/pool", operator = "Equal", value = "services", effect = "NoSchedule" }]
    })
    error_message = "values: ${jsonencode(helm_release.assay.values)}"
  }
  assert {
    condition     = jsonencode(yamldecode(helm_release.assay.values[1])) == jsonencode({ images = { registry = "registry.example.org/mirror" } })
    error_message = "values: ${jsonencode(helm_release.assay.values)}"
  }
}
