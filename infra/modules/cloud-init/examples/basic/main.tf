# The first start of a virtual machine with a fixed address.

terraform {
  required_version = ">= 1.9.0, < 2.0.0"
}

module "first_start" {
  source = "../.."

  name                = "one"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample1 me@example.org"]
  network = {
    mac     = "52:54:00:00:00:11"
    address = "10.17.3.11/24"
    gateway = "10.17.3.1"
    dns     = ["10.17.3.1"]
  }
}

output "user_data" {
  description = "What the machine reads at its first start."
  value       = module.first_start.user_data
}
