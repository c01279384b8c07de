# Two regions, as the smoke profile of experiments/failure-fp.yaml can be played with: replicas on two nodes, clients on a third.

pools = {
  replicas = {}
  clients  = {}
}

regions = ["us-east-1", "eu-west-1"]

workers = [
  { pool = "replicas", region = "us-east-1" },
  { pool = "replicas", region = "eu-west-1" },
  { pool = "clients", region = "us-east-1" },
]
