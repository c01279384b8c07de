package cacheopts

import (
	"reflect"
	"sync"

	"assay.dev/assay/operator/api/v1alpha1"
)

// links are the networks that trials had lately: the trials of an experiment mostly have the same
// one, which may be hundreds of links long.
var links recent

// recent keeps a few networks, the latest one first.
type recent struct {
	mu   sync.Mutex
	kept [][]v1alpha1.RegionLink
}

// keptNetworks is how many are kept: as many experiments as are probably listed at once.
const keptNetworks = 32

// share returns a network that is equal and that others may hold, too.
func (r *recent) share(network []v1alpha1.RegionLink) []v1alpha1.RegionLink {
	if len(network) == 0 {
		return network
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		if len(k) == len(network) && reflect.DeepEqual(k, network) {
			return k
		}
	}
	r.kept = append([][]v1alpha1.RegionLink{network}, r.kept[:min(len(r.kept), keptNetworks-1)]...)
	return network
}
