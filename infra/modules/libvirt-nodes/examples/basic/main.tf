# Three virtual machines on this host.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    libvirt = {
      source  = "dmacvicar/libvirt"
      version = "~> 0.8.3"
    }
  }
}

provider "libvirt" {
  uri = "qemu:///system"
}

module "vms" {
  source = "../.."

  image               = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample1 me@example.org"]
  machines = {
    control = { address = "10.17.3.10", role = "control-plane", region = "local" }
    one     = { address = "10.17.3.11", pool = "replicas", region = "local" }
    two     = { address = "10.17.3.12", pool = "clients", region = "local" }
  }
}

output "hosts" {
  description = "The machines, for the module inventory."
  value       = module.vms.hosts
}
