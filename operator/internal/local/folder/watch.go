package folder

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watch sends the changes after a version. If the client asks for it (sendInitialEvents) or names
// no version, watch first sends all present objects.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request) error {
	selects, err := q.selector()
	if err != nil {
		return err
	}
	out := &watcher{w: w, q: q, selects: selects}
	version, err := out.begin(s.Store)
	if err != nil {
		return err
	}
	ctx := r.Context()
	over := make(<-chan time.Time)
	if seconds, err := strconv.Atoi(q.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		over = timer.C
	}
	for {
		if err := s.Store.reread(); err != nil {
			return err
		}
		changes, next, ok := s.Store.since(version)
		if !ok {
			gone := apierrors.NewResourceExpired("the changes since that version are forgotten").Status()
			gone.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			return out.send(watch.Error, gone)
		}
		for _, c := range changes {
			version = c.version
			if err := out.change(c); err != nil {
				return ignoreClosed(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-next:
		case <-s.Store.later():
		}
	}
}

// later returns a channel that fires when it is time to read files again. It never fires if this
// process owns the files.
func (s *Store) later() <-chan time.Time {
	if s.root == "" {
		return nil
	}
	return time.After(rereadAfter)
}

// watcher writes the events of one watch.
type watcher struct {
	w       http.ResponseWriter
	q       *request
	selects func(*unstructured.Unstructured) bool
}

// begin returns the version after which changes are sent. Before that it sends the present objects,
// if the client needs them.
func (o *watcher) begin(store *Store) (int64, error) {
	asked, initial := o.q.query.Get("resourceVersion"), isTrue(o.q.query.Get("sendInitialEvents"))
	o.w.Header().Set("Content-Type", "application/json")
	o.w.WriteHeader(http.StatusOK)
	if version, err := strconv.ParseInt(asked, 10, 64); err == nil && version > 0 && !initial {
		return version, nil
	}
	entries, version := store.list(o.q.kind, o.q.namespace, o.selects)
	for _, e := range entries {
		if err := o.send(watch.Added, o.q.shown(e)); err != nil {
			return 0, ignoreClosed(err)
		}
	}
	if initial {
		return version, o.send(watch.Bookmark, map[string]any{"kind": o.q.kind.Kind, "apiVersion": o.q.kind.apiVersion(), "metadata": map[string]any{
			"resourceVersion": strconv.FormatInt(version, 10), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	return version, nil
}

// change sends a change as the selector sees it. An object that the selector no longer selects is
// deleted for this watch.
func (o *watcher) change(c change) error {
	if c.kind != o.q.kind {
		return nil
	}
	is, was := o.selects(c.is.object), c.was != nil && o.selects(c.was.object)
	switch {
	case c.what == watch.Deleted && was, c.what == watch.Modified && was && !is:
		return o.send(watch.Deleted, o.q.shown(c.is))
	case c.what == watch.Deleted || !is:
		return nil
	case was:
		return o.send(watch.Modified, o.q.shown(c.is))
	}
	return o.send(watch.Added, o.q.shown(c.is))
}

func (o *watcher) send(what watch.EventType, object any) error {
	raw, err := json.Marshal(map[string]any{"type": what, "object": object})
	if err != nil {
		return err
	}
	if _, err := o.w.Write(append(raw, '\n')); err != nil {
		return err
	}
	if f, ok := o.w.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}
