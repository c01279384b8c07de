package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// datasetsFolder is where the chart keeps data sets on nodes.
const datasetsFolder = "/var/lib/assay/datasets"

// The steps of "Remove" in docs/guide/install.md leave no object of any kind, none of the four
// kinds, no results, and no byte of a data set on a node.
func TestRemovalLeavesNothing(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	const ns = "install-gone"
	o.makeNamespace(t, ns)
	o.upgrade(t, chart, "--set=datasets.namespaces={"+ns+"}")
	exp := o.applyTabled(t, ns)
	o.complete(t, exp, 1)
	if files := o.onNodes(t); len(files) == 0 {
		t.Fatal("no node has a file of the data set")
	}
	if len(o.results(t, ns)) == 0 {
		t.Fatal("the experiment left no results")
	}

	o.run(t, "kubectl", "delete", "experiments.assay.dev,datasets.assay.dev", "--all", "--all-namespaces", "--timeout=5m")
	if files := o.onNodes(t); len(files) > 0 {
		t.Errorf("without Datasets, nodes have %v", files)
	}
	o.run(t, "helm", "uninstall", release, "-n", namespace, "--wait", helmPatience)
	eventually(t, patience, "helm uninstall leaves nothing", func(context.Context) (bool, error) {
		left, err := o.left(t)
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("%v", left))
	})
	o.run(t, "kubectl", "delete", "crd", "experiments.assay.dev", "trials.assay.dev", "systems.assay.dev", "datasets.assay.dev", "--timeout=5m")
	o.run(t, "kubectl", "delete", "configmaps", "--all-namespaces", "-l", "assay.dev/results")
	o.checkGone(t)
	for _, node := range o.nodes(t) {
		o.run(t, "docker", "exec", node, "rm", "-rf", datasetsFolder)
		if out := o.run(t, "docker", "exec", node, "sh", "-c", "[ ! -d /var/lib/assay ] || find /var/lib/assay -mindepth 1"); out != "" {
			t.Errorf("%s has %s", node, out)
		}
	}
}

// applyTabled creates an experiment of one trial whose System has a data set of 1 MiB.
func (o *owner) applyTabled(t *testing.T, ns string) *v1alpha1.Experiment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "e2e", "testdata", "dataset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	system, experiment, found := strings.Cut(string(text), "\n---\n")
	if !found {
		t.Fatal("dataset.yaml is not two documents")
	}
	s, e := &v1alpha1.System{}, &v1alpha1.Experiment{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(system), s), yaml.UnmarshalStrict([]byte(experiment), e)); err != nil {
		t.Fatal(err)
	}
	s.Namespace, e.Namespace = ns, ns
	o.create(t, s)
	short := &v1alpha1.Experiment{}
	read(t, filepath.Join("testdata", "experiment.yaml"), short)
	e.Spec.Parameters = map[string]v1alpha1.Value{"rows": v1alpha1.NewValue("1024")}
	e.Spec.Repetitions.Min = 1
	e.Spec.Results = &v1alpha1.Results{Store: v1alpha1.NoStore} // in place of the default of managers that are being replaced
	e.Spec.Retries, e.Spec.Tolerances, e.Spec.Disturbances = short.Spec.Retries, short.Spec.Tolerances, short.Spec.Disturbances
	o.create(t, e)
	return e
}

// nodes are the names of the cluster's nodes, and also of their containers.
func (o *owner) nodes(t *testing.T) (names []string) {
	t.Helper()
	list := &corev1.NodeList{}
	if err := o.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// onNodes are the files of data sets on all nodes.
func (o *owner) onNodes(t *testing.T) (files []string) {
	t.Helper()
	for _, node := range o.nodes(t) {
		out, err := o.try("docker", "exec", node, "sh", "-c", "[ ! -d "+datasetsFolder+" ] || find "+datasetsFolder+" -type f")
		if err != nil {
			t.Fatal(err)
		}
		for file := range strings.FieldsSeq(out) {
			files = append(files, node+":"+file)
		}
	}
	return files
}

// checkGone checks that kinds and results of Assay are gone.
func (o *owner) checkGone(t *testing.T) {
	t.Helper()
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	configMaps := &corev1.ConfigMapList{}
	if err := errors.Join(o.List(t.Context(), crds), o.List(t.Context(), configMaps, client.HasLabels{v1alpha1.LabelResults})); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		if name := crds.Items[i].GetName(); strings.HasSuffix(name, ".assay.dev") {
			t.Errorf("the kind %s is left", name)
		}
	}
	if n := len(configMaps.Items); n > 0 {
		t.Errorf("%d ConfigMaps with results are left", n)
	}
}
