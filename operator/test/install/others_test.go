package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// others are services that a cluster already has, and that Assay uses and does not replace: an S3
// server, Prometheus with its operator, Chaos Mesh. All of them really run. The first test that
// needs them installs them, and they are removed after the last test of the process: installing
// takes as long as the other tests.
type others struct {
	prom       *prometheus
	s3         *s3Server
	chaosMesh  bool // runs
	configured bool // the release uses all of them
}

// othersExperiments is the namespace of the experiments that use them.
const othersExperiments = "install-others"

var (
	chaosMeshScript  = filepath.Join(root, "hack", "without-registry", "chaos-mesh", "install.sh")
	prometheusScript = filepath.Join(root, "hack", "without-registry", "prometheus", "install.sh")
)

// withOthers returns the owner of an installation that uses all services of other programs. Chaos
// Mesh itself may still be missing, see withChaosMesh.
func withOthers(t *testing.T) *owner {
	t.Helper()
	o := newOwner(t)
	if o.others.s3 == nil {
		o.others.prom, o.others.s3 = o.withPrometheus(t), o.withS3(t)
		o.openNamespace(t, othersExperiments)
		o.create(t, system(t, "basil", othersExperiments))
	}
	if !o.others.configured {
		o.upgrade(t, chart, "--set=chaosMesh.enabled=true", "--values="+o.others.prom.values, "--values="+o.others.s3.values)
		o.takenOver(t)
		o.others.configured = true
	}
	return o
}

// withChaosMesh is like withOthers, but Chaos Mesh is installed.
func withChaosMesh(t *testing.T) *owner {
	t.Helper()
	o := withOthers(t)
	if !o.others.chaosMesh {
		o.others.chaosMesh = true
		o.insist(t, chaosMeshScript, "up")
	}
	return o
}

// withoutChaosMesh is like newOwner, but the cluster has no Chaos Mesh, and the release may not use
// it.
func withoutChaosMesh(t *testing.T) *owner {
	t.Helper()
	o := newOwner(t)
	if o.others.configured {
		o.upgrade(t, chart)
		o.takenOver(t)
		o.others.configured = false
	}
	o.insist(t, chaosMeshScript, "down") // also the remains of an interrupted run
	o.others.chaosMesh = false
	return o
}

func TestMain(m *testing.M) {
	status := m.Run()
	if err := leaveAll(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: leave the cluster as it was found:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// leaveAll removes the services that the tests installed, and brings the release into the state of
// make deploy.
func leaveAll() error {
	o, err := found()
	if err != nil { // the tests have reported it
		return nil
	}
	defer os.RemoveAll(o.dir)
	if o.others.s3 == nil && o.others.prom == nil && !o.others.chaosMesh {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 4*patience)
	defer stop()
	errs := []error{o.gone(ctx, othersExperiments)} // while there are a manager and Chaos Mesh
	for _, command := range [][]string{{filepath.Join(root, "hack", "deploy.sh"), "install"}, {chaosMeshScript, "down"}, {prometheusScript, "down"}} {
		_, err := o.persist(command[0], command[1:]...)
		errs = append(errs, err)
	}
	for _, obj := range archiveAccess() {
		errs = append(errs, client.IgnoreNotFound(o.Delete(ctx, obj)))
	}
	return errors.Join(append(errs, o.gone(ctx, s3Namespace))...)
}

// gone deletes a namespace with its experiments and waits until it is gone.
func (o *owner) gone(ctx context.Context, name string) error {
	for {
		err := o.abandon(ctx, name)
		there := o.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsNotFound(there) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("namespace %s is left: %w", name, errors.Join(err, there, ctx.Err()))
		case <-time.After(time.Second):
		}
	}
}
