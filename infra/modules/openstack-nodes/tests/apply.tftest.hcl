# The real schema, and nobody at the other end. What a cloud would answer and the module needs:
mock_provider "openstack" {
  mock_resource "openstack_networking_port_v2" {
    defaults = { all_fixed_ips = ["10.17.4.77"] }
  }
  mock_resource "openstack_networking_floatingip_v2" {
    defaults = { address = "203.0.113.77" }
  }
}

variables {
  name                = "lab"
  image               = "debian-12"
  access_cidr         = "192.0.2.0/24"
  pod_cidr            = "10.244.0.0/16"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample you@there"]
  network             = { cidr = "10.17.4.0/24", external_network = "public" }
  machines = {
    control     = { role = "control-plane", region = "us-east-1", flavor = "m1.large", volume_gib = 40 }
    us-east-1-0 = { pool = "replicas", region = "us-east-1", flavor = "baremetal.general", bare_metal = true, labels = { "example.org/rack" = "a" } }
  }
}

run "plain_flavor" {
  assert {
    condition     = one(openstack_compute_instance_v2.this["control"].scheduler_hints).group == openstack_compute_servergroup_v2.this[0].id
    error_message = "a virtual machine is not in the server group"
  }
  assert {
    condition     = one(openstack_compute_instance_v2.this["control"].block_device).volume_size == 40 && openstack_compute_instance_v2.this["control"].timeouts.create == "20m"
    error_message = "control: ${jsonencode(openstack_compute_instance_v2.this["control"].block_device)}"
  }
  assert {
    condition     = openstack_networking_port_v2.this["control"].security_group_ids == toset([openstack_networking_secgroup_v2.this.id])
    error_message = "the port of a virtual machine is not in the security group"
  }
  assert {
    condition     = [for p in openstack_networking_port_v2.this["control"].allowed_address_pairs : p.ip_address] == ["10.244.0.0/16"]
    error_message = "packets of pods would be dropped"
  }
  assert {
    # As JSON: objects are only equal if their types are, too.
    condition = jsonencode(output.hosts["control"]) == jsonencode({
      address  = "203.0.113.77", user = "assay", port = 22, internal_address = "10.17.4.77", role = "control-plane", pool = null, region = "us-east-1", zone = null, labels = {},
      instance = openstack_compute_instance_v2.this["control"].id
    })
    error_message = "hosts: ${jsonencode(output.hosts)}"
  }
}

run "ironic_flavor" {
  assert {
    condition     = openstack_compute_instance_v2.this["us-east-1-0"].flavor_name == "baremetal.general" && length(openstack_compute_instance_v2.this["us-east-1-0"].scheduler_hints) == 0
    error_message = "bare metal has no neighbours to be kept from"
  }
  assert {
    condition     = length(openstack_compute_instance_v2.this["us-east-1-0"].block_device) == 0 && openstack_compute_instance_v2.this["us-east-1-0"].config_drive
    error_message = "bare metal boots from its own disk, with a config drive"
  }
  assert {
    condition     = openstack_compute_instance_v2.this["us-east-1-0"].timeouts.create == "60m"
    error_message = "bare metal takes up to an hour"
  }
  assert {
    condition     = openstack_networking_port_v2.this["us-east-1-0"].no_security_groups && length(openstack_networking_port_v2.this["us-east-1-0"].allowed_address_pairs) == 0
    error_message = "the port of bare metal has no security groups"
  }
  assert {
    condition     = startswith(module.cloud_init["us-east-1-0"].user_data, "#cloud-config\n") && strcontains(module.cloud_init["us-east-1-0"].user_data, "\"hostname\": \"us-east-1-0\"")
    error_message = "user data: ${module.cloud_init["us-east-1-0"].user_data}"
  }
  assert {
    condition     = output.hosts["us-east-1-0"].pool == "replicas" && output.hosts["us-east-1-0"].labels == tomap({ "example.org/rack" = "a" })
    error_message = "hosts: ${jsonencode(output.hosts)}"
  }
}

run "a_network_that_exists" {
  variables {
    network      = { cidr = "10.0.0.0/20", network_id = "5a1c0de5-0000-4000-8000-000000000001", subnet_id = "5a1c0de5-0000-4000-8000-000000000002" }
    floating_ips = false
    machines     = { us-east-1-0 = { pool = "replicas", region = "us-east-1", flavor = "baremetal.general", bare_metal = true } }
  }
  assert {
    condition     = length(openstack_networking_network_v2.this) + length(openstack_networking_subnet_v2.this) + length(openstack_networking_router_v2.this) + length(openstack_networking_floatingip_v2.this) == 0
    error_message = "made what exists"
  }
  assert {
    condition     = length(openstack_compute_servergroup_v2.this) == 0
    error_message = "a server group for bare metal alone"
  }
  assert {
    condition     = openstack_networking_port_v2.this["us-east-1-0"].network_id == "5a1c0de5-0000-4000-8000-000000000001" && output.hosts["us-east-1-0"].address == "10.17.4.77"
    error_message = "hosts: ${jsonencode(output.hosts)}"
  }
}

run "refuses_a_wrong_range" {
  command = plan
  variables {
    access_cidr = "192.0.2.7"
  }
  expect_failures = [var.access_cidr]
}

run "refuses_bare_metal_on_a_volume" {
  command = plan
  variables {
    machines = { us-east-1-0 = { pool = "replicas", region = "us-east-1", flavor = "baremetal.general", bare_metal = true, volume_gib = 40 } }
  }
  expect_failures = [var.machines]
}

run "refuses_floating_ips_from_nowhere" {
  command = plan
  variables {
    network = { cidr = "10.17.4.0/24" }
  }
  expect_failures = [var.floating_ips]
}
