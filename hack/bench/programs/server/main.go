// Command server is the target of benchmark programs: HTTP on one address, and the gRPC health
// service on another. Both answer at once.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

func main() {
	overHTTP := flag.String("http", "127.0.0.1:18080", "the address of HTTP")
	overGRPC := flag.String("grpc", "127.0.0.1:18081", "the address of gRPC")
	flag.Parse()
	l, err := net.Listen("tcp", *overGRPC)
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	go func() { log.Fatal(s.Serve(l)) }()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	log.Fatal(http.ListenAndServe(*overHTTP, nil))
}
