# Versions without hashes: see "Versions and lock files" in infra/README.md. `terraform init` adds the hashes of what it gets.

provider "registry.terraform.io/hashicorp/helm" {
  version     = "3.2.0"
  constraints = ">= 3.0.0, ~> 3.0"
}

provider "registry.terraform.io/terraform-provider-openstack/openstack" {
  version     = "1.54.1"
  constraints = ">= 1.54.1, 1.54.1, < 4.0.0"
}
