package simulation

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/trial"
)

// view is the cache of one manager: its knowledge of the kinds that it watches. Each kind has a
// watch of its own, which may be late. After a watch was broken, the manager sees the newest state
// at once, without the states in between.
type view struct {
	*calls

	kinds map[string]*watch
}

type watch struct {
	objects *collection
	waiting []change
	// until is when the watch works again. nextAt is when the next change arrives.
	until, nextAt time.Time
}

type change struct{ old, now client.Object }

// newView begins with all existing objects, like an informer.
func newView(c *calls) *view {
	v := &view{calls: c, kinds: map[string]*watch{}}
	for kind := range cached {
		v.kinds[kind] = &watch{objects: c.objects[kind].clone()}
	}
	for _, indexes := range []map[string]client.IndexerFunc{admission.Indexes, trial.Indexes} {
		for field, of := range indexes {
			v.kinds["Trial"].objects.index(field, of)
		}
	}
	return v
}

// changed sends one change to the manager.
func (v *view) changed(kind string, old, now client.Object) {
	w := v.kinds[kind]
	if w == nil {
		return
	}
	at := v.now.Add(v.between(500*time.Microsecond, 4*time.Millisecond))
	if v.of.gone {
		return // the draw stays, so that a seed stays the same history
	}
	w.waiting = append(w.waiting, change{old, now})
	if at.Before(w.nextAt) {
		at = w.nextAt // keeps the changes in order
	}
	if at.Before(w.until) {
		at = w.until
	}
	w.nextAt = at
	v.after(at.Sub(v.now), func() { v.deliver(kind, w) })
}

// deliver shows the manager the next change. If the watch is broken, it does so later.
func (v *view) deliver(kind string, w *watch) {
	if v.of.gone || len(w.waiting) == 0 {
		return
	}
	if now := maxTime(w.until, v.of.stoppedUntil); v.now.Before(now) {
		v.after(now.Sub(v.now), func() { v.deliver(kind, w) })
		return
	}
	next := w.waiting[0]
	w.waiting = w.waiting[1:]
	if !w.until.IsZero() { // the watch begins anew, with a list
		w.until = time.Time{}
		w.relist(v, kind, next)
		return
	}
	w.apply(v, kind, next)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// relist skips the states that a watch missed.
func (w *watch) relist(v *view, kind string, first change) {
	changes := append([]change{first}, w.waiting...)
	w.waiting = nil
	last := map[types.NamespacedName]change{}
	var order []types.NamespacedName
	for _, c := range changes {
		o := c.now
		if o == nil {
			o = c.old
		}
		key := client.ObjectKeyFromObject(o)
		if _, seen := last[key]; !seen {
			order = append(order, key)
		}
		last[key] = c
	}
	for _, key := range order {
		w.apply(v, kind, change{w.objects.get(key), last[key].now})
	}
}

func (w *watch) apply(v *view, kind string, c change) {
	switch {
	case c.now != nil:
		w.objects.put(c.now)
	case c.old != nil:
		w.objects.remove(client.ObjectKeyFromObject(c.old))
	default:
		return // it was made and deleted while the watch was broken
	}
	v.of.saw(kind, c.old, c.now)
}

// forget drops the objects of an ended manager, of which the world keeps only the clock.
func (v *view) forget() {
	for _, w := range v.kinds {
		*w = watch{objects: &collection{}}
	}
}

// lag breaks the watch of a kind for a time.
func (v *view) lag(kind string, d time.Duration) {
	if w := v.kinds[kind]; w != nil {
		w.until = maxTime(w.until, v.now.Add(d))
	}
}

func (v *view) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	w := v.kinds[kindOf(o)]
	if w == nil {
		return v.calls.Get(ctx, key, o, opts...)
	}
	there := w.objects.get(key)
	if there == nil {
		return apierrors.NewNotFound(resourceOf(kindOf(o)), key.Name)
	}
	get := client.GetOptions{}
	if get.ApplyOptions(opts); get.UnsafeDisableDeepCopy != nil && *get.UnsafeDisableDeepCopy {
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(there).Elem())
		return nil
	}
	copyInto(o, there)
	return nil
}

func (v *view) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	w := v.kinds[kindOf(l.(runtime.Object))]
	if w == nil {
		return v.calls.List(ctx, l, opts...)
	}
	return list(l, w.objects, opts)
}
