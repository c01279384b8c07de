output "hosts" {
  description = "The servers as hosts of infra/README.md. They may still be booting."
  value = { for name, m in var.machines : name => {
    address          = hcloud_server.this[name].ipv4_address
    user             = var.user
    port             = 22
    internal_address = m.address
    role             = m.role
    pool             = m.pool
    region           = m.region
    zone             = m.zone
    labels           = m.labels
    instance         = hcloud_server.this[name].id
  } }
}
