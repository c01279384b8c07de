package simulation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collection has the objects of one kind, in the order of their namespaces and names. A nil
// collection is empty. No caller may change an object of it.
type collection struct {
	objects map[types.NamespacedName]client.Object
	order   []client.Object
}

func (c *collection) get(key types.NamespacedName) client.Object {
	if c == nil {
		return nil
	}
	return c.objects[key]
}

func (c *collection) inOrder() []client.Object {
	if c == nil {
		return nil
	}
	return slices.Clone(c.order)
}

func (c *collection) inNamespace(name string) []client.Object {
	if c == nil {
		return nil
	}
	from, _ := c.place(types.NamespacedName{Namespace: name})
	to := from
	for to < len(c.order) && c.order[to].GetNamespace() == name {
		to++
	}
	return slices.Clone(c.order[from:to])
}

// place returns the index of an object, or the index at which it would be.
func (c *collection) place(key types.NamespacedName) (int, bool) {
	return slices.BinarySearchFunc(c.order, key, func(o client.Object, key types.NamespacedName) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), key.Namespace), strings.Compare(o.GetName(), key.Name))
	})
}

// put adds an object, or replaces the one with the same name.
func (c *collection) put(o client.Object) {
	if c.objects == nil {
		c.objects = map[types.NamespacedName]client.Object{}
	}
	key := client.ObjectKeyFromObject(o)
	i, there := c.place(key)
	if there {
		c.order[i] = o
	} else {
		c.order = slices.Insert(c.order, i, o)
	}
	c.objects[key] = o
}

func (c *collection) remove(key types.NamespacedName) {
	if i, there := c.place(key); there {
		c.order = slices.Delete(c.order, i, i+1)
		delete(c.objects, key)
	}
}

func (c *collection) clone() *collection {
	if c == nil {
		return &collection{}
	}
	return &collection{objects: maps.Clone(c.objects), order: slices.Clone(c.order)}
}
