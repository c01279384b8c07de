package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"assay.dev/assay/operator/api/v1alpha1"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		panic(err)
	}
	return s
}()

// server is the API server: it has objects with versions, and notifies watchers of changes. It
// never changes a stored object, but replaces it.
type server struct {
	*scheduler

	objects map[string]*collection // by kind
	version int64
	uids    int
	// changed are called at every change. old or now is nil if there is none.
	changed []func(kind string, old, now client.Object)
	// denies says why a policy of the cluster's owner rejects an object; nil: it does not.
	denies func(o client.Object) error
	// forbids says why a manager may not do an action any more; nil: it may.
	forbids func(verb, kind, namespace string) error
	// slow is the most by which a call is slowed down.
	slow time.Duration
	// faster divides the times of calls; 0: 1.
	faster time.Duration
}

func newServer(s *scheduler) *server {
	return &server{scheduler: s, objects: map[string]*collection{}}
}

// limit is the largest size of the data in a ConfigMap or Secret.
const limit = 1 << 20

// kindNames has the kinds of types, which the scheme finds by reflection.
var kindNames sync.Map

func kindOf(o runtime.Object) string {
	of := reflect.TypeOf(o)
	if kind, known := kindNames.Load(of); known {
		return kind.(string)
	}
	kind := kindInScheme(o)
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList: // of any kind
	default:
		kindNames.Store(of, kind)
	}
	return kind
}

func kindInScheme(o runtime.Object) string {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(gvk.Kind, "List")
}

func resourceOf(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kind) + "s"}
}

// separate reports whether a kind has a status subresource, which Update leaves alone.
func separate(kind string) bool { return kind == "Trial" || kind == "Experiment" || kind == "System" }

func (a *server) find(kind string, key types.NamespacedName) client.Object {
	return a.objects[kind].get(key)
}

// each returns the objects of a kind, in the order of names.
func (a *server) each(kind string) []client.Object {
	return a.objects[kind].inOrder()
}

// put replaces or deletes an object, and reports the change.
func (a *server) put(kind string, key types.NamespacedName, old, now client.Object) {
	a.version++
	if a.objects[kind] == nil {
		a.objects[kind] = &collection{}
	}
	if now != nil {
		now.SetResourceVersion(strconv.FormatInt(a.version, 10))
		a.objects[kind].put(now)
	} else {
		a.objects[kind].remove(key)
	}
	for _, f := range a.changed {
		f(kind, old, now)
	}
}

func (a *server) create(o client.Object) error {
	kind, key := kindOf(o), client.ObjectKeyFromObject(o)
	if a.denies != nil {
		if err := a.denies(o); err != nil {
			return err
		}
	}
	if a.find(kind, key) != nil {
		return apierrors.NewAlreadyExists(resourceOf(kind), o.GetName())
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if err := tooLarge(kind, o); err != nil {
		return err
	}
	a.uids++
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.uids)))
	o.SetCreationTimestamp(metav1.NewTime(a.now.Truncate(time.Second)))
	o.SetGeneration(1)
	stored := o.DeepCopyObject().(client.Object)
	clearStatus(stored)
	a.put(kind, key, nil, stored)
	copyInto(o, stored)
	return nil
}

func tooLarge(kind string, o client.Object) error {
	size := 0
	switch o := o.(type) {
	case *corev1.ConfigMap:
		for _, b := range o.BinaryData {
			size += len(b)
		}
		for _, t := range o.Data {
			size += len(t)
		}
	case *corev1.Secret:
		for _, b := range o.Data {
			size += len(b)
		}
	}
	if size > limit {
		return apierrors.NewRequestEntityTooLargeError(kind + " " + o.GetName())
	}
	return nil
}

func clearStatus(o client.Object) {
	switch o := o.(type) {
	case *v1alpha1.Trial:
		o.Status = v1alpha1.TrialStatus{}
	case *v1alpha1.Experiment:
		o.Status = v1alpha1.ExperimentStatus{}
	}
}

// keepStatus replaces the status by that of the stored object.
func keepStatus(o, there client.Object) {
	switch o := o.(type) {
	case *v1alpha1.Trial:
		o.Status = there.(*v1alpha1.Trial).Status
	case *v1alpha1.Experiment:
		o.Status = there.(*v1alpha1.Experiment).Status
	}
}

// onlyStatus replaces all but the status by the stored object.
func onlyStatus(o, there client.Object) client.Object {
	out := there.DeepCopyObject().(client.Object)
	switch o := o.(type) {
	case *v1alpha1.Trial:
		out.(*v1alpha1.Trial).Status = o.Status
	case *v1alpha1.Experiment:
		out.(*v1alpha1.Experiment).Status = o.Status
	default:
		return o
	}
	return out
}

func specOf(o client.Object) any {
	switch o := o.(type) {
	case *v1alpha1.Trial:
		return o.Spec
	case *v1alpha1.Experiment:
		return o.Spec
	}
	return nil
}

// copyInto overwrites a caller's object with the one in the API server.
func copyInto(dst, src client.Object) {
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src.DeepCopyObject()).Elem())
}

// replace writes an object if its version is still the one that the caller has read. An empty
// version matches every version.
func (a *server) replace(o client.Object, version string, status bool) error {
	kind, key := kindOf(o), client.ObjectKeyFromObject(o)
	there := a.find(kind, key)
	switch {
	case there == nil:
		return apierrors.NewNotFound(resourceOf(kind), o.GetName())
	case o.GetUID() != "" && o.GetUID() != there.GetUID(), version != "" && version != there.GetResourceVersion():
		return apierrors.NewConflict(resourceOf(kind), o.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if err := tooLarge(kind, o); err != nil {
		return err
	}
	now := o.DeepCopyObject().(client.Object)
	switch {
	case status:
		now = onlyStatus(now, there)
	case separate(kind):
		keepStatus(now, there)
	}
	now.SetUID(there.GetUID())
	now.SetCreationTimestamp(there.GetCreationTimestamp())
	now.SetDeletionTimestamp(there.GetDeletionTimestamp())
	now.SetGeneration(there.GetGeneration())
	if !status && !reflect.DeepEqual(specOf(now), specOf(there)) {
		now.SetGeneration(there.GetGeneration() + 1)
	}
	now.SetResourceVersion(there.GetResourceVersion())
	if reflect.DeepEqual(now, there) {
		copyInto(o, there)
		return nil // a write that changes nothing makes no version
	}
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 && kind != "Pod" {
		a.put(kind, key, there, nil)
		copyInto(o, now)
		return nil
	}
	a.put(kind, key, there, now)
	copyInto(o, now)
	return nil
}

// patch merges a patch.
func (a *server) patch(o client.Object, data []byte, status bool) error {
	kind, key := kindOf(o), client.ObjectKeyFromObject(o)
	there := a.find(kind, key)
	if there == nil {
		return apierrors.NewNotFound(resourceOf(kind), o.GetName())
	}
	var lock struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	before, err := json.Marshal(there)
	if err != nil {
		return err
	}
	merged, err := jsonpatch.MergePatch(before, data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	now := reflect.New(reflect.TypeOf(there).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(merged, now); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := a.replace(now, lock.Metadata.ResourceVersion, status); err != nil {
		return err
	}
	if m, partial := o.(*metav1.PartialObjectMetadata); partial {
		m.ResourceVersion, m.Annotations, m.UID = now.GetResourceVersion(), now.GetAnnotations(), now.GetUID()
		return nil
	}
	copyInto(o, now)
	return nil
}

// remove deletes an object at once, or after its finalizers or its kubelet have released it.
func (a *server) remove(o client.Object, opts client.DeleteOptions) error {
	kind, key := kindOf(o), client.ObjectKeyFromObject(o)
	there := a.find(kind, key)
	if there == nil {
		return apierrors.NewNotFound(resourceOf(kind), o.GetName())
	}
	if p := opts.Preconditions; p != nil && (p.UID != nil && *p.UID != there.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != there.GetResourceVersion()) {
		return apierrors.NewConflict(resourceOf(kind), o.GetName(), errors.New("the precondition does not hold"))
	}
	pod, isPod := there.(*corev1.Pod)
	scheduled := isPod && pod.Spec.NodeName != "" && !(opts.GracePeriodSeconds != nil && *opts.GracePeriodSeconds == 0)
	if len(there.GetFinalizers()) == 0 && !scheduled {
		a.put(kind, key, there, nil)
		return nil
	}
	if there.GetDeletionTimestamp() != nil {
		return nil
	}
	now := there.DeepCopyObject().(client.Object)
	at := metav1.NewTime(a.now)
	if scheduled {
		grace := int64(30)
		if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = *g
		}
		at = metav1.NewTime(a.now.Add(time.Duration(grace) * time.Second))
	}
	now.SetDeletionTimestamp(&at)
	a.put(kind, key, there, now)
	return nil
}

// list fills a list from the objects of a kind.
func list(into client.ObjectList, all *collection, opts []client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	all = all.selected(o.FieldSelector)
	found := all.within(o.Namespace)
	if selector := o.LabelSelector; selector != nil && !selector.Empty() {
		found = nil
		for _, one := range all.within(o.Namespace) {
			if selector.Matches(labels.Set(one.GetLabels())) {
				found = append(found, one)
			}
		}
	}
	if l, partial := into.(*metav1.PartialObjectMetadataList); partial {
		l.Items = nil
		for _, one := range found {
			m := meta.AsPartialObjectMetadata(one.(metav1.Object))
			l.Items = append(l.Items, *m.DeepCopy())
		}
		return nil
	}
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	switch l := into.(type) { // the lists that are long, without reflection
	case *v1alpha1.TrialList:
		l.Items = items[v1alpha1.Trial](found, shared)
		return nil
	case *corev1.PodList:
		l.Items = items[corev1.Pod](found, shared)
		return nil
	case *corev1.NodeList:
		l.Items = items[corev1.Node](found, shared)
		return nil
	}
	objects := make([]runtime.Object, len(found))
	for i, one := range found {
		if objects[i] = one; !shared {
			objects[i] = one.DeepCopyObject()
		}
	}
	return meta.SetList(into, objects)
}

// items returns the objects of a list: copies or, if shared, what the objects refer to.
func items[T any, P interface {
	*T
	DeepCopyInto(into *T)
}](found []client.Object, shared bool) []T {
	out := make([]T, len(found))
	for i, o := range found {
		if one := any(o).(P); shared {
			out[i] = *one
		} else {
			one.DeepCopyInto(&out[i])
		}
	}
	return out
}

// calls is a manager's client of the API server, past its cache. Every call takes a while, and may
// fail before or after its effect.
type calls struct {
	*server

	of *manager
}

var _ client.Client = (*calls)(nil)

// call makes one call. Like a real connection, it may lose the request or the answer.
func (c *calls) call(write bool, verb string, o runtime.Object, namespace, name string, do func() error) error {
	if c.running == nil {
		panic("a manager calls the API server outside of a process")
	}
	faster := max(1, c.faster)
	c.wait(c.between(300*time.Microsecond, 2*time.Millisecond+c.slow) / faster)
	point := verb + " " + kindOf(o)
	if write {
		c.of.point("before "+point, name)
	}
	if err := c.of.trouble(); err != nil {
		return err
	}
	if c.forbids != nil {
		if err := c.forbids(verb, kindOf(o), namespace); err != nil {
			return err
		}
	}
	err := do()
	if write {
		c.trace("%s %s %s: %s", c.of.name, point, name, said(err))
		c.of.point("after "+point, name)
	}
	c.wait(c.between(200*time.Microsecond, time.Millisecond) / faster)
	if lost := c.of.trouble(); lost != nil {
		return lost
	}
	return err
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func (c *calls) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return c.call(false, "get", o, key.Namespace, key.Name, func() error {
		there := c.find(kindOf(o), key)
		if there == nil {
			return apierrors.NewNotFound(resourceOf(kindOf(o)), key.Name)
		}
		if m, partial := o.(*metav1.PartialObjectMetadata); partial {
			meta.AsPartialObjectMetadata(there.(metav1.Object)).DeepCopyInto(m)
			return nil
		}
		copyInto(o, there)
		return nil
	})
}

func (c *calls) List(_ context.Context, l client.ObjectList, opts ...client.ListOption) error {
	of := client.ListOptions{}
	of.ApplyOptions(opts)
	return c.call(false, "list", l, of.Namespace, "", func() error { return list(l, c.objects[kindOf(l)], opts) })
}

func (c *calls) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.call(true, "create", o, o.GetNamespace(), o.GetName(), func() error { return c.create(o) })
}

func (c *calls) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.call(true, "update", o, o.GetNamespace(), o.GetName(), func() error { return c.replace(o, o.GetResourceVersion(), false) })
}

func (c *calls) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	return c.call(true, "patch", o, o.GetNamespace(), o.GetName(), func() error { return c.patch(o, data, false) })
}

func (c *calls) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	d := client.DeleteOptions{}
	d.ApplyOptions(opts)
	return c.call(true, "delete", o, o.GetNamespace(), o.GetName(), func() error { return c.remove(o, d) })
}

func (c *calls) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	panic("nobody deletes all of a kind")
}

// Apply of a ConfigMap, the only kind that is applied, replaces the whole object.
func (c *calls) Apply(_ context.Context, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	o := &corev1.ConfigMap{}
	if err := json.Unmarshal(raw, o); err != nil {
		return err
	}
	return c.call(true, "apply", o, o.Namespace, o.Name, func() error {
		if c.find("ConfigMap", client.ObjectKeyFromObject(o)) == nil {
			return c.create(o)
		}
		return c.replace(o, "", false)
	})
}

func (c *calls) Status() client.SubResourceWriter { return statusCalls{c} }

func (c *calls) SubResource(string) client.SubResourceClient { panic("nobody asks for this") }

func (c *calls) Scheme() *runtime.Scheme { return scheme }

func (c *calls) RESTMapper() meta.RESTMapper { panic("nobody asks for the mapper") }

func (c *calls) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, scheme)
}

func (c *calls) IsObjectNamespaced(o runtime.Object) (bool, error) { return kindOf(o) != "Node", nil }

// statusCalls write statuses.
type statusCalls struct{ *calls }

func (c statusCalls) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	panic("nobody creates a status")
}

func (c statusCalls) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	panic("nobody applies a status")
}

func (c statusCalls) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return c.call(true, "update status of", o, o.GetNamespace(), o.GetName(), func() error { return c.replace(o, o.GetResourceVersion(), true) })
}

func (c statusCalls) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	return c.call(true, "patch status of", o, o.GetNamespace(), o.GetName(), func() error { return c.patch(o, data, true) })
}

// cached are the kinds that a manager caches; it reads all others from the API server.
var cached = map[string]bool{
	kindOf(&v1alpha1.Trial{}): true, kindOf(&v1alpha1.Experiment{}): true, kindOf(&v1alpha1.System{}): true, kindOf(&v1alpha1.Dataset{}): true,
	kindOf(&corev1.Pod{}): true, kindOf(&appsv1.StatefulSet{}): true, kindOf(&batchv1.Job{}): true, kindOf(&corev1.Service{}): true,
}
