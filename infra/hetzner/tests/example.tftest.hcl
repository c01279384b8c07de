# A plan of example.tfvars, as `terraform test -var-file=example.tfvars` gives it. The real schemas, nobody at the other end.
mock_provider "hcloud" {}

run "example" {
  command = plan

  assert {
    condition     = output.pools["replicas"].nodes == tolist(["helsinki-0", "nuremberg-0", "nuremberg-1"]) && output.pools["clients"].nodes == tolist(["client-0"])
    error_message = "pools: ${jsonencode(output.pools)}"
  }
  assert {
    condition     = output.regions["nuremberg"].nodes == tolist(["client-0", "nuremberg-0", "nuremberg-1"])
    error_message = "regions: ${jsonencode(output.regions)}"
  }
}
