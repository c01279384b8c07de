# A plan of example.tfvars, as `terraform test -var-file=example.tfvars` gives it. The real schemas, nobody at the other end.
mock_provider "libvirt" {}

run "example" {
  command = plan

  assert {
    condition     = output.pools["replicas"].nodes == tolist(["eu-west-1-0", "us-east-1-0", "us-east-1-1"]) && output.pools["clients"].nodes == tolist(["client-0", "client-1"])
    error_message = "pools: ${jsonencode(output.pools)}"
  }
  assert {
    condition     = output.regions["eu-west-1"].nodes == tolist(["client-1", "eu-west-1-0"])
    error_message = "regions: ${jsonencode(output.regions)}"
  }
}
