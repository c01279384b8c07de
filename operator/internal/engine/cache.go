package engine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/instants"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/protocol"
)

// cache is the state that the engine keeps between calls, by trial. The engine can make all of it
// again.
type cache struct {
	mu     sync.Mutex
	trials map[types.UID]*entry
}

// entry is the kept state of one trial.
type entry struct {
	key          types.NamespacedName
	since        time.Time     // when the engine first saw it
	seen         instants.Seen // instants in its status
	rendered     *rendered
	system       *v1alpha1.SystemSpec
	created      bool            // its objects exist
	clients      map[string]bool // client pods that have been there
	prepared     []protocol.File // not nil once the prepare step's output has been read
	preparing    bool            // the prepare step's agent has its directive
	noted        map[string]bool // actions of faults that were reported, by their ID
	progress     time.Time       // when it was last published
	slowest      time.Duration   // the longest time that a write of its status took
	asked        time.Time       // when the engine last asked why pods are missing
	checked      time.Time       // when the engine last asked which objects are left
	unstored     unstored        // the last attempt to store its results, if it failed
	release      *Release        // the data with which the run was released
	replacements map[types.UID]*render.Pod
	occurrences  []*fault.Occurrence // of faults that an injector carries out
}

func (c *cache) of(trial *v1alpha1.Trial) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trials == nil {
		c.trials = map[types.UID]*entry{}
	}
	if c.trials[trial.UID] == nil {
		c.trials[trial.UID] = &entry{
			key: types.NamespacedName{Namespace: trial.Namespace, Name: trial.Name}, noted: map[string]bool{},
			clients: map[string]bool{}, replacements: map[types.UID]*render.Pod{},
		}
	}
	return c.trials[trial.UID]
}

func (c *cache) forget(key types.NamespacedName) (forgotten []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, e := range c.trials {
		if e.key == key {
			delete(c.trials, uid)
			forgotten = append(forgotten, uid)
		}
	}
	return forgotten
}

func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.trials)
}

// rendered has the rendered files of a trial. It is kept between calls, since they change only with
// the addresses.
type rendered struct {
	addresses string
	trial     *render.Trial
	pods      map[string]*render.Pod // by name in the layout
	longest   time.Duration          // longest round trip that is asked of a pair
}

// unstored is an attempt to store results that failed.
type unstored struct {
	at  time.Time
	err error
}
