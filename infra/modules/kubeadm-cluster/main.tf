# One Kubernetes cluster of prepared machines, by kubeadm over SSH.
#
# What a secret is never passes through Terraform: a join token is made on the control plane for
# each join, goes from there to the machine through a script's memory on this machine, and is
# deleted when the machine has joined. The kubeconfig is written to a file by a script. The state
# has names, addresses and paths.

locals {
  control_plane = one([for name, h in var.hosts : name if h.role == "control-plane"])
  workers       = { for name, h in var.hosts : name => h if h.role == "worker" }
  cp            = var.hosts[local.control_plane]

  # The nodes' way to the API server, and the operator's. They differ where machines have a network
  # of their own.
  endpoint   = "${local.cp.internal_address == null ? local.cp.address : local.cp.internal_address}:6443"
  api_server = "https://${local.cp.address}:6443"

  ssh = {
    SSH_KEY_FILE    = var.ssh_private_key_file == null ? "" : abspath(pathexpand(var.ssh_private_key_file))
    SSH_KNOWN_HOSTS = abspath(pathexpand(var.ssh.known_hosts_file == null ? "${path.root}/known_hosts" : var.ssh.known_hosts_file))
    SSH_JUMP        = var.ssh.proxy_jump
    SSH_WAIT        = tostring(var.ssh.wait_seconds)
    SSH_DEAD        = tostring(var.ssh.dead_seconds)
  }
  # A host in a script's environment, under a prefix: see ../ssh-nodes/scripts/lib.sh.
  as = { for prefix in ["NODE", "CP"] : prefix => { for name, h in var.hosts : name => {
    "${prefix}_NAME"     = name
    "${prefix}_ADDRESS"  = h.address
    "${prefix}_PORT"     = tostring(h.port)
    "${prefix}_USER"     = h.user
    "${prefix}_HOST_KEY" = h.host_key == null ? "" : h.host_key
  } } }

  # kubeadm's configuration, without what belongs to one node: remote/init.sh adds that.
  cluster_configuration = join("---\n", [for d in [
    {
      apiVersion           = "kubeadm.k8s.io/v1beta4"
      kind                 = "ClusterConfiguration"
      clusterName          = var.name
      kubernetesVersion    = "v${var.kubernetes_version}"
      controlPlaneEndpoint = local.endpoint
      networking           = { podSubnet = var.pod_cidr, serviceSubnet = var.service_cidr }
      apiServer            = { certSANs = distinct(compact([local.cp.address, local.cp.internal_address])) }
    },
    merge({ apiVersion = "kubelet.config.k8s.io/v1beta1", kind = "KubeletConfiguration" }, var.kubelet_configuration),
    merge({ apiVersion = "kubeproxy.config.k8s.io/v1alpha1", kind = "KubeProxyConfiguration" }, var.kube_proxy_configuration),
  ] : yamlencode(d)])

  preflight = join(",", var.ignore_preflight_errors)
}

resource "terraform_data" "control_plane" {
  input = merge(local.as["NODE"][local.control_plane], local.ssh)
  # What cannot be changed in a cluster that exists.
  triggers_replace = { for k, v in {
    address      = local.cp.address
    port         = local.cp.port
    instance     = local.cp.instance
    endpoint     = local.endpoint
    pod_cidr     = var.pod_cidr
    service_cidr = var.service_cidr
  } : k => v if v != null }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/init.sh"
    environment = merge(self.input, {
      CONFIGURATION = local.cluster_configuration
      VERSION       = var.kubernetes_version
      INTERNAL      = local.cp.internal_address == null ? "" : local.cp.internal_address
      POD_CIDR      = var.pod_cidr
      PREFLIGHT     = local.preflight
    })
    quiet = true
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = ["bash"]
    command     = "${path.module}/scripts/end.sh"
    environment = self.input
    quiet       = true
  }
}

resource "terraform_data" "kubeconfig" {
  input            = abspath(pathexpand(var.kubeconfig_file))
  triggers_replace = { cluster = terraform_data.control_plane.id, file = abspath(pathexpand(var.kubeconfig_file)) }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/kubeconfig.sh"
    environment = merge(local.as["CP"][local.control_plane], local.ssh, { KUBECONFIG_FILE = self.input, SERVER = local.api_server, CLUSTER = var.name })
    quiet       = true
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = ["bash", "-c"]
    command     = "rm -f \"$FILE\""
    environment = { FILE = self.input }
    quiet       = true
  }
}

resource "terraform_data" "pod_network" {
  triggers_replace = {
    cluster  = terraform_data.control_plane.id
    manifest = startswith(var.pod_network, "https://") ? var.pod_network : filesha256(pathexpand(var.pod_network))
  }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/pod-network.sh"
    environment = merge(local.as["CP"][local.control_plane], local.ssh, {
      MANIFEST = startswith(var.pod_network, "https://") ? var.pod_network : abspath(pathexpand(var.pod_network))
      POD_CIDR = var.pod_cidr
    })
    quiet = true
  }
}

resource "terraform_data" "node" {
  for_each = local.workers

  input = merge(local.as["NODE"][each.key], local.as["CP"][local.control_plane], local.ssh, { DRAIN = tostring(var.drain_seconds) })
  triggers_replace = { for k, v in {
    cluster  = terraform_data.control_plane.id
    address  = each.value.address
    port     = each.value.port
    instance = each.value.instance
  } : k => v if v != null }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/join.sh"
    environment = merge(self.input, {
      ENDPOINT  = local.endpoint
      VERSION   = var.kubernetes_version
      INTERNAL  = each.value.internal_address == null ? "" : each.value.internal_address
      TAINTS    = jsonencode(each.value.node_taints)
      POD_CIDR  = var.pod_cidr
      PREFLIGHT = local.preflight
    })
    quiet = true
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = ["bash"]
    command     = "${path.module}/scripts/leave.sh"
    environment = self.input
    quiet       = true
  }

  # A node is Ready only with a network.
  depends_on = [terraform_data.pod_network]
}

# Labels and taints can change while a node stays.
resource "terraform_data" "labels" {
  for_each = var.hosts

  triggers_replace = {
    node     = each.key == local.control_plane ? terraform_data.control_plane.id : terraform_data.node[each.key].id
    labels   = each.value.node_labels
    taints   = each.value.node_taints
    prepared = each.value.revision
  }

  provisioner "local-exec" {
    interpreter = ["bash"]
    command     = "${path.module}/scripts/label.sh"
    environment = merge(local.as["NODE"][each.key], local.as["CP"][local.control_plane], local.ssh, {
      LABELS = join("\n", [for k, v in each.value.node_labels : "${k}=${v}"])
      TAINTS = join("\n", [for t in each.value.node_taints : "${t.key}=${t.value}:${t.effect}"])
    })
    quiet = true
  }
}
