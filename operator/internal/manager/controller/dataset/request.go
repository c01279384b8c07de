package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/nodes"
)

// maxNodes is how many nodes a Dataset may name.
const maxNodes = 256

// usedEvery is how often the use of a data set is written down.
const usedEvery = time.Minute

// Requester requests the data sets of trials.
type Requester struct {
	Client client.Client
	// Reader reads past the cache: nodes.
	Reader client.Reader
	Clock  clock.PassiveClock
}

// Status is the status of all data sets of a trial.
type Status struct {
	// Ready: every node on which a pod of the trial may run has all data sets.
	Ready bool
	// Failed: a data set cannot be prepared, and time does not change that.
	Failed bool
	// Message says what the trial waits for, or why it failed.
	Message string
	// Sets are the data sets of the trial, once they are ready.
	Sets []v1alpha1.TrialDataset
}

// Ensure requests the data sets of a trial on the nodes on which its pods may run.
func (k *Requester) Ensure(ctx context.Context, namespace string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) (*Status, error) {
	wanted, err := render.Datasets(namespace, spec, system)
	if err != nil {
		return &Status{Failed: true, Message: err.Error() + "."}, nil //nolint:nilerr // the System is wrong: its author is told, and it is not tried again
	}
	a := &Status{Ready: true}
	for i := range wanted {
		names, problem, err := k.nodesFor(ctx, spec, &system.Datasets[i])
		if err != nil {
			return nil, err
		}
		if problem != "" {
			return &Status{Failed: len(names) > 0, Message: problem}, nil
		}
		d, err := k.ensure(ctx, &wanted[i], names)
		if err != nil {
			return nil, err
		}
		if err := k.add(ctx, a, d, names); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// nodesFor returns the nodes for a data set. problem says that there are too many nodes, or none
// now.
func (k *Requester) nodesFor(ctx context.Context, spec *v1alpha1.TrialSpec, set *v1alpha1.DatasetSource) (names []string, problem string, err error) {
	var wanted []map[string]string // labels of nodes
	add := func(pool string, regions []string) {
		if spec.Placement.ByRegion == nil {
			regions = []string{""}
		}
		for _, region := range regions {
			wanted = append(wanted, spec.Placement.NodeSelector(pool, region))
		}
	}
	if set.ForReplicas() {
		add(spec.Placement.Replicas, placement.Regions(spec.Topology))
	}
	for _, c := range set.Components {
		add(spec.Placement.PoolOf(c), placement.RegionsOf(spec.Topology, c))
	}
	if set.ForClients() {
		add(spec.Placement.Clients, spec.Clients.Regions)
	}
	for _, want := range wanted {
		found, err := nodes.For(ctx, k.Reader, want)
		if err != nil {
			return nil, "", err
		}
		if len(found) == 0 {
			return nil, fmt.Sprintf("No node%s is ready for its data sets.", nodes.Labelled(want)), nil
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxNodes {
		return names, fmt.Sprintf("The pods may run on %d nodes, and a data set is kept on %d at most; name a pool in spec.placement.", len(names), maxNodes), nil
	}
	return names, "", nil
}

// ensure makes the Dataset if it does not exist. It adds the nodes to it, and sets the present
// bounds of the System.
func (k *Requester) ensure(ctx context.Context, want *v1alpha1.Dataset, names []string) (*v1alpha1.Dataset, error) {
	d := &v1alpha1.Dataset{}
	err := k.Client.Get(ctx, client.ObjectKeyFromObject(want), d)
	if apierrors.IsNotFound(err) {
		want.Spec.Nodes = names
		err = k.Client.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) { // the cache has not seen it yet
			err = k.Reader.Get(ctx, client.ObjectKeyFromObject(want), want)
		}
		return want, wrap("create a Dataset", err)
	}
	if err != nil || !d.DeletionTimestamp.IsZero() {
		return d, wrap("read a Dataset", err)
	}
	before := d.DeepCopy()
	for _, n := range names {
		if !slices.Contains(d.Spec.Nodes, n) {
			d.Spec.Nodes = append(d.Spec.Nodes, n)
		}
	}
	if len(d.Spec.Nodes) > maxNodes { // remove nodes that are gone
		d.Spec.Nodes = slices.DeleteFunc(d.Spec.Nodes, func(n string) bool { return !slices.Contains(names, n) && !has(d, n) })
	}
	d.Spec.Size, d.Spec.Timeout, d.Spec.ImagePullPolicy, d.Spec.Resources = want.Spec.Size, want.Spec.Timeout, want.Spec.ImagePullPolicy, want.Spec.Resources
	if equality.Semantic.DeepEqual(before.Spec, d.Spec) {
		return d, nil
	}
	return d, wrap("change a Dataset", k.Client.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// add adds the state of one data set to the status.
func (k *Requester) add(ctx context.Context, a *Status, d *v1alpha1.Dataset, names []string) error {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.DatasetReady)
	lacking := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return has(d, n) })
	switch {
	case !d.DeletionTimestamp.IsZero():
		a.say("Dataset %s is being removed, and will then be prepared again.", d.Name)
		return nil
	case len(lacking) > 0 && c != nil && failed(c) && (c.ObservedGeneration == d.Generation || c.Reason == v1alpha1.ReasonNoClaim):
		a.Failed = true
		a.say("Dataset %s cannot be prepared. %s", d.Name, c.Message)
		return nil
	case len(lacking) > 0:
		text := "It was just asked for."
		if c != nil && c.Status != metav1.ConditionTrue {
			text = c.Message
		}
		a.say("Dataset %s is being prepared: %s", d.Name, text)
		return nil
	}
	set := v1alpha1.TrialDataset{Name: d.Spec.Recipe.Name, Dataset: d.Name, Digest: d.Status.Digest, Bytes: d.Status.Bytes, Files: d.Status.Files}
	for _, n := range d.Status.Nodes {
		if slices.Contains(names, n.Name) {
			set.PreparedNodes++
			if n.Digest != "" {
				set.Digests = append(set.Digests, v1alpha1.DatasetDigest{Node: n.Name, Digest: n.Digest})
			}
			set.PrepareMilliseconds = max(set.PrepareMilliseconds, n.RecipeSeconds*1000+n.KeepMilliseconds)
		}
	}
	slices.SortFunc(set.Digests, func(a, b v1alpha1.DatasetDigest) int { return strings.Compare(a.Node, b.Node) })
	a.Sets = append(a.Sets, set)
	return k.used(ctx, d)
}

// say adds a sentence about a data set that is not ready.
func (a *Status) say(format string, args ...any) {
	a.Ready = false
	a.Message = strings.TrimSpace(a.Message + " " + fmt.Sprintf(format, args...))
}

// used records, from time to time, that a data set is in use.
func (k *Requester) used(ctx context.Context, d *v1alpha1.Dataset) error {
	now := metav1.NewTime(k.Clock.Now())
	if last := d.Status.LastUsed; last != nil && now.Sub(last.Time) < usedEvery {
		return nil
	}
	before := d.DeepCopy()
	d.Status.LastUsed = &now
	return wrap("write that a data set is used", k.Client.Status().Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
