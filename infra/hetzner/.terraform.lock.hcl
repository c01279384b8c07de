# Versions without hashes: see "Versions and lock files" in infra/README.md. `terraform init` adds the hashes of what it gets.

provider "registry.terraform.io/hashicorp/helm" {
  version     = "3.2.0"
  constraints = ">= 3.0.0, ~> 3.0"
}

provider "registry.terraform.io/hetznercloud/hcloud" {
  version     = "1.68.0"
  constraints = ">= 1.68.0, 1.68.0, < 2.0.0"
}
