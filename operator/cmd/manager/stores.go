package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no certificate authorities, and a store may be on the Internet
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"assay.dev/assay/operator/internal/manager/cacheopts"
	"assay.dev/assay/operator/internal/manager/controller/archive"
	"assay.dev/assay/operator/internal/manager/steady"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
)

// storeKinds are the kinds of stores that an installation can list. docs/extending.md says how one
// is added.
var storeKinds = map[string]store.Open{"S3": s3.Open}

// storeOptions say where the result stores are described; load reads them.
type storeOptions struct {
	list, secrets string
	registry      *store.Registry
}

func (o *storeOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.list, "result-stores", "", "file that lists the stores that results may be put in; default: results stay in the cluster")
	f.StringVar(&o.secrets, "result-store-secrets", "/etc/assay/stores", "directory with one directory for each store, with accessKeyID, secretAccessKey and, if its server needs it, ca.crt")
}

// load reads the stores. It sends no request to their servers: a manager must start without them.
func (o *storeOptions) load() (err error) {
	o.registry, err = store.Load(o.list, o.secrets, storeKinds)
	return err
}

// desk takes the files that agents hand over.
func (o *storeOptions) desk(mgr ctrl.Manager, namespaces []string) *archive.UploadHandler {
	return &archive.UploadHandler{Client: mgr.GetClient(), Reader: cacheopts.Reader(mgr.GetAPIReader(), namespaces...), Stores: o.registry}
}

// addArchive wires the parts that put results into stores.
func addArchive(mgr ctrl.Manager, o options) error {
	stores, namespaces := o.stores.registry, o.namespaces
	reader := cacheopts.Reader(mgr.GetAPIReader(), namespaces...)
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the programs of the image: %w", err)
	}
	gates := &archive.Gates{Clock: clock.RealClock{}}
	trials := &archive.Trials{
		Client: mgr.GetClient(), Reader: reader, Clock: steady.New(), Recorder: mgr.GetEventRecorder("assay"), Stores: stores, Gates: gates,
	}
	if err := trials.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the archive of trials: %w", err)
	}
	experiments := &archive.Experiments{Client: mgr.GetClient(), Reader: reader, Clock: steady.New(), Stores: stores, Gates: gates, Bundle: bundler(filepath.Join(filepath.Dir(own), "live-page"))}
	if err := experiments.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the archive of experiments: %w", err)
	}
	return nil
}

// bundler runs a program of the manager's image that writes bundles: see operator/cmd/live-page. A
// report needs several packages that a manager does not need otherwise.
func bundler(program string) func(ctx context.Context, stored corev1.ConfigMap, w io.Writer) error {
	return func(ctx context.Context, stored corev1.ConfigMap, w io.Writer) error {
		given, err := json.Marshal(stored)
		if err != nil {
			return fmt.Errorf("encode the results: %w", err)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "bundle") // #nosec G204 -- a program of the image
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(given), w, &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s bundle: %w: %s", program, err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	}
}
