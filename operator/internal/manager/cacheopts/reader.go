package cacheopts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads past the cache, in the namespaces for which a manager was installed. It lists one
// namespace after the other, since the API server refuses to list the whole cluster. Without
// namespaces, it returns the given reader.
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
	if o.Limit > 0 {
		return r.page(ctx, list, o, opts)
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

// page lists one page. A page has objects of one namespace. The name of the namespace precedes the
// API server's token for the next page.
func (r *someNamespaces) page(ctx context.Context, list client.ObjectList, o client.ListOptions, opts []client.ListOption) error {
	at, token := 0, ""
	if o.Continue != "" {
		name, rest, _ := strings.Cut(o.Continue, "/")
		if at, token = slices.Index(r.namespaces, name), rest; at < 0 {
			return fmt.Errorf("list in several namespaces: %q is no token of a page", o.Continue)
		}
	}
	n := r.namespaces[at]
	if err := r.Reader.List(ctx, list, append(opts[:len(opts):len(opts)], client.InNamespace(n), client.Continue(token))...); err != nil {
		return fmt.Errorf("in namespace %s: %w", n, err)
	}
	switch next := list.GetContinue(); {
	case next != "":
		list.SetContinue(n + "/" + next)
	case at+1 < len(r.namespaces):
		list.SetContinue(r.namespaces[at+1] + "/")
	}
	return nil
}
