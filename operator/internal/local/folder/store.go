// Package folder serves the API of a cluster from a folder: objects are files. Its users read and
// write them through client-go, as with an API server, but in the same process.
//
//	DIR/NAME/experiments/NAME.json, DIR/NAME/trials/NAME-000.json, DIR/NAME/configmaps/...
//
// It has the features that Assay's controllers and verbs need. An object changes only under the
// version that was read, and watches see every change in order. An object with finalizers stays
// until they are gone. Deleting an object deletes the objects that it owns. A status has an
// endpoint of its own. Assay's own kinds have the defaults, bounds and immutable fields of their
// schemas (package admit).
//
// It has no users, no rights and no managed fields: applying an object replaces its fields as a
// whole. It has one rule of Assay's webhooks: an Experiment with planned trials keeps its spec.
//
// A file is replaced by renaming, so that a killed process leaves the old or the new one. Nothing
// is forced onto the disk: a machine that loses its power may lose the last seconds.
package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Namespace is the only namespace.
const Namespace = "default"

// mostEvents is how many events are kept for watches that resume.
const mostEvents = 4096

// Store holds objects. All methods may be called at the same time.
type Store struct {
	// WithoutWebhooks allows changes of an Experiment with planned trials. A cluster allows them if
	// an administrator has switched Assay's webhooks off. Set it before the store is used.
	WithoutWebhooks bool

	clock clock.PassiveClock
	// dir gets the files of the one experiment that is carried out. Empty: nothing may be written.
	dir string
	// root is a folder that is only read. It is read again from time to time, since another process
	// writes to it. Empty: this process owns the files.
	root string
	// shared gets the files of the kinds that all experiments share. Empty: these objects are no
	// files.
	shared string

	mu      sync.Mutex
	version int64
	objects map[*Kind]map[string]*entry // by namespace/name
	events  []change
	dropped int64         // version of the newest event that was dropped
	changed chan struct{} // closed and replaced at each event
	looked  time.Time     // when root was last read
	files   map[string]file
}

// file describes a file when it was last read.
type file struct {
	kind *Kind
	key  string
	size int64
	at   time.Time
}

// entry is an object with its JSON. The object is never changed in place.
type entry struct {
	object *unstructured.Unstructured
	raw    json.RawMessage
}

// change is an event for watches.
type change struct {
	version int64
	kind    *Kind
	what    watch.EventType
	is, was *entry // is: after the change, or before the deletion
}

func newStore(clk clock.PassiveClock) *Store {
	s := &Store{clock: clk, objects: map[*Kind]map[string]*entry{}, changed: make(chan struct{})}
	for _, k := range Kinds {
		s.objects[k] = map[string]*entry{}
	}
	return s
}

// Open opens the folder of one experiment, to carry it out. The folder need not exist.
func Open(dir, name string, clk clock.PassiveClock) (*Store, error) {
	s := newStore(clk)
	s.dir = filepath.Join(dir, name)
	if err := os.MkdirAll(s.dir, 0o755); err != nil { // #nosec G301 -- results are for everybody
		return nil, fmt.Errorf("make the folder of results: %w", err)
	}
	return s, s.read(s.dir)
}

// Share reads the objects that all experiments of the machine share from a folder, and keeps them
// there. The folder need not exist. It deletes objects for whose name valid returns false.
func (s *Store) Share(dir string, valid func(name string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = dir
	for _, k := range Kinds {
		if !k.Shared {
			continue
		}
		if err := s.readKind(k, dir); err != nil {
			return err
		}
		for key, e := range s.objects[k] {
			if valid(e.object.GetName()) {
				continue
			}
			if err := os.Remove(fileIn(dir, k, e.object)); err != nil {
				return fmt.Errorf("forget %s %s: %w", k.Kind, e.object.GetName(), err)
			}
			delete(s.objects[k], key)
		}
	}
	return nil
}

// rereadAfter is how soon to read a folder again to which another process may write.
const rereadAfter = 300 * time.Millisecond

// Read reads the folders of all experiments. The objects cannot be changed. Changes by another
// process appear after a while.
func Read(dir string, clk clock.PassiveClock) (*Store, error) {
	s := newStore(clk)
	s.root, s.files = dir, map[string]file{}
	return s, s.reread()
}

// reread reads the files that have changed since the last time.
func (s *Store) reread() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if s.root == "" || now.Sub(s.looked) < rereadAfter {
		return nil
	}
	s.looked = now
	there := map[string]bool{}
	for _, k := range Kinds {
		if !k.Kept {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(s.root, "*", k.Resource, "*.json"))
		if err != nil {
			return fmt.Errorf("read the folder of results %s: %w", s.root, err)
		}
		for _, path := range paths {
			there[path] = true
			if err := s.rereadFile(k, path); err != nil {
				return err
			}
		}
	}
	for path, f := range s.files {
		if e := s.objects[f.kind][f.key]; !there[path] {
			delete(s.files, path)
			delete(s.objects[f.kind], f.key)
			s.tell(change{kind: f.kind, what: watch.Deleted, is: e, was: e})
		}
	}
	return nil
}

// rereadFile reads a file that has changed. The caller holds s.mu.
func (s *Store) rereadFile(k *Kind, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the file was deleted since it was listed
	}
	if err != nil {
		return fmt.Errorf("read the folder of results: %w", err)
	}
	if f, known := s.files[path]; known && f.size == info.Size() && f.at.Equal(info.ModTime()) {
		return nil
	}
	key, err := s.readFile(k, path)
	if err != nil {
		return err
	}
	_, known := s.files[path]
	s.files[path] = file{kind: k, key: key, size: info.Size(), at: info.ModTime()}
	what := watch.Added
	if known {
		what = watch.Modified
	}
	is := s.objects[k][key]
	c := change{kind: k, what: what, is: is}
	if known {
		c.was = is
	}
	s.tell(c)
	return nil
}

// read reads the files of an experiment.
func (s *Store) read(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range Kinds {
		if !k.Kept {
			continue
		}
		if err := s.readKind(k, dir); err != nil {
			return err
		}
	}
	return nil
}

// readKind reads the files of one kind. The caller holds s.mu.
func (s *Store) readKind(k *Kind, dir string) error {
	files, err := os.ReadDir(filepath.Join(dir, k.Resource))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the folder of results: %w", err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" {
			continue
		}
		if _, err := s.readFile(k, filepath.Join(dir, k.Resource, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// dirOf returns the folder of the files of a kind. files is false if the objects of the kind are no
// files.
func (s *Store) dirOf(k *Kind) (dir string, files bool) {
	if k.Shared {
		return s.shared, s.shared != ""
	}
	return s.dir, k.Kept
}

// readFile reads one object, and returns its key. The caller holds s.mu.
func (s *Store) readFile(k *Kind, path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the folder of results: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return "", fmt.Errorf("%s is no object: %w; remove the file, or the folder of its experiment", path, err)
	}
	if version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64); err == nil {
		s.version = max(s.version, version)
	}
	s.objects[k][keyOf(object)] = &entry{object, raw}
	return keyOf(object), nil
}

func keyOf(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

// Get returns an object. The caller must not change it.
func (s *Store) Get(k *Kind, namespace, name string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	return e.object, nil
}

func (s *Store) get(k *Kind, namespace, name string) (*entry, error) {
	if e := s.objects[k][namespace+"/"+name]; e != nil {
		return e, nil
	}
	return nil, apierrors.NewNotFound(k.resource(), name)
}

// List returns the objects of a namespace, or of all namespaces, in the order of their names, and
// the version of the list. The caller must not change the objects.
func (s *Store) List(k *Kind, namespace string, selects func(*unstructured.Unstructured) bool) (list []*unstructured.Unstructured, version int64) {
	entries, version := s.list(k, namespace, selects)
	for _, e := range entries {
		list = append(list, e.object)
	}
	return list, version
}

func (s *Store) list(k *Kind, namespace string, selects func(*unstructured.Unstructured) bool) (list []*entry, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.objects[k])) {
		e := s.objects[k][key]
		if (namespace == "" || e.object.GetNamespace() == namespace) && (selects == nil || selects(e.object)) {
			list = append(list, e)
		}
	}
	return list, s.version
}

// Labelled selects objects by labels.
func Labelled(set map[string]string) func(*unstructured.Unstructured) bool {
	selector := labels.SelectorFromSet(set)
	return func(o *unstructured.Unstructured) bool { return selector.Matches(labels.Set(o.GetLabels())) }
}

// Create adds an object.
func (s *Store) Create(k *Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(object.GetGenerateName() + string(uuid.NewUUID())[:5])
	}
	object.SetGroupVersionKind(k.GroupVersionKind())
	if err := k.prepare(object); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[k][keyOf(object)] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), object.GetName())
	}
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	object.SetManagedFields(nil)
	if k.Ours {
		object.SetGeneration(1)
	}
	if err := s.put(k, object, watch.Added); err != nil {
		return nil, err
	}
	return object, nil
}

// Change changes an object through the function change, which gets a copy. It fails if the object
// has another version than version; an empty version matches any. With status, only the status
// changes. Without it, all else changes, for kinds with a status of their own.
func (s *Store) Change(k *Kind, namespace, name, version string, status bool, change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, err := s.get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	is := was.object.DeepCopy()
	if err := change(is); err != nil {
		return nil, err
	}
	for _, version := range []string{version, is.GetResourceVersion()} {
		if version != "" && version != was.object.GetResourceVersion() {
			return nil, apierrors.NewConflict(k.resource(), name, errors.New("the object has changed since it was read"))
		}
	}
	if err := s.finish(k, was.object, is, status); err != nil {
		return nil, err
	}
	if same(was.object, is) {
		return was.object, nil
	}
	if is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 && k != Pods {
		return is, s.remove(k, was)
	}
	return is, s.put(k, is, watch.Modified)
}

// DeleteOptions are conditions on the object to delete, and how to delete it.
type DeleteOptions struct {
	UID             types.UID
	ResourceVersion string
	// Now deletes a pod that has ended.
	Now bool
}

// Delete deletes an object. It only marks the object as deleted while it has finalizers, or while
// the node still ends a pod.
func (s *Store) Delete(k *Kind, namespace, name string, o DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.get(k, namespace, name)
	if err != nil {
		return err
	}
	if o.UID != "" && o.UID != e.object.GetUID() || o.ResourceVersion != "" && o.ResourceVersion != e.object.GetResourceVersion() {
		return apierrors.NewConflict(k.resource(), name, errors.New("it is another object than the one to be deleted"))
	}
	return s.delete(k, e, o.Now)
}

func (s *Store) delete(k *Kind, e *entry, now bool) error {
	if len(e.object.GetFinalizers()) == 0 && (k != Pods || now) {
		return s.remove(k, e)
	}
	if e.object.GetDeletionTimestamp() != nil {
		return nil
	}
	is := e.object.DeepCopy()
	at := metav1.NewTime(s.clock.Now())
	is.SetDeletionTimestamp(&at)
	grace := int64(0)
	if seconds, found, _ := unstructured.NestedInt64(is.Object, "spec", "terminationGracePeriodSeconds"); found {
		grace = seconds
	}
	is.SetDeletionGracePeriodSeconds(&grace)
	return s.put(k, is, watch.Modified)
}

// put stores an object. The caller holds s.mu.
func (s *Store) put(k *Kind, object *unstructured.Unstructured, what watch.EventType) error {
	object.SetResourceVersion(strconv.FormatInt(s.version+1, 10))
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return apierrors.NewBadRequest("encode the object: " + err.Error())
	}
	if err := s.write(k, object, raw); err != nil {
		return err
	}
	is := &entry{object, raw}
	was := s.objects[k][keyOf(object)]
	s.objects[k][keyOf(object)] = is
	s.tell(change{kind: k, what: what, is: is, was: was})
	return nil
}

// remove deletes an object and the objects that it owns. The caller holds s.mu.
func (s *Store) remove(k *Kind, e *entry) error {
	if dir, files := s.dirOf(k); files {
		if dir == "" {
			return errReadOnly(k, e.object.GetName())
		}
		if err := os.Remove(fileIn(dir, k, e.object)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return apierrors.NewInternalError(err)
		}
	}
	delete(s.objects[k], keyOf(e.object))
	last := e.object.DeepCopy()
	last.SetResourceVersion(strconv.FormatInt(s.version+1, 10))
	raw, err := json.Marshal(last.Object)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	s.tell(change{kind: k, what: watch.Deleted, is: &entry{last, raw}, was: e})
	return s.removeOwned(e.object.GetUID())
}

func (s *Store) removeOwned(owner types.UID) error {
	var errs []error
	for _, k := range Kinds {
		for _, key := range slices.Sorted(maps.Keys(s.objects[k])) {
			e := s.objects[k][key]
			owned := e != nil && slices.ContainsFunc(e.object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
			if owned {
				errs = append(errs, s.delete(k, e, false))
			}
		}
	}
	return errors.Join(errs...)
}

// tell sends a change to the watches. The caller holds s.mu.
func (s *Store) tell(c change) {
	s.version++
	c.version = s.version
	s.events = append(s.events, c)
	if len(s.events) > mostEvents {
		half := len(s.events) / 2
		s.dropped = s.events[half-1].version
		s.events = slices.Clone(s.events[half:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await returns a channel that is closed at the next change of any object.
func (s *Store) Await() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// since returns the changes after a version, and a channel that is closed at the next change. ok is
// false if some of the changes were dropped.
func (s *Store) since(version int64) (changes []change, next <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.dropped {
		return nil, nil, false
	}
	at, _ := slices.BinarySearchFunc(s.events, version+1, func(c change, v int64) int { return int(c.version - v) })
	return s.events[at:len(s.events):len(s.events)], s.changed, true
}

func fileIn(dir string, k *Kind, object *unstructured.Unstructured) string {
	return filepath.Join(dir, k.Resource, object.GetName()+".json")
}

// write replaces the file of an object. The caller holds s.mu.
func (s *Store) write(k *Kind, object *unstructured.Unstructured, raw []byte) error {
	dir, files := s.dirOf(k)
	if !files {
		return nil
	}
	if dir == "" {
		return errReadOnly(k, object.GetName())
	}
	path := fileIn(dir, k, object)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- results are for everybody
		return apierrors.NewInternalError(err)
	}
	if err := os.WriteFile(path+".new", raw, 0o644); err != nil { // #nosec G306 -- results are for everybody
		return apierrors.NewInternalError(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func errReadOnly(k *Kind, name string) error {
	return apierrors.NewForbidden(k.resource(), name, errors.New("on one machine only run and try change what lies in the folder of results"))
}

func same(a, b *unstructured.Unstructured) bool {
	x, errX := json.Marshal(a.Object)
	y, errY := json.Marshal(b.Object)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// validName refuses names that cannot be the name of a file.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}
