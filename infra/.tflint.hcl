# All rules that come with tflint; those of clouds' providers would have to be downloaded.
plugin "terraform" {
  enabled = true
  preset  = "all"
}
