output "namespace" {
  description = "Namespace of the managers."
  value       = helm_release.assay.namespace
}
