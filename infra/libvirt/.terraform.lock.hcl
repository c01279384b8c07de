# Versions without hashes: see "Versions and lock files" in infra/README.md. `terraform init` adds the hashes of what it gets.

provider "registry.terraform.io/dmacvicar/libvirt" {
  version     = "0.8.3"
  constraints = "0.8.3, ~> 0.8.3"
}

provider "registry.terraform.io/hashicorp/helm" {
  version     = "3.2.0"
  constraints = ">= 3.0.0, ~> 3.0"
}
