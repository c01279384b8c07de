package cacheopts

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads past the cache, in the namespaces of a manager that was installed for some: to list what all namespaces have is to list one after the
// other, since the API server refuses the question about the whole cluster. Without namespaces it is the reader that it was given.
func Reader(reader client.Reader, namespaces ...string) client.Reader {
	if len(namespaces) == 0 {
		return reader
	}
	return &someNamespaces{Reader: reader, namespaces: namespaces}
}

type someNamespaces struct {
	client.Reader
	namespaces []string
}

// List lists in the namespace that the options name, or in each.
func (r *someNamespaces) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if o.Namespace != "" {
		return r.Reader.List(ctx, list, opts...)
	}
	if o.Continue != "" || o.Limit > 0 {
		return errors.New("list in several namespaces: pages are not supported")
	}
	var all []runtime.Object
	for _, n := range r.namespaces {
		if err := r.Reader.List(ctx, list, append(opts[:len(opts):len(opts)], client.InNamespace(n))...); err != nil {
			return fmt.Errorf("in namespace %s: %w", n, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		all = append(all, items...)
	}
	return meta.SetList(list, all)
}
