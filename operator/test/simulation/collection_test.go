package simulation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collection has the objects of one kind, in the order of their namespaces and names. A nil
// collection is empty. No caller may change an object of it.
type collection struct {
	objects map[types.NamespacedName]client.Object
	order   []client.Object
	indexes map[string]*index
}

// index has the objects of a collection by the values of a field.
type index struct {
	of client.IndexerFunc
	by map[string]*collection
}

// index adds an index, as a manager does with its cache.
func (c *collection) index(field string, of client.IndexerFunc) {
	if c.indexes == nil {
		c.indexes = map[string]*index{}
	}
	i := &index{of, map[string]*collection{}}
	c.indexes[field] = i
	for _, o := range c.order {
		i.add(o)
	}
}

func (i *index) add(o client.Object) {
	for _, value := range i.of(o) {
		if i.by[value] == nil {
			i.by[value] = &collection{}
		}
		i.by[value].put(o)
	}
}

func (i *index) drop(o client.Object) {
	for _, value := range i.of(o) {
		i.by[value].remove(client.ObjectKeyFromObject(o))
	}
}

// selected returns the objects with the values of a selector. A field without an index selects
// all.
func (c *collection) selected(s fields.Selector) *collection {
	if c == nil || s == nil {
		return c
	}
	for _, r := range s.Requirements() {
		if i := c.indexes[r.Field]; i != nil {
			return i.by[r.Value]
		}
	}
	return c
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

// within returns the objects of a namespace or, without one, all. The result is valid until the
// next change.
func (c *collection) within(namespace string) []client.Object {
	if c == nil || namespace == "" {
		return c.all()
	}
	from, _ := c.place(types.NamespacedName{Namespace: namespace})
	to, _ := c.place(types.NamespacedName{Namespace: namespace + "\x00"})
	return c.order[from:to]
}

func (c *collection) all() []client.Object {
	if c == nil {
		return nil
	}
	return c.order
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
	for _, x := range c.indexes {
		if there {
			x.drop(c.order[i])
		}
		x.add(o)
	}
	if there {
		c.order[i] = o
	} else {
		c.order = slices.Insert(c.order, i, o)
	}
	c.objects[key] = o
}

func (c *collection) remove(key types.NamespacedName) {
	if i, there := c.place(key); there {
		for _, x := range c.indexes {
			x.drop(c.order[i])
		}
		c.order = slices.Delete(c.order, i, i+1)
		delete(c.objects, key)
	}
}

// clone returns a copy without indexes.
func (c *collection) clone() *collection {
	if c == nil {
		return &collection{}
	}
	return &collection{objects: maps.Clone(c.objects), order: slices.Clone(c.order)}
}
