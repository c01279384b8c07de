output "hosts" {
  description = "The machines as hosts of infra/README.md. They may still be booting."
  value = { for name, m in var.machines : name => {
    address          = m.address
    user             = var.user
    port             = 22
    internal_address = m.address
    role             = m.role
    pool             = m.pool
    region           = m.region
    zone             = m.zone
    labels           = m.labels
    instance         = libvirt_domain.this[name].id
  } }
  # Not before there is somebody to talk to.
  depends_on = [libvirt_domain.this]
}

output "domains" {
  description = "libvirt's names of the machines, for virsh."
  value       = { for name, d in libvirt_domain.this : name => d.name }
}
