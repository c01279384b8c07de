// Package node is the one node of an installation without a cluster. It makes the pods of
// StatefulSets and Jobs, and runs their containers on this machine by an OCI runtime.
//
//	StatefulSet, Job -> Pod -> network namespace, volumes -> containers: an overlay over an unpacked image, a control group, runc
//
// Each pod has a network namespace on a bridge, an address and names of its own. A pod has the
// statuses that a kubelet would give it, so that readers of pods need not know where it runs. Pods
// have no probes. Their only volumes are emptyDir, the agent's identity, and claims that are
// folders of this machine: trials need no others on one machine.
//
// One process at a time uses the machine. It first removes the remains of a killed process: all of
// them are in one folder and in one control group.
package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"assay.dev/assay/operator/internal/local/folder"
	"assay.dev/assay/operator/internal/manager/coordinator"
)

// Name of the node.
const Name = "this-machine"

// CoordinatorName is the name of the coordinator in the pods, and CoordinatorPort its port.
const (
	CoordinatorName = "coordinator.assay"
	CoordinatorPort = 7443
)

// Options of a Machine. All are needed.
type Options struct {
	Store *folder.Store
	Clock clock.PassiveClock
	Log   logr.Logger
	// Dir is the folder of all files that must not outlive the process.
	Dir string
	// Runtime is the program that runs containers: runc, or a program with the same command line.
	Runtime string
	Images  *Images
	// Domain of the pods' names.
	Domain string
	// Claims are the folders of this machine that pods mount as PersistentVolumeClaims, by the
	// names of the claims.
	Claims map[string]string
	// Rootless: the process is root only in its user namespace (package rootless). There are no
	// control groups, and an earlier process leaves only files.
	Rootless bool
}

// Machine runs the pods of a store.
type Machine struct {
	Options

	lock       *os.File
	runtime    *runtimeOCI
	network    *network
	names      *names
	identities *identities

	mu      sync.Mutex
	pods    map[types.UID]*pod
	next    int // number of the next pod, which determines its address
	running sync.WaitGroup
}

// ErrBusy says that another process runs trials on this machine.
var ErrBusy = errors.New("another kubectl assay --local runs on this machine, and two would disturb each other's trials: wait for it, or end it")

// New locks the machine, removes the remains of an earlier process, and makes the pods' network.
func New(ctx context.Context, o Options) (m *Machine, err error) {
	m = &Machine{Options: o, names: newNames(), identities: &identities{}, pods: map[types.UID]*pod{}, next: 2}
	program, err := find(o.Runtime)
	if err != nil {
		return nil, fmt.Errorf("find a runtime for containers: %w; install the package runc", err)
	}
	own, err := ownCapabilities()
	if err == nil {
		err = allowed(own, m.cgroupRoots(), o.Dir, mayWrite)
	}
	if err != nil {
		return nil, err
	}
	if err := m.take(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = m.lock.Close() // this unlocks the machine
		}
	}()
	if err := m.sweep(ctx, program); err != nil {
		return nil, err
	}
	m.runtime = &runtimeOCI{program: program, state: filepath.Join(o.Dir, "runtime"), granted: own, rootless: o.Rootless}
	// Containers outlive the runtime that started them. Then the kernel reports their ends to this
	// process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("have the ends of containers told: %w", err)
	}
	if m.network, err = newNetwork(filepath.Join(o.Dir, "networks")); err != nil {
		return nil, err
	}
	m.names.add(gateway, CoordinatorName)
	return m, Register(o.Store)
}

// find finds a program, also in folders for administrators, which are not on the path of every
// user.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil || strings.Contains(program, "/") {
		return path, err
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// take locks the machine for the life of the process.
func (m *Machine) take() error {
	path := m.Dir + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- the folder of a lock
		return fmt.Errorf("take the machine: %w", err)
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("take the machine: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close() // nothing was written
		return ErrBusy
	}
	m.lock = lock
	return nil
}

// Register adds the node and the namespace to the store.
func Register(store *folder.Store) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("read the machine's memory: %w", err)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(info.Totalram)*int64(info.Unit), resource.BinarySI), // #nosec G115 -- of the kernel
		corev1.ResourcePods: *resource.NewQuantity(1000, resource.DecimalSI),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{corev1.LabelHostname: Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if err := create(store, folder.Nodes, node); err != nil {
		return err
	}
	return create(store, folder.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: folder.Namespace}})
}

// Listen listens on the address at which pods dial the coordinator.
func (m *Machine) Listen(ctx context.Context) (net.Listener, error) {
	return m.network.listen(ctx, CoordinatorPort)
}

// Identifier identifies pods by their tokens.
func (m *Machine) Identifier() coordinator.Identifier { return m.identities }

// Run makes and runs pods until the context ends. Then it removes everything.
func (m *Machine) Run(ctx context.Context) error {
	conn, err := m.network.listenPacket(ctx, 53)
	if err != nil {
		return fmt.Errorf("answer the pods' questions for names: %w", err)
	}
	go m.names.serve(conn)
	for ctx.Err() == nil {
		next := m.Store.Await()
		if err := m.look(ctx); err != nil {
			m.Log.Error(err, "Failed to make pods; trying again at the next change")
		}
		select {
		case <-ctx.Done():
		case <-next:
		}
	}
	m.mu.Lock()
	for _, p := range m.pods {
		p.end()
	}
	m.mu.Unlock()
	m.running.Wait()
	after := context.WithoutCancel(ctx)
	return errors.Join(conn.Close(), m.network.close(), m.sweep(after, m.runtime.program), m.lock.Close())
}

// look makes the missing pods, starts the new ones, and ends the deleted ones.
func (m *Machine) look(ctx context.Context) error {
	var errs []error
	sets, _ := m.Store.List(folder.StatefulSets, "", nil)
	jobs, _ := m.Store.List(folder.Jobs, "", nil)
	owned := map[types.UID][]*unstructured.Unstructured{}
	pods, _ := m.Store.List(folder.Pods, "", nil)
	for _, p := range pods {
		for _, o := range p.GetOwnerReferences() {
			owned[o.UID] = append(owned[o.UID], p)
		}
	}
	for _, set := range sets {
		errs = append(errs, m.ofSet(set, owned[set.GetUID()]))
	}
	for _, job := range jobs {
		errs = append(errs, m.ofJob(job, owned[job.GetUID()]))
	}
	pods, _ = m.Store.List(folder.Pods, "", nil)
	for _, p := range pods {
		errs = append(errs, m.follow(ctx, p))
	}
	return errors.Join(errs...)
}

// follow starts or ends a pod.
func (m *Machine) follow(ctx context.Context, object *unstructured.Unstructured) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.pods[object.GetUID()]
	switch {
	case known == nil:
		spec := &corev1.Pod{}
		if err := kuberuntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, spec); err != nil {
			return fmt.Errorf("read pod %s: %w", object.GetName(), err)
		}
		known = &pod{
			m: m, spec: spec, dir: filepath.Join(m.Dir, "pods", string(spec.UID)), index: m.next, ip: addressOf(m.next), deleted: make(chan struct{}),
			inits: statuses(spec.Spec.InitContainers), mains: statuses(spec.Spec.Containers), running: map[string]*container{}, phase: corev1.PodPending,
		}
		m.next++
		m.pods[spec.UID] = known
		m.running.Go(func() { known.run(ctx) })
		fallthrough
	default:
		if object.GetDeletionTimestamp() != nil {
			known.end()
		}
	}
	return nil
}

// addressOf returns the address of the pod with a number. An address is not used again soon.
func addressOf(index int) netip.Addr {
	const hosts = 1<<16 - 3
	n := index%hosts + 1
	base := subnet.Addr().As4()
	return netip.AddrFrom4([4]byte{base[0], base[1], byte(n >> 8), byte(n)})
}

// gone forgets a pod that has ended.
func (m *Machine) gone(p *pod) {
	m.mu.Lock()
	delete(m.pods, p.spec.UID)
	m.mu.Unlock()
	err := m.Store.Delete(folder.Pods, p.spec.Namespace, p.spec.Name, folder.DeleteOptions{UID: p.spec.UID, Now: true})
	if err != nil && !apierrors.IsNotFound(err) {
		m.Log.Error(err, "Failed to delete a pod that has ended", "pod", p.spec.Name)
	}
}

func (m *Machine) now() time.Time { return m.Clock.Now() }

// LogFile is the file with the output of a container of a pod.
func (m *Machine) LogFile(pod, container string) string {
	dir := filepath.Join(m.Dir, "logs")
	_ = os.MkdirAll(dir, 0o755) // #nosec G301 -- what fails here fails when the file is opened
	return filepath.Join(dir, pod+"."+container+".log")
}

func create(store *folder.Store, k *folder.Kind, object any) error {
	u, err := untyped(object)
	if err != nil {
		return err
	}
	if _, err := store.Create(k, u); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", k.Kind, u.GetName(), err)
	}
	return nil
}

func untyped(object any) (*unstructured.Unstructured, error) {
	fields, err := kuberuntime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// writeStatus writes the status of a pod, unless the pod is gone.
func (m *Machine) writeStatus(p *corev1.Pod, status corev1.PodStatus) error {
	fields, err := kuberuntime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return err
	}
	_, err = m.Store.Change(folder.Pods, p.Namespace, p.Name, "", true, func(o *unstructured.Unstructured) error {
		if o.GetUID() != p.UID {
			return apierrors.NewNotFound(corev1.Resource("pods"), p.Name)
		}
		o.Object["status"] = fields
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ofSet makes the missing pods of a StatefulSet.
func (m *Machine) ofSet(object *unstructured.Unstructured, there []*unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if int64(len(there)) >= replicas {
		return nil
	}
	set := &appsv1.StatefulSet{}
	if err := kuberuntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, set); err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", object.GetName(), err)
	}
	for i := range int(replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		if slices.ContainsFunc(there, func(p *unstructured.Unstructured) bool { return p.GetName() == name }) {
			continue
		}
		p := podOf(&set.Spec.Template, set.ObjectMeta, appsv1.SchemeGroupVersion.String(), "StatefulSet")
		p.Name, p.Spec.Hostname, p.Spec.Subdomain = name, name, set.Spec.ServiceName
		p.Labels[appsv1.StatefulSetPodNameLabel], p.Labels[appsv1.PodIndexLabel] = name, strconv.Itoa(i)
		if err := create(m.Store, folder.Pods, p); err != nil {
			return err
		}
	}
	return nil
}

// ofJob makes the pods of an indexed Job, each once, and marks the Job when it is over.
func (m *Machine) ofJob(object *unstructured.Unstructured, there []*unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); len(conditions) > 0 {
		return nil
	}
	completions, found, _ := unstructured.NestedInt64(object.Object, "spec", "completions")
	if !found {
		completions = 1
	}
	if int64(len(there)) >= completions {
		return m.conclude(object, there, completions)
	}
	job := &batchv1.Job{}
	if err := kuberuntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
		return fmt.Errorf("read Job %s: %w", object.GetName(), err)
	}
	for i := range int(completions) {
		index := strconv.Itoa(i)
		if slices.ContainsFunc(there, func(p *unstructured.Unstructured) bool {
			return p.GetLabels()[batchv1.JobCompletionIndexAnnotation] == index
		}) {
			continue
		}
		p := podOf(&job.Spec.Template, job.ObjectMeta, batchv1.SchemeGroupVersion.String(), "Job")
		p.GenerateName, p.Spec.Hostname = fmt.Sprintf("%s-%d-", job.Name, i), fmt.Sprintf("%s-%d", job.Name, i)
		for _, all := range []map[string]string{p.Labels, p.Annotations} {
			all[batchv1.JobCompletionIndexAnnotation] = index
		}
		p.Labels[batchv1.JobNameLabel] = job.Name
		if err := create(m.Store, folder.Pods, p); err != nil {
			return err
		}
	}
	return nil
}

// conclude marks a Job as over when its pods are over.
func (m *Machine) conclude(object *unstructured.Unstructured, there []*unstructured.Unstructured, completions int64) error {
	succeeded, condition := int64(0), ""
	for _, p := range there {
		switch phase, _, _ := unstructured.NestedString(p.Object, "status", "phase"); corev1.PodPhase(phase) {
		case corev1.PodSucceeded:
			succeeded++
		case corev1.PodFailed:
			condition = string(batchv1.JobFailed)
		}
	}
	if succeeded == completions {
		condition = string(batchv1.JobComplete)
	}
	if condition == "" {
		return nil
	}
	_, err := m.Store.Change(folder.Jobs, object.GetNamespace(), object.GetName(), "", true, func(o *unstructured.Unstructured) error {
		o.Object["status"] = map[string]any{"succeeded": succeeded, "conditions": []any{map[string]any{"type": condition, "status": "True", "message": "Its pods are over"}}}
		return nil
	})
	return err
}

// podOf makes a pod from a template, as a controller does for its owner.
func podOf(template *corev1.PodTemplateSpec, owner metav1.ObjectMeta, apiVersion, kind string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.Namespace, Labels: map[string]string{}, Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes}},
	}, Spec: *template.Spec.DeepCopy()}
	maps.Copy(p.Labels, template.Labels)
	maps.Copy(p.Annotations, template.Annotations)
	p.Spec.NodeName = Name
	return p
}
