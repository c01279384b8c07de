output "hosts" {
  description = "The instances as hosts of infra/README.md. They may still be booting."
  value = { for name, m in var.machines : name => {
    address          = var.floating_ips ? openstack_networking_floatingip_v2.this[name].address : openstack_networking_port_v2.this[name].all_fixed_ips[0]
    user             = var.user
    port             = 22
    internal_address = openstack_networking_port_v2.this[name].all_fixed_ips[0]
    role             = m.role
    pool             = m.pool
    region           = m.region
    zone             = m.zone
    labels           = m.labels
    instance         = openstack_compute_instance_v2.this[name].id
  } }
  # Not before there is somebody to talk to, and a way. The way also stays until machines are given
  # back: destroy goes in the opposite order.
  depends_on = [
    openstack_compute_instance_v2.this,
    openstack_networking_floatingip_associate_v2.this,
    openstack_networking_router_interface_v2.this,
    openstack_networking_secgroup_rule_v2.access,
    openstack_networking_secgroup_rule_v2.inside,
  ]
}
