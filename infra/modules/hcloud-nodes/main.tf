# Servers of a Hetzner Cloud project, on a private network of their own, which is what is measured.

locals {
  # A spread group keeps at most ten servers on different hosts.
  group_size = 10
  of_location = {
    for location in toset([for m in var.machines : m.location]) :
    location => sort([for name, m in var.machines : name if m.location == location])
  }
  group_of = merge([for location, names in local.of_location : { for i, name in names : name => "${location}-${floor(i / local.group_size)}" }]...)
}

module "cloud_init" {
  source   = "../cloud-init"
  for_each = var.machines

  name                = each.key
  user                = var.user
  ssh_authorized_keys = var.ssh_authorized_keys
}

resource "hcloud_network" "this" {
  name     = var.name
  ip_range = var.network.cidr
}

resource "hcloud_network_subnet" "this" {
  network_id   = hcloud_network.this.id
  type         = "cloud"
  network_zone = var.network.zone
  ip_range     = var.network.cidr
}

# It filters what comes from the internet. Hetzner does not filter the private network.
resource "hcloud_firewall" "this" {
  name = var.name

  dynamic "rule" {
    for_each = { ssh = 22, api-server = 6443 }
    content {
      description = rule.key
      direction   = "in"
      protocol    = "tcp"
      port        = tostring(rule.value)
      source_ips  = [var.access_cidr]
    }
  }
}

# Not on one host, where that is possible: neighbours would be measured with them.
resource "hcloud_placement_group" "this" {
  for_each = toset(values(local.group_of))

  name = "${var.name}-${each.key}"
  type = "spread"
}

resource "hcloud_server" "this" {
  for_each = var.machines

  name               = "${var.name}-${each.key}"
  server_type        = each.value.server_type
  image              = var.image
  location           = each.value.location
  user_data          = module.cloud_init[each.key].user_data
  firewall_ids       = [hcloud_firewall.this.id]
  placement_group_id = hcloud_placement_group.this[local.group_of[each.key]].id

  public_net {
    ipv4_enabled = true
    ipv6_enabled = false
  }

  network {
    subnet_id = hcloud_network_subnet.this.id
    ip        = each.value.address
    alias_ips = [] # left out, Terraform attaches the network anew at each apply
  }

  lifecycle {
    # A newer image of the same name is no reason to replace a machine.
    ignore_changes = [image]
  }
}
