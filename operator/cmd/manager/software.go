package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// softwareTimeout bounds each of the two requests, because results do not wait for the answers.
const softwareTimeout = 5 * time.Second

// software finds out the versions of the programs that carry trials out: this manager, its image,
// and the API server.
type software struct {
	// reader reads past the cache.
	reader client.Reader
	// pod is this manager's own pod, found by its host name.
	pod    client.ObjectKey
	server func(ctx context.Context) (version string, err error)

	mu    sync.Mutex
	image string // "" until it has been read
}

func newSoftware(mgr ctrl.Manager, namespace string) *software {
	host, _ := os.Hostname() // without a host name no pod is found, which is logged
	return &software{
		reader: mgr.GetAPIReader(), pod: client.ObjectKey{Namespace: namespace, Name: host},
		server: func(ctx context.Context) (string, error) { return serverVersion(ctx, mgr) },
	}
}

// serverVersion asks the API server for its version.
func serverVersion(ctx context.Context, mgr ctrl.Manager) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return "", err
	}
	raw, err := d.RESTClient().Get().AbsPath("/version").Do(ctx).Raw() // the client's own method takes no context
	if err != nil {
		return "", err
	}
	var v version.Info
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", fmt.Errorf("read the version of the API server: %w", err)
	}
	return v.GitVersion, nil
}

// describe returns the known facts. A fact that cannot be read stays empty, since results do not
// wait for it. It asks the API server each time, which may be upgraded while the manager runs. The
// manager's own image stays the same.
func (s *software) describe(ctx context.Context) *results.Software {
	ctx, cancel := context.WithTimeout(ctx, softwareTimeout)
	defer cancel()
	found := &results.Software{Manager: buildinfo.Version(), ManagerImage: s.ownImage(ctx)}
	version, err := s.server(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The results do not name the version of Kubernetes", "error", err.Error())
	}
	found.Kubernetes = version
	return found
}

// ownImage is the ID of the image that this manager runs.
func (s *software) ownImage(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image != "" {
		return s.image
	}
	pod := &corev1.Pod{}
	if err := s.reader.Get(ctx, s.pod, pod); err != nil {
		log.FromContext(ctx).V(1).Info("The results do not name the manager's image", "pod", s.pod, "error", err.Error())
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses { // the manager is the only container of its pod
		s.image = c.ImageID
	}
	return s.image
}
