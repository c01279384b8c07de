package render

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/podsecurity"
)

// dataSystem returns the kv system with a data set.
func dataSystem() *v1alpha1.SystemSpec {
	s := kvSystem()
	s.Datasets = []v1alpha1.DatasetSource{{
		Name: "rows", OutputPath: "/made", MountPath: "/rows", Size: resource.MustParse("1Gi"), Check: v1alpha1.DatasetCheckContent,
		Container: v1alpha1.Container{
			Name: "load", Image: "kv:{{.Parameters.batch}}", Command: []string{"/kv", "load", "{{if .Parameters.fast}}--fast{{end}}", "--theta={{.Parameters.theta}}"},
			Env: []v1alpha1.EnvVar{{Name: "BATCH", Value: "{{.Parameters.batch}}"}},
		},
	}}
	return s
}

func datasetOf(t *testing.T, namespace string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) *v1alpha1.Dataset {
	t.Helper()
	sets, err := Datasets(namespace, spec, system)
	if err != nil || len(sets) != 1 {
		t.Fatalf("%d data sets (%v), want 1", len(sets), err)
	}
	return &sets[0]
}

// The name of a data set depends on all that decides the bytes of its recipe, and on nothing else.
func TestTheKeyIsTheRecipe(t *testing.T) {
	spec, system := kvTrial(), dataSystem()
	key := datasetOf(t, "ns", spec, system).Name
	if key != "rows-9da4d3669232" {
		t.Errorf("the name is %s, so that data which was made before is not found", key)
	}
	for name, change := range map[string]func(*v1alpha1.TrialSpec, *v1alpha1.DatasetSource){
		"image":       func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Container.Image = "kv:2" },
		"command":     func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Container.Command[1] = "fill" },
		"environment": func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Container.Env[0].Value = "x" },
		"directory":   func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.OutputPath = "/elsewhere" },
		"user":        func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Container.RunAsUser = ptr(int64(1)) },
		"parameter": func(s *v1alpha1.TrialSpec, _ *v1alpha1.DatasetSource) {
			s.Parameters["theta"] = v1alpha1.NewValue("0.5")
		},
		"rule for bytes": func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Bytes = v1alpha1.DatasetBytesPerNode },
	} {
		spec, system := kvTrial(), dataSystem()
		change(spec, &system.Datasets[0])
		if datasetOf(t, "ns", spec, system).Name == key {
			t.Errorf("another %s makes the same data set", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.TrialSpec, *v1alpha1.DatasetSource){
		"a parameter that it does not use": func(s *v1alpha1.TrialSpec, _ *v1alpha1.DatasetSource) {
			s.Parameters["timeout"] = v1alpha1.NewValue("9s")
		},
		"the seed": func(s *v1alpha1.TrialSpec, _ *v1alpha1.DatasetSource) { s.Seed++ },
		"size and timeout": func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) {
			d.Size, d.Timeout = resource.MustParse("2Gi"), "9h"
		},
		"the default for bytes":   func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Bytes = v1alpha1.DatasetBytesIdentical },
		"which part pods copy":    func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.SubPath = "node-{{.Self.Index}}" },
		"where pods find it":      func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.MountPath = "/there" },
		"the default user, named": func(_ *v1alpha1.TrialSpec, d *v1alpha1.DatasetSource) { d.Container.RunAsUser = ptr(int64(systemUID)) },
	} {
		spec, system := kvTrial(), dataSystem()
		change(spec, &system.Datasets[0])
		if datasetOf(t, "ns", spec, system).Name != key {
			t.Errorf("%s makes another data set", name)
		}
	}
}

// Data sets of two namespaces never share a name.
func TestDatasetsOfNamespacesDiffer(t *testing.T) {
	if datasetOf(t, "ns", kvTrial(), dataSystem()).Name == datasetOf(t, "other", kvTrial(), dataSystem()).Name {
		t.Error("two namespaces have a data set of one name")
	}
}

// The data outlives the trial, so it must not depend on a trial.
func TestARecipeUsesParametersOnly(t *testing.T) {
	for _, field := range []string{"{{.Trial}}", "{{.Seed}}", "{{.Self.Index}}", "{{len .Replicas}}", "{{.Namespace}}"} {
		system := dataSystem()
		system.Datasets[0].Container.Command[1] = field
		_, err := Datasets("ns", kvTrial(), system)
		if err == nil || !strings.Contains(err.Error(), "may use .Parameters only") || !strings.Contains(err.Error(), "spec.datasets[0].container.command[1]") {
			t.Errorf("%s: the error is %v", field, err)
		}
		if _, err := Check(*system, *kvTrial()); err == nil {
			t.Errorf("%s is taken when an experiment is applied", field)
		}
	}
}

func withData(spec *v1alpha1.TrialSpec) *v1alpha1.TrialSpec {
	spec.Datasets = []v1alpha1.TrialDataset{{Name: "rows", Dataset: "rows-1234", Digest: "sha256:abcd"}}
	return spec
}

// Pods get their copies before their agents start, through a container that may only read the kept
// data. The system sees only its copy.
func TestCopiesAreMadeBeforeTheAgentStarts(t *testing.T) {
	for by, parts := range map[v1alpha1.DatasetUsers]string{"": "replica", v1alpha1.DatasetForReplicas: "replica", v1alpha1.DatasetForClients: "client", v1alpha1.DatasetForAll: "replica client"} {
		system, spec := dataSystem(), withData(kvTrial())
		system.Datasets[0].UsedBy = by
		system.Replicas.Containers[0].RunAsUser = ptr(int64(999))
		o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, Environment{AgentImage: "agent"})
		if err != nil {
			t.Fatal(err)
		}
		for _, template := range o.Templates() {
			first := template.Spec.InitContainers[0]
			if !strings.Contains(parts, template.What) {
				if len(template.Spec.InitContainers) != 1 || slices.ContainsFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil }) {
					t.Errorf("%s: a %s has a copy: %+v", by, template.What, template.Spec.InitContainers)
				}
				continue
			}
			want := "/agent dataset copy --root /assay/datasets --key rows-1234 --to /assay/copies/rows --done /assay/done/rows --digest sha256:abcd --content"
			if got := strings.Join(first.Command, " "); got != want || template.Spec.InitContainers[1].Name != agentContainer {
				t.Errorf("%s: a %s begins with %q, want %q", by, template.What, got, want)
			}
			if user := *first.SecurityContext.RunAsUser; template.What == "replica" && user != 999 {
				t.Errorf("the copy belongs to %d, and the replica runs as 999", user)
			}
			checkMounts(t, template)
		}
	}
}

// A pod may run on any of the nodes, so its container has the digests of all, and learns its node.
func TestCopiesOfBytesPerNode(t *testing.T) {
	system, spec := dataSystem(), withData(kvTrial())
	system.Datasets[0].Bytes = v1alpha1.DatasetBytesPerNode
	spec.Datasets[0].Digest = ""
	spec.Datasets[0].Digests = []v1alpha1.DatasetDigest{{Node: "n1", Digest: "sha256:aa"}, {Node: "n2", Digest: "sha256:bb"}}
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	first := o.Templates()[0].Spec.InitContainers[0]
	want := " --done /assay/done/rows --digest n1=sha256:aa --digest n2=sha256:bb --content"
	if got := strings.Join(first.Command, " "); !strings.HasSuffix(got, want) {
		t.Errorf("the copy is made by %q, want its end to be %q", got, want)
	}
	if len(first.Env) != 1 || first.Env[0].Name != "NODE_NAME" || first.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("the environment is %+v, want the node's name", first.Env)
	}
	d := datasetOf(t, "ns", spec, system)
	for perNode, job := range map[bool]*batchv1.Job{true: DatasetJob(d, "n1", Environment{}), false: DatasetJob(datasetOf(t, "ns", spec, dataSystem()), "n1", Environment{})} {
		if got := slices.Contains(job.Spec.Template.Spec.Containers[0].Command, "--per-node"); got != perNode {
			t.Errorf("--per-node is %v, want %v", got, perNode)
		}
	}
}

// All pods of a template share a command, so it names the directory of each pod by host name.
func TestCopiesOfParts(t *testing.T) {
	system, spec := dataSystem(), withData(kvTrial())
	system.Datasets[0].UsedBy, system.Datasets[0].SubPath = v1alpha1.DatasetForAll, "{{.Self.Part}}s//{{.Self.Index}}"
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"exp-0a1b-3-s1-east-0": "replicas/0", "exp-0a1b-3-s1-east-1": "replicas/1", "exp-0a1b-3-s1-west-0": "replicas/2",
		"exp-0a1b-3-s0-east-0": "replicas/0", "exp-0a1b-3-s0-east-1": "replicas/1", "exp-0a1b-3-s0-west-0": "replicas/2",
		"exp-0a1b-3-c-0": "clients/0", "exp-0a1b-3-c-1": "clients/1",
	}
	for _, template := range o.Templates() {
		first := strings.Join(template.Spec.InitContainers[0].Command, " ")
		if template.What == "prepare" {
			continue
		}
		for _, pod := range template.Pods {
			if !strings.Contains(first, " --sub-path "+pod+"="+want[pod]+" ") {
				t.Errorf("the copy of %s is made by %q, want its directory to be %s", pod, first, want[pod])
			}
			delete(want, pod)
		}
		if n := strings.Count(first, "--sub-path"); n != len(template.Pods) {
			t.Errorf("%d directories for %d pods: %q", n, len(template.Pods), first)
		}
	}
	if len(want) > 0 {
		t.Errorf("no template makes %v", want)
	}
}

// A directory that does not lie in the data set is refused when an experiment is applied, by its
// field.
func TestAPartLiesInTheSet(t *testing.T) {
	for text, want := range map[string]string{
		"node-{{.Self.Index}}":                     "",
		"node-{{.Self.Index}}/":                    "",
		"/{{.Self.Index}}":                         "for pod experiment-0000-0-s0-east-0 it is \"/0\", which must be relative to outputPath",
		"a/..{{if .Self.Index}}b{{end}}":           "for pod experiment-0000-0-s0-east-0 it is \"a/..\", which must not contain \"..\"",
		"{{if .Self.Index}}{{.Self.Index}}{{end}}": "is empty; for the whole data set, remove subPath",
		".{{if .Self.Index}}/a{{end}}":             "is the whole data set",
		"{{.Self.IP}}":                             "is empty", // pods have no addresses yet
		"{{.Self.First}}":                          "can't evaluate field First",
		"{{.Parameters.none}}":                     "none",
	} {
		system := dataSystem()
		system.Datasets[0].SubPath = text
		_, err := Check(*system, *kvTrial())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.datasets[0].subPath")):
			t.Errorf("%s: the error is %v, want the field and %q", text, err, want)
		}
	}
}

func checkMounts(t *testing.T, template Template) {
	t.Helper()
	for _, v := range template.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName == DatasetClaim && !c.ReadOnly {
			t.Errorf("a %s may write to what is kept", template.What)
		}
	}
	for _, c := range template.Spec.Containers {
		var paths []string
		for _, m := range c.VolumeMounts {
			if m.Name == datasetsVolume || m.Name == doneVolume {
				t.Errorf("container %s of a %s sees %s", c.Name, template.What, m.Name)
			}
			if m.Name == "dataset-rows" {
				paths = append(paths, m.MountPath)
			}
		}
		if !slices.Equal(paths, []string{"/rows"}) {
			t.Errorf("container %s of a %s has copies at %v, want /rows", c.Name, template.What, paths)
		}
	}
}

// With shaping None, a namespace that admits only restricted pods admits pods with data sets and
// their Jobs. The recipe cannot see kept data.
func TestDatasetJobsSeeTheirOwnFolder(t *testing.T) {
	system, spec := dataSystem(), withData(kvTrial())
	spec.Network.Shaping, spec.Faults = v1alpha1.ShapingNone, nil
	env := Environment{AgentImage: "agent", ImageRegistry: "registry.example.org/mirror", AgentResources: DefaultAgentResources()}
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	d := datasetOf(t, "ns", spec, system)
	prepare, remove := DatasetJob(d, "node-1", env), DatasetRemovalJob(d, "node-1", env)
	templates := append(o.Templates(), Template{What: "prepares", Spec: &prepare.Spec.Template.Spec}, Template{What: "removes", Spec: &remove.Spec.Template.Spec})
	for _, template := range templates {
		refusal, err := podsecurity.Check(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, template.Spec)
		if err != nil || refusal != nil {
			t.Errorf("%s: %v %v", template.What, refusal, err)
		}
	}
	recipe := prepare.Spec.Template.Spec.InitContainers[0]
	if len(recipe.VolumeMounts) != 1 || recipe.VolumeMounts[0].MountPath != "/made" || recipe.VolumeMounts[0].Name != madeVolume {
		t.Errorf("the recipe sees %+v, want its own directory", recipe.VolumeMounts)
	}
	if got := strings.Join(recipe.Command, " "); got != "/kv load --theta=0.9" || recipe.Image != "registry.example.org/mirror/kv:4" || recipe.Env[0].Value != "4" {
		t.Errorf("the recipe runs %q in %s with %v", got, recipe.Image, recipe.Env)
	}
	if limit := prepare.Spec.Template.Spec.Volumes[1].EmptyDir.SizeLimit; limit == nil || limit.String() != "1Gi" {
		t.Errorf("the recipe may write %v, want 1Gi", limit)
	}
	if len(prepare.Name) > 63 || prepare.Name == DatasetJob(d, "node-2", env).Name || prepare.Name == remove.Name {
		t.Errorf("the Job's name is %s", prepare.Name)
	}
	if pod, job := *prepare.Spec.Template.Spec.ActiveDeadlineSeconds, *prepare.Spec.ActiveDeadlineSeconds; pod != 3600 || job != 3900 {
		t.Errorf("the deadlines are %d s and %d s, want 3600 and 3900", pod, job)
	}
}
