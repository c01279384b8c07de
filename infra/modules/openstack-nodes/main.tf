# Instances, virtual or bare metal (Ironic): a port with a fixed address, user data, and if asked
# for a floating IP.

module "cloud_init" {
  source   = "../cloud-init"
  for_each = var.machines

  name                = each.key
  user                = var.user
  ssh_authorized_keys = var.ssh_authorized_keys
}

resource "openstack_networking_port_v2" "this" {
  for_each = var.machines

  name           = "${var.name}-${each.key}"
  network_id     = local.network_id
  admin_state_up = true

  # A physical switch port filters nothing: Ironic's networks refuse or ignore groups.
  no_security_groups = each.value.bare_metal ? true : null
  security_group_ids = each.value.bare_metal ? null : [openstack_networking_secgroup_v2.this.id]

  fixed_ip {
    subnet_id  = local.subnet_id
    ip_address = each.value.address
  }

  # Packets of pods have the pods' addresses, which the cloud takes for forged otherwise. Nothing
  # filters bare metal.
  dynamic "allowed_address_pairs" {
    for_each = each.value.bare_metal ? [] : [var.pod_cidr]
    content {
      ip_address = allowed_address_pairs.value
    }
  }
}

# Not on one hypervisor, where that is possible: neighbours would be measured with them. Bare metal
# has no neighbours.
resource "openstack_compute_servergroup_v2" "this" {
  count = anytrue([for m in var.machines : !m.bare_metal]) ? 1 : 0

  name     = var.name
  policies = ["soft-anti-affinity"]
}

data "openstack_images_image_v2" "this" {
  name        = var.image
  most_recent = true
}

resource "openstack_compute_instance_v2" "this" {
  for_each = var.machines

  name              = "${var.name}-${each.key}"
  flavor_name       = each.value.flavor
  image_id          = each.value.volume_gib == null ? data.openstack_images_image_v2.this.id : null
  availability_zone = each.value.availability_zone
  user_data         = module.cloud_init[each.key].user_data
  # The metadata service need not be reachable, which it often is not from bare metal.
  config_drive = true

  network {
    port = openstack_networking_port_v2.this[each.key].id
  }

  dynamic "block_device" {
    for_each = each.value.volume_gib == null ? [] : [each.value.volume_gib]
    content {
      uuid                  = data.openstack_images_image_v2.this.id
      source_type           = "image"
      destination_type      = "volume"
      volume_size           = block_device.value
      boot_index            = 0
      delete_on_termination = true
    }
  }

  dynamic "scheduler_hints" {
    for_each = each.value.bare_metal ? [] : [openstack_compute_servergroup_v2.this[0].id]
    content {
      group = scheduler_hints.value
    }
  }

  # Ironic cleans, writes a whole disk and boots through the firmware's self-test.
  timeouts {
    create = each.value.bare_metal ? "60m" : "20m"
    delete = each.value.bare_metal ? "60m" : "20m"
  }

  lifecycle {
    # A newer image of the same name is no reason to replace a machine.
    ignore_changes = [image_id, block_device[0].uuid]
  }
}

resource "openstack_networking_floatingip_v2" "this" {
  for_each = var.floating_ips ? var.machines : {}

  pool        = var.network.external_network
  description = "${var.name}-${each.key}"
}

resource "openstack_networking_floatingip_associate_v2" "this" {
  for_each = var.floating_ips ? var.machines : {}

  floating_ip = openstack_networking_floatingip_v2.this[each.key].address
  port_id     = openstack_networking_port_v2.this[each.key].id

  # No address before there is a way to it, no instance removed while it is used.
  depends_on = [openstack_networking_router_interface_v2.this, openstack_compute_instance_v2.this]
}
