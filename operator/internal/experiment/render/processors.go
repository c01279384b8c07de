package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/node/protocol"
)

// mostProcessors is the most processors that a System may ask for.
const mostProcessors = 4096

// processors renders how many processors a command may use. Nil: all.
func (c *Context) processors(field, text string) (*protocol.Processors, error) {
	s, err := c.text(field, text)
	if err != nil {
		return nil, err
	}
	if s = strings.TrimSpace(s); s == "" {
		return nil, nil //nolint:nilnil // there is nothing to bind
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > mostProcessors {
		return nil, fmt.Errorf("%s renders to %q; it must be a whole number from 0 to %d", field, s, mostProcessors)
	}
	if n == 0 {
		return nil, nil //nolint:nilnil // likewise
	}
	return &protocol.Processors{Count: n}, nil
}

// AssignProcessors gives the containers on a node different processors, as long as there are
// enough. They get them in the order of the pods' names. there has the pods of the cluster, by the
// same names, which say on which node each runs.
func AssignProcessors(pods map[string]*Pod, there map[string]*corev1.Pod) {
	given := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		node := ""
		if p := there[name]; p != nil {
			node = p.Spec.NodeName
		}
		containers := pods[name].Directive.Containers
		for i := range containers {
			if p := containers[i].Processors; p != nil {
				p.After = given[node]
				given[node] += p.Count
			}
		}
	}
}
