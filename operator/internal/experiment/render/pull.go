package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Pull has the images that nodes need before pods of a trial start on them.
type Pull struct {
	// NodeSelector of the pods.
	NodeSelector map[string]string
	// Images of their containers, sorted, each with the user that runs it.
	Images []PullImage
}

// PullImage is one image, with the user and the pull policy of its container.
type PullImage struct {
	Image    string
	Policy   corev1.PullPolicy
	Security *corev1.SecurityContext
}

// Pulls returns the images that a trial's pods need, by the nodes on which they may run.
func Pulls(namespace, name string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, env Environment) ([]Pull, error) {
	o, err := NewObjects(placement.NewLayout(namespace, name, spec, system), spec, system, env)
	if err != nil {
		return nil, err
	}
	var pulls []Pull
	for _, t := range o.Templates() {
		at := slices.IndexFunc(pulls, func(p Pull) bool { return maps.Equal(p.NodeSelector, t.Spec.NodeSelector) })
		if at < 0 {
			at, pulls = len(pulls), append(pulls, Pull{NodeSelector: t.Spec.NodeSelector})
		}
		for _, c := range t.Spec.Containers {
			pulls[at].add(PullImage{c.Image, c.ImagePullPolicy, c.SecurityContext})
		}
	}
	return pulls, nil
}

func (p *Pull) add(image PullImage) {
	at, found := slices.BinarySearchFunc(p.Images, image.Image, func(i PullImage, name string) int { return strings.Compare(i.Image, name) })
	if !found {
		p.Images = slices.Insert(p.Images, at, image)
	}
}

// Join adds the images of another Pull, since several may select one node.
func (p *Pull) Join(other Pull) {
	for _, i := range other.Images {
		p.add(i)
	}
}

// PullJob makes a node pull images. Its pod runs the launcher in each image, which prints its
// version and exits, since an image may have no program that ends. An image that cannot run on the
// node, for instance one for other processors, fails the Job.
func PullJob(namespace, experiment, node string, images []PullImage, env Environment, seconds int64) *batchv1.Job {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: PullJobName(experiment, node, images), Labels: map[string]string{v1alpha1.LabelImages: experiment}}
	job, pod := nodeJob(meta, node, env, seconds)
	bin := corev1.VolumeMount{Name: "bin", MountPath: protocol.BinDir}
	pod.Volumes = []corev1.Volume{emptyDir("bin", "")}
	security := systemSecurity(nil)
	security.ReadOnlyRootFilesystem = ptr(true)
	pod.InitContainers = []corev1.Container{{
		Name: agentContainer, Image: env.AgentImage, ImagePullPolicy: env.agentPullPolicy(),
		Command:      []string{"/agent", "install", "--from", launcherBinary, "--shared", protocol.BinDir},
		VolumeMounts: []corev1.VolumeMount{bin}, Resources: *env.AgentResources.DeepCopy(), SecurityContext: security,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}
	for i, image := range images {
		security := image.Security.DeepCopy()
		security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: fmt.Sprintf("image-%d", i), Image: image.Image, ImagePullPolicy: image.Policy,
			Command:      []string{protocol.BinDir + launcherBinary, "--version"},
			VolumeMounts: []corev1.VolumeMount{bin}, Resources: *env.AgentResources.DeepCopy(), SecurityContext: security,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		})
	}
	env.Pods.apply(pod)
	return job
}

// PullJobName follows from the experiment, the node and the images, so that a finished Job says
// that the images are there.
func PullJobName(experiment, node string, images []PullImage) string {
	text := node
	for _, i := range images {
		text += "\n" + i.Image
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("images-%s-%s", experiment, hex.EncodeToString(sum[:5]))
}
