terraform {
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 1.54.1, < 4.0.0"
    }
  }
}
