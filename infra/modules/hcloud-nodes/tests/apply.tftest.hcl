# The real schema, and nobody at the other end. Identifiers of Hetzner's are numbers, and the module needs them as such.
mock_provider "hcloud" {
  mock_resource "hcloud_network" {
    defaults = { id = "11" }
  }
  mock_resource "hcloud_network_subnet" {
    defaults = { id = "11-10.17.5.0/24" }
  }
  mock_resource "hcloud_firewall" {
    defaults = { id = "22" }
  }
  mock_resource "hcloud_placement_group" {
    defaults = { id = "33" }
  }
  mock_resource "hcloud_server" {
    defaults = { id = "44", ipv4_address = "203.0.113.44" }
  }
}

variables {
  name                = "lab"
  access_cidr         = "192.0.2.0/24"
  ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample you@there"]
  machines = {
    control   = { role = "control-plane", region = "eu", server_type = "ccx13", address = "10.17.5.10" }
    replica-0 = { pool = "replicas", region = "eu", server_type = "ccx23", location = "hel1", address = "10.17.5.11", labels = { "example.org/rack" = "a" } }
  }
}

run "servers" {
  assert {
    condition     = hcloud_server.this["control"].location == "nbg1" && hcloud_server.this["replica-0"].location == "hel1" && hcloud_server.this["replica-0"].server_type == "ccx23"
    error_message = "control is in ${hcloud_server.this["control"].location}, replica-0 in ${hcloud_server.this["replica-0"].location}"
  }
  assert {
    condition     = one(hcloud_server.this["replica-0"].network).ip == "10.17.5.11" && one(hcloud_server.this["replica-0"].network).subnet_id == hcloud_network_subnet.this.id
    error_message = "network: ${jsonencode(hcloud_server.this["replica-0"].network)}"
  }
  assert {
    condition     = tolist(hcloud_server.this["control"].firewall_ids) == tolist([22]) && hcloud_server.this["control"].placement_group_id == 33
    error_message = "the server is in no firewall, or in no group"
  }
  assert {
    condition     = toset([for r in hcloud_firewall.this.rule : r.port]) == toset(["22", "6443"]) && alltrue([for r in hcloud_firewall.this.rule : r.direction == "in" && r.source_ips == toset(["192.0.2.0/24"])])
    error_message = "firewall: ${jsonencode(hcloud_firewall.this.rule)}"
  }
  assert {
    condition     = strcontains(module.cloud_init["replica-0"].user_data, "\"hostname\": \"replica-0\"")
    error_message = "user data: ${module.cloud_init["replica-0"].user_data}"
  }
  assert {
    # As JSON: objects are only equal if their types are, too.
    condition = jsonencode(output.hosts["replica-0"]) == jsonencode({
      address  = "203.0.113.44", user = "assay", port = 22, internal_address = "10.17.5.11", role = "worker", pool = "replicas", region = "eu", zone = null,
      labels   = { "example.org/rack" = "a" },
      instance = "44"
    })
    error_message = "hosts: ${jsonencode(output.hosts)}"
  }
}

# A group spreads ten servers at most.
run "groups_of_ten" {
  variables {
    machines = { for i in range(12) : "node-${format("%02d", i)}" => { pool = "replicas", region = "eu", server_type = "ccx13", address = "10.17.5.${20 + i}" } }
  }
  assert {
    condition     = keys(hcloud_placement_group.this) == ["nbg1-0", "nbg1-1"]
    error_message = "groups: ${jsonencode(keys(hcloud_placement_group.this))}"
  }
}

run "refuses_a_wrong_range" {
  command = plan
  variables {
    access_cidr = "192.0.2.7"
  }
  expect_failures = [var.access_cidr]
}

run "refuses_an_address_elsewhere" {
  command = plan
  variables {
    machines = { a = { pool = "replicas", region = "eu", server_type = "ccx13", address = "10.99.0.1" } }
  }
  expect_failures = [var.machines]
}

run "refuses_an_address_of_the_network" {
  command = plan
  variables {
    machines = { a = { pool = "replicas", region = "eu", server_type = "ccx13", address = "10.17.5.1" } }
  }
  expect_failures = [var.machines]
}

run "refuses_one_address_twice" {
  command = plan
  variables {
    machines = {
      a = { pool = "replicas", region = "eu", server_type = "ccx13", address = "10.17.5.20" }
      b = { pool = "replicas", region = "eu", server_type = "ccx13", address = "10.17.5.20" }
    }
  }
  expect_failures = [var.machines]
}
