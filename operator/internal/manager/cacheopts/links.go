package cacheopts

import (
	"reflect"
	"sync"

	"assay.dev/assay/operator/api/v1alpha1"
)

// links are the networks of the latest trials. Trials of an experiment mostly have the same
// network, which may have hundreds of links.
var links recent

// recent keeps a few networks, the latest first.
type recent struct {
	mu   sync.Mutex
	kept [][]v1alpha1.RegionLink
}

// keptNetworks is how many networks are kept: as many as the experiments that are probably listed
// at once.
const keptNetworks = 32

// share returns an equal network that other trials may use, too.
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
