package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// DatasetClaim is the PersistentVolumeClaim for data sets that the owner of the cluster gives to a
// namespace. Pods reach the disks of nodes through it, and not by paths. So restricted namespaces
// admit the pods, and the manager needs no right on paths.
const DatasetClaim = "assay-datasets"

// DatasetGroup must have the right to write to the folder of the claim.
const DatasetGroup = sharedGID

// Containers of data sets.
const (
	// DatasetRecipeContainer of a Job fills the directory with the data.
	DatasetRecipeContainer = "recipe"
	// DatasetKeepContainer of a Job hashes the data and keeps it.
	DatasetKeepContainer = "keep"
	// DatasetCopyPrefix is followed by the name of the data set in the System.
	DatasetCopyPrefix = "dataset-"
)

// Directories in Assay's containers. A System's directories may not lie there.
const (
	datasetsDir   = "/assay/datasets" // the claim
	datasetMade   = "/assay/made"     // the output of the recipe
	datasetCopies = "/assay/copies/"  // the copies
	datasetDone   = "/assay/done/"    // records of finished copies
)

// Names of volumes.
const (
	datasetsVolume = "datasets"
	madeVolume     = "made"
	doneVolume     = "dataset-done"
)

// keptJobSeconds is how long a finished Job stays: for its logs, and for a manager that has just
// been replaced.
const keptJobSeconds = 3600

// datasetTimeout is the timeout of Systems that never reached the API server.
const datasetTimeout = v1alpha1.Duration("1h")

// Datasets returns the data sets that a trial's pods begin with, in the order of the System,
// without nodes. Their names follow from the rendered recipes and from the namespace, so that a
// data set of one namespace has no name in another.
func Datasets(namespace string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) ([]v1alpha1.Dataset, error) {
	if len(system.Datasets) == 0 {
		return nil, nil
	}
	parameters, err := typedParameters(spec, system)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Dataset
	for i, source := range system.Datasets {
		recipe, err := recipeOf(fmt.Sprintf("spec.datasets[%d].container", i), source, map[string]any{"Parameters": parameters})
		if err != nil {
			return nil, fmt.Errorf("%w (a recipe may use .Parameters only: its data outlives the trial)", err)
		}
		text, err := json.Marshal(recipe)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(append([]byte(namespace+"\n"), text...))
		recipe.System = spec.System.Name
		out = append(out, v1alpha1.Dataset{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%s", source.Name, hex.EncodeToString(sum[:6]))},
			Spec: v1alpha1.DatasetSpec{
				Recipe: recipe, Size: source.Size, Timeout: cmp.Or(source.Timeout, datasetTimeout), ImagePullPolicy: source.Container.ImagePullPolicy, Resources: source.Container.Resources,
			},
		})
	}
	return out, nil
}

// recipeOf renders every setting that affects the bytes of the data set.
func recipeOf(at string, source v1alpha1.DatasetSource, data map[string]any) (v1alpha1.DatasetRecipe, error) {
	c := source.Container
	r := v1alpha1.DatasetRecipe{Name: source.Name, WorkingDir: c.WorkingDir, RunAsUser: userOf(c.RunAsUser), OutputPath: source.OutputPath}
	if source.Bytes == v1alpha1.DatasetBytesPerNode { // Identical has no value here, so that keys stay as they were
		r.Bytes = source.Bytes
	}
	var err error
	if r.Image, err = Text(at+".image", c.Image, data); err != nil {
		return r, err
	}
	for i, arg := range c.Command {
		s, err := Text(fmt.Sprintf("%s.command[%d]", at, i), arg, data)
		if err != nil {
			return r, err
		}
		if s != "" || arg == "" {
			r.Command = append(r.Command, s)
		}
	}
	if len(r.Command) == 0 {
		return r, fmt.Errorf("%s.command: every element renders to nothing; a command needs at least a program", at)
	}
	for i, e := range c.Env {
		v, err := Text(fmt.Sprintf("%s.env[%d].value", at, i), e.Value, data)
		if err != nil {
			return r, err
		}
		r.Env = append(r.Env, v1alpha1.EnvVar{Name: e.Name, Value: v})
	}
	return r, nil
}

func userOf(user *int64) int64 {
	if user == nil {
		return systemUID
	}
	return *user
}

// member is a pod of a template.
type member struct {
	name string // host name of the pod
	self any    // what templates see of the pod
}

// datasets gives pods their copies, through init containers that run before the agent. A pod whose
// agent has reported has all its copies, so no copy is made during measurements. A copy belongs to
// the user of the first of the containers.
func (b *builder) datasets(pod *corev1.PodSpec, containers []v1alpha1.Container, members []member, used func(*v1alpha1.DatasetSource) bool) error {
	var copies []corev1.Container
	for i := range b.system.Datasets {
		source := &b.system.Datasets[i]
		if !used(source) {
			continue
		}
		var set v1alpha1.TrialDataset // a dry run has none
		if i := slices.IndexFunc(b.sets, func(d v1alpha1.TrialDataset) bool { return d.Name == source.Name }); i >= 0 {
			set = b.sets[i]
		}
		name := DatasetCopyPrefix + source.Name
		args := []string{"--root", datasetsDir, "--key", set.Dataset, "--to", datasetCopies + source.Name, "--done", datasetDone + source.Name}
		if len(set.Digests) == 0 {
			args = append(args, "--digest", set.Digest)
		}
		for _, on := range set.Digests {
			args = append(args, "--digest", on.Node+"="+on.Digest)
		}
		parts, err := b.subPaths(fmt.Sprintf("spec.datasets[%d].subPath", i), source.SubPath, members)
		if err != nil {
			return err
		}
		args = append(args, parts...)
		if source.Check == v1alpha1.DatasetCheckContent {
			args = append(args, "--content")
		}
		c := datasetContainer(name, "copy", args, containers[0].RunAsUser, b.env,
			corev1.VolumeMount{Name: datasetsVolume, MountPath: datasetsDir, ReadOnly: true}, corev1.VolumeMount{Name: name, MountPath: datasetCopies + source.Name},
			corev1.VolumeMount{Name: doneVolume, MountPath: datasetDone})
		if source.Bytes == v1alpha1.DatasetBytesPerNode {
			c.Env = []corev1.EnvVar{nodeName}
		}
		copies = append(copies, c)
		pod.Volumes = append(pod.Volumes, emptyDir(name, ""))
		for i := range pod.Containers {
			// Clone the slice, since all containers share one.
			pod.Containers[i].VolumeMounts = append(slices.Clone(pod.Containers[i].VolumeMounts), corev1.VolumeMount{Name: name, MountPath: source.MountPath})
		}
	}
	if len(copies) == 0 {
		return nil
	}
	pod.Volumes = append(pod.Volumes, claimVolume(true), emptyDir(doneVolume, ""))
	pod.InitContainers = append(copies, pod.InitContainers...)
	return nil
}

// subPaths returns flags that say which directory of a data set each pod copies. All pods of a
// template run the same command, so it names the directories of all. None: the whole data set.
func (b *builder) subPaths(at, text string, members []member) (args []string, err error) {
	if text == "" {
		return nil, nil
	}
	for _, m := range members {
		rendered, err := b.ctx.with(m.self).text(at, text)
		if err != nil {
			return nil, err
		}
		dir, err := plan.SubPath(rendered)
		if err != nil {
			return nil, fmt.Errorf("%s: for pod %s it is %q, which %w", at, m.name, rendered, err)
		}
		args = append(args, "--sub-path", m.name+"="+dir)
	}
	return args, nil
}

// nodeName tells a container on which node it runs.
var nodeName = corev1.EnvVar{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}

func claimVolume(readOnly bool) corev1.Volume {
	return corev1.Volume{Name: datasetsVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: DatasetClaim, ReadOnly: readOnly},
	}}
}

// datasetContainer runs the agent's program for one task. Its user made or uses the files. Its
// group is that of all these files.
func datasetContainer(name, task string, args []string, user *int64, env Environment, mounts ...corev1.VolumeMount) corev1.Container {
	security := systemSecurity(user)
	security.ReadOnlyRootFilesystem = ptr(true)
	return corev1.Container{
		Name: name, Image: env.AgentImage, ImagePullPolicy: env.agentPullPolicy(),
		Command: append([]string{"/agent", "dataset", task}, args...), VolumeMounts: mounts,
		Resources: *env.AgentResources.DeepCopy(), SecurityContext: security,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// DatasetJob prepares a data set on a node. The recipe runs in an empty directory. Then its output
// is hashed and kept. The recipe cannot see kept data.
func DatasetJob(d *v1alpha1.Dataset, node string, env Environment) *batchv1.Job {
	r := d.Spec.Recipe
	user := ptr(r.RunAsUser)
	var variables []corev1.EnvVar
	for _, e := range r.Env {
		variables = append(variables, corev1.EnvVar{Name: e.Name, Value: e.Value})
	}
	job, pod := datasetJob(d, "prepare", node, env, int64(d.Spec.Timeout.OrZero().Seconds()))
	made := emptyDir(madeVolume, "")
	made.EmptyDir.SizeLimit = ptr(d.Spec.Size.DeepCopy())
	pod.Volumes = append(pod.Volumes, made)
	pod.InitContainers = []corev1.Container{{
		Name: DatasetRecipeContainer, Image: imageref.Parse(r.Image).In(env.ImageRegistry).String(), ImagePullPolicy: d.Spec.ImagePullPolicy,
		Command: r.Command, Env: variables, WorkingDir: r.WorkingDir, Resources: *d.Spec.Resources.DeepCopy(),
		VolumeMounts:             []corev1.VolumeMount{{Name: madeVolume, MountPath: r.OutputPath}},
		SecurityContext:          systemSecurity(user),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}
	args := []string{"--root", datasetsDir, "--key", d.Name, "--from", datasetMade, "--limit", strconv.FormatInt(d.Spec.Size.Value(), 10)}
	if r.PerNode() {
		args = append(args, "--per-node")
	}
	pod.Containers = []corev1.Container{datasetContainer(DatasetKeepContainer, "keep", args, user, env,
		corev1.VolumeMount{Name: datasetsVolume, MountPath: datasetsDir}, corev1.VolumeMount{Name: madeVolume, MountPath: datasetMade, ReadOnly: true})}
	env.Pods.apply(pod)
	return job
}

// removalSeconds is how long a node may take to delete a data set.
const removalSeconds = 600

// DatasetRemovalJob deletes a data set from a node.
func DatasetRemovalJob(d *v1alpha1.Dataset, node string, env Environment) *batchv1.Job {
	job, pod := datasetJob(d, "remove", node, env, removalSeconds)
	// The user that made the data set can delete it, whatever the modes of its directories are.
	pod.Containers = []corev1.Container{datasetContainer("remove", "remove", []string{"--root", datasetsDir, "--key", d.Name}, ptr(d.Spec.Recipe.RunAsUser), env,
		corev1.VolumeMount{Name: datasetsVolume, MountPath: datasetsDir})}
	env.Pods.apply(pod)
	return job
}

// datasetJob is a nodeJob with access to the data sets of the node.
func datasetJob(d *v1alpha1.Dataset, task, node string, env Environment, seconds int64) (*batchv1.Job, *corev1.PodSpec) {
	meta := metav1.ObjectMeta{Namespace: d.Namespace, Name: DatasetJobName(d.Name, task, node), Labels: map[string]string{v1alpha1.LabelDataset: d.Name}}
	job, pod := nodeJob(meta, node, env, seconds)
	pod.Volumes = []corev1.Volume{claimVolume(false)}
	job.Spec.TTLSecondsAfterFinished = ptr(int32(keptJobSeconds))
	return job, pod
}

// DatasetJobName is the name of the Job for a task on a node.
func DatasetJobName(dataset, task, node string) string {
	sum := sha256.Sum256([]byte(node))
	return fmt.Sprintf("%s-%s-%s", task, dataset, hex.EncodeToString(sum[:4]))
}
