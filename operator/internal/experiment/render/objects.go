package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Environment has the facts about the manager that pods need.
type Environment struct {
	// AgentImage has the agent, the launcher and the load generator.
	AgentImage string
	// AgentPullPolicy says when nodes ask the registry for that image. Empty: IfNotPresent.
	AgentPullPolicy corev1.PullPolicy
	// AgentResources are the requests and limits of each agent. The launchers use those of the
	// System's containers.
	AgentResources corev1.ResourceRequirements
	// PodLabels and PodAnnotations are set on the pods of trials, for instance for a cost center, a
	// mesh or a policy engine. Assay's own labels and annotations take precedence.
	PodLabels, PodAnnotations map[string]string
	// Pods are the settings of the cluster's owner for pods.
	Pods PodSettings
	// ImageRegistry of images of systems whose names have no registry, HOST[:PORT][/PATH]. Empty:
	// their names stay as they are.
	ImageRegistry string
	// Capabilities that containers of Systems may have.
	Capabilities []string
	// ClusterDomain is the domain of the cluster's Services. Empty: the default.
	ClusterDomain string
	// CoordinatorAddress is the address that agents dial, host:port.
	CoordinatorAddress string
	// CoordinatorCA is the PEM certificate that signs the certificate of the coordinator.
	CoordinatorCA string
	// Namespace of the manager, which also has the pods that reset machines.
	Namespace string
	// WithoutBPF: nodes cannot grant the capability BPF. So an agent asks for it only if its trial
	// asks for the backend EDT by name.
	WithoutBPF bool
	// WithoutSysNice: no agent asks for the capability SYS_NICE. The threads of NFQueue then wait
	// for a processor like all others.
	WithoutSysNice bool
	// WithoutControlGroups: containers have none. So launchers add up the use of containers over
	// their processes.
	WithoutControlGroups bool
	// SimulatedClockOffsets, by pod, are added to the wall clock of an agent. They are only for
	// tests of the clock correction.
	SimulatedClockOffsets string
}

// Objects are all objects that a trial makes before its pods have addresses. They are created once
// and never changed, since a trial's spec never changes. So applying them is to create each, and to
// accept that it exists.
type Objects struct {
	Service *corev1.Service
	Prepare *batchv1.Job // nil without a prepare step
	// Servers are the replicas, then the components.
	Servers []*appsv1.StatefulSet
	// Clients are one Job or, if regions choose nodes, one for each region.
	Clients []*batchv1.Job
}

// undisturbed asks the Cluster Autoscaler and Karpenter not to move the pods of a trial. An owner
// who drains a node moves them in any case.
var undisturbed = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}

// NewObjects renders the objects of a trial. Images are templates, too, but must not use addresses.
func NewObjects(l *placement.Layout, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, env Environment) (*Objects, error) {
	system = system.Deployed()
	ctx, err := newContext(spec, system, l)
	if err != nil {
		return nil, err
	}
	b := &builder{l: l, ctx: ctx, system: system, env: env, network: spec.Network, placement: spec.Placement, sets: spec.Datasets, labels: map[string]string{
		v1alpha1.LabelTrial: l.Trial, v1alpha1.LabelExperiment: spec.Experiment, v1alpha1.LabelSystem: spec.System.Name, v1alpha1.LabelPoint: strconv.Itoa(int(spec.Point.Index)),
	}, annotations: maps.Clone(env.PodAnnotations)}
	if b.annotations == nil {
		b.annotations = map[string]string{}
	}
	b.annotations[annotationCA] = env.CoordinatorCA
	for name, value := range undisturbed {
		b.annotations[name] = value
	}
	for axis, value := range spec.Point.Coordinates {
		b.annotations[v1alpha1.AnnotationAxisPrefix+axis] = value
	}
	if b.actions, err = actions(spec, l); err != nil {
		return nil, err
	}
	if _, b.shapes, err = links(spec, l); err != nil {
		return nil, err
	}
	o := &Objects{Service: b.service()}
	for _, set := range l.Sets {
		sts, err := b.statefulSet(set)
		if err != nil {
			return nil, err
		}
		o.Servers = append(o.Servers, sts)
	}
	for _, set := range l.ClientSets {
		job, err := b.clients(set)
		if err != nil {
			return nil, err
		}
		o.Clients = append(o.Clients, job)
	}
	if system.Prepare != nil {
		if o.Prepare, err = b.prepare(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

type builder struct {
	l      *placement.Layout
	ctx    *Context
	system *v1alpha1.SystemSpec
	env    Environment
	labels map[string]string
	// annotations of pods: those for monitoring, and the certificates that their agents trust.
	annotations map[string]string

	// How the trial shapes the pods' network. It decides the rights of the pods' agents.
	actions []timeline.Action
	shapes  bool
	network v1alpha1.Network

	placement v1alpha1.Placement
	// sets are the data sets that the pods begin with.
	sets []v1alpha1.TrialDataset
}

func (b *builder) meta(name string, extra ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: b.l.Namespace, Labels: map[string]string{}}
	for k, v := range b.labels {
		m.Labels[k] = v
	}
	for i := 0; i+1 < len(extra); i += 2 {
		m.Labels[extra[i]] = extra[i+1]
	}
	return m
}

// podLabels returns the labels of an object's pods: those of the object, and those of the cluster's
// owner.
func (b *builder) podLabels(of metav1.ObjectMeta) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, b.env.PodLabels)
	maps.Copy(labels, of.Labels)
	return labels
}

// service gives every pod of the trial a name, which resolves as soon as the pod has an address,
// ready or not. Many artifacts resolve their peers once, at start.
func (b *builder) service() *corev1.Service {
	return &corev1.Service{ObjectMeta: b.meta(b.l.Service()), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
		Selector: map[string]string{v1alpha1.LabelTrial: b.l.Trial},
		// Only the SRV look-ups of some resolvers need a port. But in old clusters a headless
		// Service without one has no endpoints.
		Ports: []corev1.ServicePort{{Name: "assay", Port: 1, TargetPort: intstr.FromInt32(1)}},
	}}
}

func (b *builder) statefulSet(set placement.Set) (*appsv1.StatefulSet, error) {
	rs := b.system.Group(set.Component)
	own := ownLabels(set)
	meta := b.meta(set.Name, append(own, v1alpha1.LabelReplicaBase, strconv.Itoa(set.Base))...)
	pod, err := b.pod(groupField(b.system, set.Component), partOf(set.Component), rs.Containers, rs.Files)
	if err != nil {
		return nil, err
	}
	if g, _ := b.system.MachineOf(false, set.Component, set.Base); g != nil {
		b.furnish(pod, g)
	}
	members := b.serversOf(set)
	err = b.datasets(pod, rs.Containers, members, func(d *v1alpha1.DatasetSource) bool {
		return set.Component == "" && d.ForReplicas() || slices.Contains(d.Components, set.Component)
	})
	if err != nil {
		return nil, err
	}
	exposeMetrics(pod, rs.Metrics)
	b.permit(pod, members)
	b.place(pod, b.placement.PoolOf(set.Component), set.Region)
	if b.placement.Spread == v1alpha1.SpreadRequired {
		pod.Affinity = apart(b.l.Trial)
	}
	claims := b.volumes(pod, rs.Volumes)
	selector := map[string]string{v1alpha1.LabelTrial: b.l.Trial}
	for i := 2; i < len(own); i += 2 { // all labels except the part
		selector[own[i]] = own[i+1]
	}
	return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr(int32(set.Replicas)), ServiceName: b.l.Service(),
		// All pods start at once. If there is an order of start, the launchers keep it.
		PodManagementPolicy:  appsv1.ParallelPodManagement,
		Selector:             &metav1.LabelSelector{MatchLabels: selector},
		VolumeClaimTemplates: claims,
		PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: b.podLabels(meta), Annotations: b.annotations}, Spec: *pod},
	}}, nil
}

// volumes adds volumes to all containers of a pod. It returns the claims of those that are claims.
func (b *builder) volumes(pod *corev1.PodSpec, volumes []v1alpha1.Volume) (claims []corev1.PersistentVolumeClaim) {
	for _, v := range volumes {
		mount := corev1.VolumeMount{Name: "data-" + v.Name, MountPath: v.MountPath}
		for i := range pod.Containers {
			pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts, mount)
		}
		if v.Medium == v1alpha1.VolumePersistentVolumeClaim {
			claim := corev1.PersistentVolumeClaim{ObjectMeta: b.meta(mount.Name), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: v.Size}},
			}}
			if v.StorageClass != "" {
				claim.Spec.StorageClassName = &v.StorageClass
			}
			claims = append(claims, claim)
			continue
		}
		dir := &corev1.EmptyDirVolumeSource{SizeLimit: &v.Size}
		switch v.Medium {
		case v1alpha1.VolumeMemory:
			dir.Medium = corev1.StorageMediumMemory
		case v1alpha1.VolumeHugePages:
			dir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}
		}
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: corev1.VolumeSource{EmptyDir: dir}})
	}
	return claims
}

// serversOf returns the pods of a set.
func (b *builder) serversOf(set placement.Set) (servers []member) {
	for _, r := range b.l.Group(set.Component) {
		if r.Shard == set.Shard && r.Region == set.Region {
			servers = append(servers, member{r.Name, r})
		}
	}
	return servers
}

func (b *builder) clients(set placement.ClientSet) (*batchv1.Job, error) {
	cs := b.system.Clients
	pod, err := b.pod("spec.clients", v1alpha1.PodTypeClient, cs.Containers, cs.Files)
	if err != nil {
		return nil, err
	}
	if g, _ := b.system.MachineOf(true, "", 0); g != nil {
		b.furnish(pod, g)
	}
	var members []member
	for _, i := range set.Clients {
		members = append(members, member{b.l.Clients[i].Name, b.l.Clients[i]})
	}
	if err := b.datasets(pod, cs.Containers, members, (*v1alpha1.DatasetSource).ForClients); err != nil {
		return nil, err
	}
	exposeMetrics(pod, cs.Metrics)
	b.permit(pod, members)
	pod.Subdomain = b.l.Service()
	pod.Affinity = awayFrom(b.actions, b.l.Trial)
	b.place(pod, b.placement.Clients, set.Region)
	return b.job(set.Name, v1alpha1.PodTypeClient, int32(len(set.Clients)), pod), nil
}

func (b *builder) prepare() (*batchv1.Job, error) {
	p := b.system.Prepare
	pod, err := b.pod("spec.prepare", v1alpha1.PodTypePrepare, []v1alpha1.Container{p.Container}, nil)
	if err != nil {
		return nil, err
	}
	b.shared(pod)
	b.place(pod, b.placement.Clients, "") // away from the machines of the replicas, which are measured
	return b.job(b.l.PrepareJob(), v1alpha1.PodTypePrepare, 1, pod), nil
}

// job runs its pods once. A lost client makes the trial invalid, and must not be replaced
// unnoticed.
func (b *builder) job(name, part string, pods int32, spec *corev1.PodSpec) *batchv1.Job {
	meta := b.meta(name, v1alpha1.LabelPodType, part)
	spec.RestartPolicy = corev1.RestartPolicyNever
	indexed := batchv1.IndexedCompletion
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		CompletionMode: &indexed, Completions: &pods, Parallelism: &pods, BackoffLimit: ptr(int32(0)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: b.podLabels(meta), Annotations: b.annotations}, Spec: *spec},
	}}
}

// sharedGID is the group of the shared volumes. So agent and system can read each other's files,
// whatever the system's user is.
const sharedGID = 65532

func (b *builder) pod(field, part string, containers []v1alpha1.Container, files []v1alpha1.FileSet) (*corev1.PodSpec, error) {
	shared := []corev1.VolumeMount{
		{Name: "bin", MountPath: protocol.BinDir},
		{Name: "run", MountPath: protocol.RunDir},
		{Name: "out", MountPath: protocol.OutDir},
	}
	pod := &corev1.PodSpec{
		AutomountServiceAccountToken:  ptr(false),
		EnableServiceLinks:            ptr(false),
		TerminationGracePeriodSeconds: ptr(int64(5)),
		SecurityContext: &corev1.PodSecurityContext{
			FSGroup: ptr(int64(sharedGID)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{emptyDir("bin", ""), emptyDir("run", corev1.StorageMediumMemory), emptyDir("out", ""), identityVolume()},
		// Replicas spread over the nodes, as far as there are nodes. Clients do the same.
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelTrial: b.l.Trial, v1alpha1.LabelPodType: part}},
		}},
	}
	for i, set := range files {
		shared = append(shared, b.share(pod, fmt.Sprintf("files-%d", i), set.MountPath))
	}
	if p := b.system.Prepare; p != nil {
		shared = append(shared, b.share(pod, "prepared", p.OutputPath))
	}
	pod.InitContainers = []corev1.Container{b.agent(part, shared)}
	secure(pod, b.network.Shaping)
	for i, c := range containers {
		at := fmt.Sprintf("%s.containers[%d]", field, i)
		image, err := b.ctx.text(at+".image", c.Image)
		if err != nil {
			return nil, err
		}
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: c.Name, Image: imageref.Parse(image).In(b.env.ImageRegistry).String(), ImagePullPolicy: c.ImagePullPolicy,
			Command:                  launcherCommand(c.Name, b.env),
			Resources:                c.Resources,
			VolumeMounts:             shared,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          systemSecurity(c.RunAsUser, c.Capabilities...),
		})
	}
	return pod, nil
}

// launcherCommand returns the command of the first process of a container.
func launcherCommand(container string, env Environment) []string {
	command := []string{protocol.BinDir + launcherBinary, "--name", container}
	if env.WithoutControlGroups {
		command = append(command, "--no-control-group")
	}
	return command
}

// share adds a volume to which agent and system both write.
func (b *builder) share(pod *corev1.PodSpec, name, path string) corev1.VolumeMount {
	pod.Volumes = append(pod.Volumes, emptyDir(name, corev1.StorageMediumMemory))
	return corev1.VolumeMount{Name: name, MountPath: path}
}

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func ptr[T any](v T) *T { return &v }
