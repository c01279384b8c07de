# Virtual machines on one libvirt host: a disk for each, which is a difference to the image's one
# copy, a cloud-init disk, a fixed address.

locals {
  made_here = var.network.bridge == null
  gateway   = local.made_here ? coalesce(var.network.gateway, cidrhost(var.network.cidr, 1)) : var.network.gateway
  prefix    = split("/", var.network.cidr)[1]
  # 52:54:00 is the prefix for qemu's machines. The rest follows from the names, so that it stays
  # the same.
  mac = { for name, _ in var.machines : name => join(":", concat(["52", "54", "00"], regexall("..", substr(md5("${var.name}/${name}"), 0, 6)))) }
}

module "cloud_init" {
  source   = "../cloud-init"
  for_each = var.machines

  name                = each.key
  user                = var.user
  ssh_authorized_keys = var.ssh_authorized_keys
  network = {
    mac     = local.mac[each.key]
    address = "${each.value.address}/${local.prefix}"
    gateway = local.gateway
    dns     = var.network.dns
  }
}

resource "libvirt_network" "this" {
  count = local.made_here ? 1 : 0

  name      = var.name
  mode      = "nat"
  addresses = [var.network.cidr]
  autostart = true

  # The machines have fixed addresses: the host needs no dnsmasq.
  dhcp {
    enabled = false
  }
  dns {
    enabled = false
  }
}

resource "libvirt_volume" "image" {
  name   = "${var.name}-image"
  pool   = var.storage_pool
  source = var.image
  format = var.image_format
}

resource "libvirt_volume" "disk" {
  for_each = var.machines

  name           = "${var.name}-${each.key}"
  pool           = var.storage_pool
  base_volume_id = libvirt_volume.image.id
  size           = each.value.disk_gib * 1024 * 1024 * 1024
  format         = "qcow2"
}

resource "libvirt_cloudinit_disk" "this" {
  for_each = var.machines

  name           = "${var.name}-${each.key}-init.iso"
  pool           = var.storage_pool
  user_data      = module.cloud_init[each.key].user_data
  network_config = module.cloud_init[each.key].network_config
  meta_data      = yamlencode({ instance-id = "${var.name}-${each.key}", local-hostname = each.key })
}

resource "libvirt_domain" "this" {
  for_each = var.machines

  name      = "${var.name}-${each.key}"
  type      = var.virtualization
  vcpu      = each.value.vcpus
  memory    = each.value.memory_mib
  autostart = true
  cloudinit = libvirt_cloudinit_disk.this[each.key].id

  cpu {
    # The host's own CPU under kvm, so that a result's provenance names it; everything that can be
    # emulated otherwise.
    mode = var.virtualization == "kvm" ? "host-passthrough" : "maximum"
  }

  disk {
    volume_id = libvirt_volume.disk[each.key].id
  }

  network_interface {
    network_id = local.made_here ? libvirt_network.this[0].id : null
    bridge     = var.network.bridge
    mac        = upper(local.mac[each.key])
  }

  # Cloud images log to the first serial port.
  console {
    type        = "pty"
    target_type = "serial"
    target_port = "0"
  }
}
