package launcher

import "sync"

// plan is an order that is carried out once for an ID, however often it is requested: a restarted
// agent requests it again.
type plan[T any] struct {
	begun  bool
	known  chan struct{} // closed when the request has come
	done   chan struct{} // closed when the result is there
	result T
}

// plans by the IDs of their requests.
type plans[T any] struct {
	mu   sync.Mutex
	byID map[string]*plan[T]
}

// of returns the plan of an ID. It makes one if there is none.
func (p *plans[T]) of(id string) *plan[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(id)
}

func (p *plans[T]) find(id string) *plan[T] {
	if p.byID == nil {
		p.byID = map[string]*plan[T]{}
	}
	found := p.byID[id]
	if found == nil {
		found = &plan[T]{known: make(chan struct{}), done: make(chan struct{})}
		p.byID[id] = found
	}
	return found
}

// do carries out the order with this ID, or joins the caller that does so already, and waits for
// the result.
func (p *plans[T]) do(id string, carryOut func() T) T {
	p.mu.Lock()
	of := p.find(id)
	if !of.begun {
		of.begun = true
		close(of.known)
		go func() {
			defer close(of.done)
			of.result = carryOut()
		}()
	}
	p.mu.Unlock()
	<-of.done
	return of.result
}
