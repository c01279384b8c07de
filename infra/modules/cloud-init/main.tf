# What a new machine is told at its first boot: who may log in, its name, its address. Not more:
# packages, kernel settings and Kubernetes are ssh-nodes' work, which is the same for machines that
# nobody created here, and which can be repeated.
#
# Written by yamlencode, so that no value can become syntax.

locals {
  user_data = {
    hostname          = var.name
    preserve_hostname = false
    # kubeadm wants the name to resolve.
    manage_etc_hosts = true
    users = [{
      name                = var.user
      shell               = "/bin/bash"
      sudo                = "ALL=(ALL) NOPASSWD:ALL"
      lock_passwd         = true
      ssh_authorized_keys = [for k in var.ssh_authorized_keys : trimspace(k)]
    }]
    ssh_pwauth   = false
    disable_root = true
    # On the console, for whoever waits without a network.
    final_message = "assay: ${var.name} is up after $UPTIME s"
  }

  network_config = var.network == null ? null : {
    version = 2
    ethernets = {
      main = merge(
        {
          match     = { macaddress = lower(var.network.mac) }
          dhcp4     = false
          addresses = [var.network.address]
        },
        var.network.gateway == null ? {} : { routes = [{ to = "0.0.0.0/0", via = var.network.gateway }] },
        length(var.network.dns) == 0 ? {} : { nameservers = { addresses = var.network.dns } },
      )
    }
  }
}
