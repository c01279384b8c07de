# Machines that answer SSH are checked, prepared, and put back as they were when they are released.
#
# Everything goes through the operator's own ssh: host keys are verified, agents, jump hosts and
# ~/.ssh/config work, and messages can say what to do. The state holds names, addresses and the key
# file's path, no secret.

locals {
  known_hosts = abspath(pathexpand(var.ssh.known_hosts_file == null ? "${path.root}/known_hosts" : var.ssh.known_hosts_file))

  # What the scripts know of a host, in their environment.
  connection = {
    for name, h in var.hosts : name => {
      NODE_NAME       = name
      NODE_ADDRESS    = h.address
      NODE_PORT       = tostring(h.port)
      NODE_USER       = h.user
      NODE_HOST_KEY   = h.host_key == null ? "" : h.host_key
      SSH_KEY_FILE    = var.ssh_private_key_file == null ? "" : abspath(pathexpand(var.ssh_private_key_file))
      SSH_KNOWN_HOSTS = local.known_hosts
      SSH_JUMP        = var.ssh.proxy_jump
      SSH_WAIT        = tostring(var.ssh.wait_seconds)
      SSH_DEAD        = tostring(var.ssh.dead_seconds)
    }
  }

  p = var.preparation
  settings = {
    SMT                = local.p.smt
    TURBO              = local.p.turbo
    GOVERNOR           = local.p.governor
    HUGE_PAGES         = local.p.huge_pages == null ? "unchanged" : tostring(local.p.huge_pages)
    NOFILE             = local.p.nofile == null ? "unchanged" : tostring(local.p.nofile)
    SWAP               = local.p.swap
    TIME_SYNC          = local.p.time_sync
    NTP_SERVERS        = join(" ", local.p.ntp_servers)
    MODULES            = join(" ", local.p.kernel_modules)
    STRICT             = tostring(local.p.strict)
    SOFTWARE           = local.p.software
    KUBERNETES_REPO    = local.p.kubernetes_repository
    CONTAINERD_REPO    = local.p.containerd_repository
    KUBERNETES_VERSION = var.kubernetes_version
    IMAGE_ARCHIVES     = join("\n", [for f in local.p.image_archives : abspath(pathexpand(f))])
  }

  # A machine is prepared again when what is asked of it changed, or how it is done. Where an
  # archive lies does not matter.
  revision = sha256(jsonencode([
    { for k, v in local.settings : k => v if k != "IMAGE_ARCHIVES" },
    [for f in local.p.image_archives : filesha256(pathexpand(f))],
    [for f in sort(fileset(path.module, "{scripts,remote}/*")) : filesha256("${path.module}/${f}")],
  ]))
}

# The machine itself. Making it only looks, and notes the host's name last, so that there is nothing
# to undo when that fails: Terraform runs no destroy provisioner of a resource whose creation
# failed. Hence preparing is a resource of its own, and undoing everything is here.
resource "terraform_data" "machine" {
  for_each = var.hosts

  input = local.connection[each.key]
  # Without a null, which a state from before there were instances does not have.
  triggers_replace = { for k, v in { address = each.value.address, port = each.value.port, instance = each.value.instance } : k => v if v != null }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/check.sh"
    environment = merge(self.input, { SUPPORTED_OS = join(" ", local.p.supported_os) })
    quiet       = true
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = ["bash"]
    command     = "${path.module}/scripts/release.sh"
    environment = self.input
    quiet       = true
  }
}

resource "terraform_data" "prepared" {
  for_each = var.hosts

  triggers_replace = { machine = terraform_data.machine[each.key].id, revision = local.revision }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/prepare.sh"
    environment = merge(local.connection[each.key], local.settings)
    quiet       = true
  }
}
