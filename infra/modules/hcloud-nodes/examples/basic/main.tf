# Three servers of a Hetzner Cloud project. The token comes from the environment, HCLOUD_TOKEN.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    hcloud = {
      source  = "hetznercloud/hcloud"
      version = ">= 1.68.0, < 2.0.0"
    }
  }
}

provider "hcloud" {}

module "servers" {
  source = "../.."

  name                = "lab"
  access_cidr         = "192.0.2.0/24"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample1 me@example.org"]
  machines = {
    control = { server_type = "ccx13", address = "10.17.5.10", role = "control-plane", region = "local" }
    one     = { server_type = "ccx13", address = "10.17.5.11", pool = "replicas", region = "local" }
    two     = { server_type = "ccx13", address = "10.17.5.12", pool = "clients", region = "local" }
  }
}

output "hosts" {
  description = "The servers, for the module inventory."
  value       = module.servers.hosts
}
