package monitoring

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Desk asks Prometheus in the background for the trial controller, which reconciles one trial at a
// time and must not wait for a network. After a restart it can ask again. A trial has one question
// Q, with one answer A.
type Desk[Q, A any] struct {
	// Context ends with the manager.
	Context context.Context
	// Evaluate answers a question, within its deadline.
	Evaluate func(context.Context, Q) A

	mu   sync.Mutex
	jobs map[types.UID]*job[A]
}

type job[A any] struct {
	cancel context.CancelFunc
	answer A
	done   bool
}

// Ask returns the answer to a trial's question. done is false until there is one. The first call
// starts the work. Later calls ignore q.
func (d *Desk[Q, A]) Ask(trial types.UID, q func() Q) (answer A, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[trial]; j != nil {
		return j.answer, j.done
	}
	if d.jobs == nil {
		d.jobs = map[types.UID]*job[A]{}
	}
	ctx, cancel := context.WithCancel(d.Context)
	j := &job[A]{cancel: cancel}
	d.jobs[trial] = j
	question := q()
	go func() {
		defer cancel()
		answer := d.Evaluate(ctx, question)
		d.mu.Lock()
		defer d.mu.Unlock()
		j.answer, j.done = answer, true
	}()
	return answer, false
}

// Forget forgets a trial, and stops the work for it.
func (d *Desk[Q, A]) Forget(trial types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[trial]; j != nil {
		j.cancel()
		delete(d.jobs, trial)
	}
}
