terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    # 0.9 is a rewrite with other resources' arguments.
    libvirt = {
      source  = "dmacvicar/libvirt"
      version = "~> 0.8.3"
    }
  }
}
