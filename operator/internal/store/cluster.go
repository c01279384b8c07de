package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// PartLimit is the most that one ConfigMap holds of an object; the API server refuses 1 MiB.
	PartLimit = 900 << 10
	// trialLimit and namespaceLimit bound the bytes that wait in ConfigMaps while a bucket is down.
	// Above these limits the cluster takes only results, and no logs.
	trialLimit     = 48 << 20
	namespaceLimit = 192 << 20
	// PauseLimit bounds the waiting bytes of a namespace: beyond it, no further trial begins there
	// if its results would wait, too. resultsLimit is the most that waiting results may take. The
	// difference leaves room for the results of running trials. The limits keep the cluster's etcd
	// from filling up; it holds 2 GiB by default.
	PauseLimit   = 512 << 20
	resultsLimit = 1 << 30

	partKey          = "part"
	annotationKey    = "assay.dev/object-key"
	annotationSize   = "assay.dev/object-size"
	annotationSHA256 = "assay.dev/object-sha256"
	annotationPart   = "assay.dev/object-part"
)

// Cluster keeps objects of one trial in ConfigMaps, in parts, until they are in a bucket. The trial
// owns the ConfigMaps: they are deleted with it.
type Cluster struct {
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	Trial  *v1alpha1.Trial
	// Current fails if another process now stores the trial's objects. Cluster calls it before it
	// replaces or removes a part. Replacing or removing fails, too, if the part has changed
	// meanwhile. Nil: no other process stores objects.
	Current func(ctx context.Context) error
}

var _ Store = (*Cluster)(nil)

// parts returns how many parts an object of this size has.
func parts(size int64) int { return int(max(1, (size+PartLimit-1)/PartLimit)) }

// Put implements Store.
func (c *Cluster) Put(ctx context.Context, o Object, content io.ReadSeeker) error {
	for i := range parts(o.Size) {
		data, err := io.ReadAll(io.LimitReader(content, PartLimit))
		if err != nil {
			return fmt.Errorf("read %s: %w", o.Key, err)
		}
		if err := c.PutPart(ctx, o, i, data); err != nil {
			return err
		}
	}
	_, kept, err := c.Get(ctx, o.Key)
	if err != nil {
		return err
	}
	defer kept.Close()
	_, err = io.Copy(io.Discard, kept)
	return err
}

// PutPart keeps one part of an object, from 0; every part but the last has PartLimit bytes. The
// object is there when all of its parts are.
func (c *Cluster) PutPart(ctx context.Context, o Object, part int, data []byte) error {
	n := parts(o.Size)
	want := int64(PartLimit)
	if part == n-1 {
		want = o.Size - int64(n-1)*PartLimit
	}
	if part < 0 || part >= n || int64(len(data)) != want {
		return fmt.Errorf("part %d of %s has %d bytes; it has %d parts, and that one %d bytes", part, o.Key, len(data), n, want)
	}
	if part == 0 {
		if err := c.makeRoom(ctx, o); err != nil {
			return err
		}
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Trial.Namespace, Name: c.partName(o.Key, part),
			Labels: map[string]string{v1alpha1.LabelTrial: c.Trial.Name, v1alpha1.LabelExperiment: c.Trial.Spec.Experiment, v1alpha1.LabelResults: v1alpha1.ResultsKept},
			Annotations: map[string]string{
				annotationKey: o.Key, annotationSize: strconv.FormatInt(o.Size, 10), annotationSHA256: o.SHA256, annotationPart: strconv.Itoa(part),
			},
		},
		BinaryData: map[string][]byte{partKey: data},
	}
	if err := controllerutil.SetControllerReference(c.Trial, m, c.Client.Scheme()); err != nil {
		return fmt.Errorf("own %s: %w", m.Name, err)
	}
	err := c.Client.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		err = c.replace(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("keep part %d of %s: %w", part, o.Key, err)
	}
	return nil
}

// replace writes over the stored part.
func (c *Cluster) replace(ctx context.Context, m *corev1.ConfigMap) error {
	if c.Current == nil {
		return c.Client.Update(ctx, m)
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := c.Reader.Get(ctx, client.ObjectKeyFromObject(m), there); err != nil {
		return err
	}
	if err := c.Current(ctx); err != nil {
		return err
	}
	m.ResourceVersion = there.ResourceVersion
	return c.Client.Update(ctx, m)
}

func (c *Cluster) partName(key string, part int) string {
	return fmt.Sprintf("%s-kept-%s-%d", c.Trial.Name, Describe(key, []byte(key)).SHA256[:12], part)
}

// makeRoom refuses an object if the kept ones leave too little room for it. Results have more room
// than logs.
func (c *Cluster) makeRoom(ctx context.Context, o Object) error {
	ofTrial, ofNamespace, err := c.waiting(ctx, o.Key)
	if err != nil {
		return err
	}
	if IsResult(o) {
		if ofNamespace+o.Size > resultsLimit {
			return &Problem{Reason: v1alpha1.ReasonStoreFull, Text: fmt.Sprintf(
				"%d bytes of results are too much to keep in the cluster until the result store answers: %d MiB of a namespace may wait", o.Size, resultsLimit>>20)}
		}
		return nil
	}
	if ofTrial+o.Size > trialLimit || ofNamespace+o.Size > namespaceLimit {
		return &Problem{Reason: v1alpha1.ReasonStoreFull, Text: fmt.Sprintf(
			"%d bytes that are no result are too much to keep in the cluster until the result store answers: %d MiB of a trial and %d of a namespace may wait",
			o.Size, trialLimit>>20, namespaceLimit>>20)}
	}
	return nil
}

// waiting is how many bytes are kept of the trial and of its namespace, without the trial's object
// of that key.
func (c *Cluster) waiting(ctx context.Context, without string) (ofTrial, ofNamespace int64, err error) {
	kept, err := c.list(ctx, client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsKept})
	if err != nil {
		return 0, 0, err
	}
	for i := range kept {
		m := &kept[i]
		own := m.Labels[v1alpha1.LabelTrial] == c.Trial.Name
		if m.Annotations[annotationPart] != "0" || own && m.Annotations[annotationKey] == without {
			continue
		}
		size := describePart(m).Size
		ofNamespace += size
		if own {
			ofTrial += size
		}
	}
	return ofTrial, ofNamespace, nil
}

// Waiting is how many bytes are kept of all trials of the namespace.
func (c *Cluster) Waiting(ctx context.Context) (int64, error) {
	_, all, err := c.waiting(ctx, "")
	return all, err
}

// list returns the ConfigMaps of kept parts without their data.
func (c *Cluster) list(ctx context.Context, labels client.MatchingLabels) ([]metav1.PartialObjectMetadata, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.Reader.List(ctx, all, client.InNamespace(c.Trial.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list what is kept in the cluster: %w", err)
	}
	return all.Items, nil
}

func (c *Cluster) ofTrial() client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.LabelTrial: c.Trial.Name, v1alpha1.LabelResults: v1alpha1.ResultsKept}
}

func describePart(m metav1.Object) Object {
	a := m.GetAnnotations()
	size, err := strconv.ParseInt(a[annotationSize], 10, 64)
	if err != nil {
		return Object{}
	}
	return Object{Key: a[annotationKey], Size: size, SHA256: a[annotationSHA256]}
}

// List implements Store. It leaves out objects with missing parts, whose sender did not finish.
func (c *Cluster) List(ctx context.Context, prefix string) ([]Object, error) {
	kept, err := c.list(ctx, c.ofTrial())
	if err != nil {
		return nil, err
	}
	have := map[Object]int{}
	for i := range kept {
		if o := describePart(&kept[i]); strings.HasPrefix(o.Key, prefix) && o.Key != "" {
			have[o]++
		}
	}
	maps.DeleteFunc(have, func(o Object, n int) bool { return n < parts(o.Size) })
	return slices.SortedFunc(maps.Keys(have), func(a, b Object) int { return strings.Compare(a.Key, b.Key) }), nil
}

// Get implements Store.
func (c *Cluster) Get(ctx context.Context, key string) (Object, io.ReadCloser, error) {
	first := &corev1.ConfigMap{}
	content := &bytes.Buffer{}
	var o Object
	for i := 0; i == 0 || i < parts(o.Size); i++ {
		m := &corev1.ConfigMap{}
		if err := c.Reader.Get(ctx, client.ObjectKey{Namespace: c.Trial.Namespace, Name: c.partName(key, i)}, m); apierrors.IsNotFound(err) {
			return Object{}, nil, fmt.Errorf("%s, part %d: %w", key, i, ErrNotFound)
		} else if err != nil {
			return Object{}, nil, fmt.Errorf("read part %d of %s: %w", i, key, err)
		}
		if i == 0 {
			first, o = m, describePart(m)
		}
		if describePart(m) != o || o.Key != key {
			return Object{}, nil, Corrupted(key, errors.New("the ConfigMaps "+first.Name+" and "+m.Name+" are of different objects"))
		}
		content.Write(m.BinaryData[partKey])
	}
	return o, Checked(o, io.NopCloser(content)), nil
}

// Clear removes all that is kept.
func (c *Cluster) Clear(ctx context.Context) error {
	return c.remove(ctx, func(Object) bool { return true })
}

// Remove removes one object, if it is kept.
func (c *Cluster) Remove(ctx context.Context, key string) error {
	return c.remove(ctx, func(o Object) bool { return o.Key == key })
}

func (c *Cluster) remove(ctx context.Context, which func(Object) bool) error {
	kept, err := c.list(ctx, c.ofTrial())
	if err != nil {
		return err
	}
	for i := range kept {
		m := &kept[i]
		if !which(describePart(m)) {
			continue
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
		var only []client.DeleteOption
		if c.Current != nil {
			if err := c.Current(ctx); err != nil {
				return err
			}
			only = append(only, client.Preconditions{ResourceVersion: &m.ResourceVersion})
		}
		if err := c.Client.Delete(ctx, object, only...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete what was kept of trial %s: %w", c.Trial.Name, err)
		}
	}
	return nil
}
