output "user_data" {
  description = "For the platform's user data. No secret: public keys only."
  value       = "#cloud-config\n${yamlencode(local.user_data)}"
}

output "network_config" {
  description = "For cloud-init's NoCloud source; null with DHCP."
  value       = local.network_config == null ? null : yamlencode(local.network_config)
}
