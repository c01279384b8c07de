# The real schema, and nobody at the other end.
mock_provider "libvirt" {}

variables {
  name                = "lab"
  image               = "https://example.org/debian.qcow2"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample you@there"]
  network             = { cidr = "10.17.3.0/24", dns = ["192.0.2.53"] }
  machines = {
    control  = { role = "control-plane", region = "us-east-1", address = "10.17.3.10" }
    client-0 = { pool = "clients", region = "eu-west-1", zone = "b", address = "10.17.3.21", vcpus = 1, memory_mib = 2048, disk_gib = 8 }
  }
}

run "behind_the_host" {
  assert {
    # As JSON: objects are only equal if their types are, too.
    condition = jsonencode(output.hosts["client-0"]) == jsonencode({
      address  = "10.17.3.21", user = "assay", port = 22, internal_address = "10.17.3.21", role = "worker", pool = "clients", region = "eu-west-1", zone = "b", labels = {},
      instance = libvirt_domain.this["client-0"].id
    })
    error_message = "hosts: ${jsonencode(output.hosts)}"
  }
  assert {
    condition     = libvirt_network.this[0].mode == "nat" && libvirt_network.this[0].addresses == tolist(["10.17.3.0/24"])
    error_message = "network: ${jsonencode(libvirt_network.this)}"
  }
  assert {
    condition     = libvirt_domain.this["client-0"].memory == 2048 && libvirt_domain.this["client-0"].vcpu == 1 && libvirt_volume.disk["client-0"].size == 8589934592
    error_message = "client-0 has not the size that was asked for"
  }
  assert {
    condition     = libvirt_domain.this["control"].type == "kvm" && one(libvirt_domain.this["control"].cpu).mode == "host-passthrough"
    error_message = "control: ${jsonencode(libvirt_domain.this["control"].cpu)}"
  }
  assert {
    # The guest finds its address by this MAC address.
    condition     = strcontains(lower(libvirt_cloudinit_disk.this["control"].network_config), lower(one(libvirt_domain.this["control"].network_interface).mac))
    error_message = "the network configuration is for another MAC address: ${libvirt_cloudinit_disk.this["control"].network_config}"
  }
  assert {
    condition     = one(libvirt_domain.this["control"].network_interface).mac != one(libvirt_domain.this["client-0"].network_interface).mac
    error_message = "two machines have the same MAC address"
  }
}

run "on_a_bridge_emulated" {
  variables {
    network        = { cidr = "10.0.8.0/22", bridge = "br0" }
    virtualization = "qemu"
    machines       = { control = { role = "control-plane", region = "us-east-1", address = "10.0.9.10" } }
  }
  assert {
    condition     = length(libvirt_network.this) == 0 && one(libvirt_domain.this["control"].network_interface).bridge == "br0"
    error_message = "interface: ${jsonencode(libvirt_domain.this["control"].network_interface)}"
  }
  assert {
    condition     = libvirt_domain.this["control"].type == "qemu" && one(libvirt_domain.this["control"].cpu).mode == "maximum"
    error_message = "cpu: ${jsonencode(libvirt_domain.this["control"].cpu)}"
  }
  assert {
    condition     = strcontains(libvirt_cloudinit_disk.this["control"].network_config, "10.0.9.10/22") && !strcontains(libvirt_cloudinit_disk.this["control"].network_config, "via")
    error_message = "without a gateway there is no route: ${libvirt_cloudinit_disk.this["control"].network_config}"
  }
}

run "refuses_a_wrong_range" {
  command = plan
  variables {
    network = { cidr = "10.17.3.1/24" }
  }
  expect_failures = [var.network]
}

run "refuses_an_address_elsewhere" {
  command = plan
  variables {
    machines = { control = { role = "control-plane", region = "us-east-1", address = "10.17.4.10" } }
  }
  expect_failures = [var.machines]
}

run "refuses_an_address_twice" {
  command = plan
  variables {
    machines = {
      control  = { role = "control-plane", region = "us-east-1", address = "10.17.3.10" }
      client-0 = { pool = "clients", region = "us-east-1", address = "10.17.3.10" }
    }
  }
  expect_failures = [var.machines]
}

run "refuses_a_small_control_plane" {
  command = plan
  variables {
    machines = { control = { role = "control-plane", region = "us-east-1", address = "10.17.3.10", vcpus = 1 } }
  }
  expect_failures = [var.machines]
}
