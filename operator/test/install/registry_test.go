package install

import (
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// On the ordinary path docker pulls the nodes' image. Here a registry of this machine has the image
// of the cluster at hand, under the name that kind's own image has on Docker Hub.
func TestNodesAreOfARegistry(t *testing.T) {
	o := newOwner(t)
	cluster := func(registry, verb string) (string, error) {
		with := *o
		with.env = append(slices.Clone(o.env), "CLUSTER=pulled", "WORKERS=0", "NODE_SOURCE=pull", "NODE_REGISTRY="+registry)
		return with.try(filepath.Join(root, "hack", "cluster", "cluster.sh"), verb)
	}
	built := strings.Fields(o.run(t, "docker", "ps", "--filter", "label=io.x-k8s.kind.cluster=assay", "--format", "{{.Image}}"))
	if len(built) == 0 {
		t.Skip("these tests use another cluster than that of make cluster")
	}
	_, version, _ := strings.Cut(built[0], ":v")
	version, _, _ = strings.Cut(version, "-")
	host := serveImages(t)
	pulled := host + "/kindest/node:v" + version

	began := time.Now()
	out, err := cluster(host, "up")
	if err == nil || !strings.Contains(out+err.Error(), "no registry answers for "+pulled) || !strings.Contains(out+err.Error(), "NODE_SOURCE=pull, but") {
		t.Errorf("a registry without the image: %v: %s", err, out)
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("it took %v to find that the registry does not have the image", d.Round(time.Second))
	}

	o.run(t, "docker", "tag", built[0], pulled)
	t.Cleanup(func() { _, _ = o.try("docker", "rmi", pulled) })
	o.run(t, "docker", "push", "--quiet", pulled)
	o.run(t, "docker", "rmi", pulled) // so that docker must ask the registry
	t.Cleanup(func() {
		if out, err := cluster(host, "down"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	began = time.Now()
	if out, err := cluster(host, "up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("the cluster of a pulled image was ready after %v", time.Since(began).Round(time.Second))
	if image := o.run(t, "docker", "inspect", "--format", "{{.Config.Image}}", "pulled-control-plane"); strings.TrimSpace(image) != pulled {
		t.Errorf("the node runs %s, want %s", strings.TrimSpace(image), pulled)
	}
	config := filepath.Join(root, ".work", "kubeconfig-pulled")
	if nodes := o.run(t, "kubectl", "--kubeconfig", config, "get", "nodes", "--no-headers"); !strings.Contains(nodes, " Ready ") || !strings.Contains(nodes, "v"+version) {
		t.Errorf("the cluster's nodes: %s", nodes)
	}
}

// serveImages serves an empty registry on this machine until the test ends. It returns host and
// port.
func serveImages(t *testing.T) string {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir()))), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(at) }()
	t.Cleanup(func() { _ = server.Close() })
	_, port, err := net.SplitHostPort(at.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}
