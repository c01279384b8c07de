package ui

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

// Copy has the experiments and trials of a cluster, and is updated as they change.
type Copy struct {
	reader     client.Reader
	told       *history
	namespaces []string // the copied ones; none: all

	mu      sync.Mutex
	trouble string // why the cluster does not answer; empty: it answers
}

// Follow copies the experiments and trials of some namespaces, or of all if none is named. It keeps
// the copy up to date until the context ends.
func Follow(ctx context.Context, s *session.Session, cluster session.Cluster, namespaces []string) (*Copy, error) {
	c := &Copy{told: &history{}, namespaces: namespaces}
	var err error
	if c.reader, err = informers(ctx, cluster.Config, namespaces, func(t *v1alpha1.Trial) { c.told.note(t, s.Now()) }); err != nil {
		return nil, err
	}
	go func() {
		for s.Sleep(ctx, pulseEvery) == nil {
			c.ask(ctx, cluster.Client)
		}
	}()
	return c, nil
}

// has reports whether the copy covers a namespace. It then has all experiments and trials of it.
func (c *Copy) has(namespace string) bool {
	return namespace == metav1.NamespaceAll || len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

// ask asks the API server whether it answers.
func (c *Copy) ask(ctx context.Context, from client.Reader) {
	ctx, cancel := context.WithTimeout(ctx, pulseEvery)
	defer cancel()
	where := metav1.NamespaceAll
	if len(c.namespaces) > 0 {
		where = c.namespaces[0]
	}
	err := from.List(ctx, &v1alpha1.ExperimentList{}, client.InNamespace(where), client.Limit(1))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = ""
	if err != nil {
		c.trouble = session.Explain(err).Error()
	}
}

// state says why the cluster does not answer. Empty: it answers.
func (c *Copy) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// informers keep a copy of the experiments and trials of some namespaces, or of all if none is
// named. They call seen at each change of a trial, so that no progress between two looks is lost.
func informers(ctx context.Context, config *rest.Config, namespaces []string, seen func(*v1alpha1.Trial)) (client.Reader, error) {
	ctrllog.SetLogger(logr.Discard()) // the page says itself that the cluster does not answer
	scheme, err := session.NewScheme()
	if err != nil {
		return nil, err
	}
	options := ctrlcache.Options{Scheme: scheme}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]ctrlcache.Config{}
		}
		options.DefaultNamespaces[namespace] = ctrlcache.Config{}
	}
	c, err := ctrlcache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	for _, object := range []client.Object{&v1alpha1.Experiment{}, &v1alpha1.Trial{}} {
		informer, err := c.GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
		changed := func(o any) {
			if t, ok := o.(*v1alpha1.Trial); ok {
				seen(t)
			}
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
	}
	go func() { _ = c.Start(ctx) }() // it ends with the context only
	synced, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	if !c.WaitForCacheSync(synced) {
		return nil, fmt.Errorf("the cluster did not list its experiments and trials within %s", firstAnswer)
	}
	return c, nil
}
