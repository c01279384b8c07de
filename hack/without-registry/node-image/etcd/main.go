// Command etcd is etcd's own server. It exists because etcd's module has
// replace directives, with which `go install` refuses to build it by version.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
