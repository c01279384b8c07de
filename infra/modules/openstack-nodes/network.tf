# A network of the cluster's own, unless one is given; who may talk to the instances.

locals {
  made_here  = var.network.network_id == null
  network_id = local.made_here ? openstack_networking_network_v2.this[0].id : var.network.network_id
  subnet_id  = local.made_here ? openstack_networking_subnet_v2.this[0].id : var.network.subnet_id
  routed     = local.made_here && var.network.external_network != null
}

resource "openstack_networking_network_v2" "this" {
  count = local.made_here ? 1 : 0

  name = var.name
}

resource "openstack_networking_subnet_v2" "this" {
  count = local.made_here ? 1 : 0

  name            = var.name
  network_id      = local.network_id
  cidr            = var.network.cidr
  ip_version      = 4
  dns_nameservers = var.network.dns
}

data "openstack_networking_network_v2" "external" {
  count = var.network.external_network == null ? 0 : 1

  name     = var.network.external_network
  external = true
}

resource "openstack_networking_router_v2" "this" {
  count = local.routed ? 1 : 0

  name                = var.name
  external_network_id = data.openstack_networking_network_v2.external[0].id
}

resource "openstack_networking_router_interface_v2" "this" {
  count = local.routed ? 1 : 0

  router_id = openstack_networking_router_v2.this[0].id
  subnet_id = local.subnet_id
}

resource "openstack_networking_secgroup_v2" "this" {
  name        = var.name
  description = "Nodes of the cluster ${var.name}"
}

# Among nodes and pods everything. By range and not by group: bare metal is in no group.
resource "openstack_networking_secgroup_rule_v2" "inside" {
  for_each = toset([var.network.cidr, var.pod_cidr])

  security_group_id = openstack_networking_secgroup_v2.this.id
  direction         = "ingress"
  ethertype         = "IPv4"
  remote_ip_prefix  = each.value
}

resource "openstack_networking_secgroup_rule_v2" "access" {
  for_each = { ssh = 22, api-server = 6443 }

  security_group_id = openstack_networking_secgroup_v2.this.id
  description       = each.key
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = each.value
  port_range_max    = each.value
  remote_ip_prefix  = var.access_cidr
}
