// Command s3 is a real S3 server for tests and small clusters: versitygw, which keeps each object
// in a file. It is not for data that anybody would miss.
//
//	s3 -data DIR -listen HOST:PORT [-bucket NAME]... [-virtual-domain DOMAIN] [-cert FILE -key FILE]
//
// The access key and its secret are ROOT_ACCESS_KEY and ROOT_SECRET_KEY of the environment. Buckets
// are made when they are not there. GET /health answers 200 when it serves. It writes below DIR
// only: objects in DIR/objects, what S3 knows of them beside their content in DIR/meta, so that the
// file system need not have extended attributes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The most connections and requests at a time.
const (
	connections = 512
	requests    = 256
	maxParts    = 10_000
)

type options struct {
	data, listen, domain, cert, key string
	buckets                         []string
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "directory that everything is kept in; required")
	flag.StringVar(&o.listen, "listen", ":9000", "address to listen on")
	flag.StringVar(&o.domain, "virtual-domain", "", "serve buckets as BUCKET.DOMAIN, too")
	flag.StringVar(&o.cert, "cert", "", "file with the certificate; empty: plain HTTP")
	flag.StringVar(&o.key, "key", "", "file with the certificate's key")
	flag.Func("bucket", "bucket to make when it is not there; may be given several times", func(name string) error {
		if name == "" || strings.ContainsAny(name, "/.") {
			return errors.New("a bucket's name here is letters, digits and dashes")
		}
		o.buckets = append(o.buckets, name)
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, o options) error {
	if o.data == "" {
		return errors.New("-data is empty; name a directory")
	}
	access, secret := os.Getenv("ROOT_ACCESS_KEY"), os.Getenv("ROOT_SECRET_KEY")
	if access == "" || secret == "" {
		return errors.New("ROOT_ACCESS_KEY or ROOT_SECRET_KEY is empty; set both")
	}
	data, err := filepath.Abs(o.data)
	if err != nil {
		return err
	}
	objects, about := filepath.Join(data, "objects"), filepath.Join(data, "meta")
	folders := []string{objects, about}
	for _, b := range o.buckets {
		folders = append(folders, filepath.Join(objects, b))
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	files, err := openFiles(objects, about)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, files, &embedgw.Config{
		RootUserAccess: access, RootUserSecret: secret, Region: "us-east-1",
		Ports: []string{o.listen}, CertFile: o.cert, KeyFile: o.key, VirtualDomain: o.domain,
		MaxConnections: connections, MaxRequests: requests, MultipartMaxParts: maxParts,
		KeepAlive: true, Quiet: true, HealthPath: "/health", DisableACLs: true,
	})
}

// openFiles makes the back end; the sidecar directory holds each object's metadata.
func openFiles(objects, about string) (backend.Backend, error) {
	sidecar, err := meta.NewSideCar(about)
	if err != nil {
		return nil, err
	}
	return posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: about})
}
