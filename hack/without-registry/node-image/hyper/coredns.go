package main

// coredns answers the names of Services, with the plugins that the Corefile of
// kubeadm names and no others: CoreDNS's own list has the clients of three
// clouds, which are most of the time of its build.

import (
	"flag"
	"log"
	"os"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/core/dnsserver" // caddy's server type "dns"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log" // for who looks for the cause of a failure
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics" // "prometheus" in a Corefile
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func runCoreDNS() {
	log.SetFlags(0) // as CoreDNS's own main
	log.SetOutput(os.Stdout)
	flags := flag.NewFlagSet("coredns", flag.ExitOnError)
	file := flags.String("conf", "Corefile", "Corefile to load")
	_ = flags.Parse(os.Args[1:]) // it exits when it fails
	caddy.Quiet = true
	caddy.TrapSignals()
	// The plugin "reload" loads by this loader again.
	caddy.RegisterCaddyfileLoader("conf", caddy.LoaderFunc(func(server string) (caddy.Input, error) {
		contents, err := os.ReadFile(*file)
		return caddy.CaddyfileInput{Contents: contents, Filepath: *file, ServerTypeName: server}, err
	}))
	input, err := caddy.LoadCaddyfile("dns")
	if err != nil {
		log.Fatal(err)
	}
	instance, err := caddy.Start(input)
	if err != nil {
		log.Fatal(err)
	}
	instance.Wait()
}
