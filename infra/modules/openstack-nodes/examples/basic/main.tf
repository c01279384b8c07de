# Three instances of an OpenStack project. Credentials come from the environment.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 1.54.1, < 4.0.0"
    }
  }
}

provider "openstack" {}

module "instances" {
  source = "../.."

  name                = "lab"
  image               = "debian-12"
  access_cidr         = "192.0.2.0/24"
  pod_cidr            = "10.244.0.0/16"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample1 me@example.org"]
  machines = {
    control = { flavor = "m1.medium", role = "control-plane", region = "local" }
    one     = { flavor = "m1.large", pool = "replicas", region = "local" }
    two     = { flavor = "m1.large", pool = "clients", region = "local" }
  }
}

output "hosts" {
  description = "The instances, for the module inventory."
  value       = module.instances.hosts
}
