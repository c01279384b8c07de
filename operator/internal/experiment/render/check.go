package render

import (
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Check renders all templates of a trial, with made-up addresses, and returns the first error. So a
// cluster refuses an object with an error in a template when it is applied, and not when its first
// trial runs.
func Check(system v1alpha1.SystemSpec, trial v1alpha1.TrialSpec) (work int, err error) {
	system = *system.Deployed()
	l := placement.NewLayout("namespace", "experiment-0000-0", &trial, &system)
	if len(l.Replicas()) == 0 {
		return 0, fmt.Errorf("spec.topology: no replica in any region")
	}
	// Objects are made before there are addresses.
	if _, err := NewObjects(l, &trial, &system, Environment{AgentImage: "agent"}); err != nil {
		return 0, err
	}
	if _, err := Datasets(l.Namespace, &trial, &system); err != nil {
		return 0, err
	}
	for i := range l.Servers {
		l.Servers[i].IP = fmt.Sprintf("192.0.2.%d", i%254+1)
	}
	for i := range l.Clients {
		l.Clients[i].IP = fmt.Sprintf("198.51.100.%d", i%254+1)
	}
	t, err := NewTrial(&trial, &system, l)
	if err != nil {
		return 0, err
	}
	for _, r := range l.Servers {
		if _, err := t.Server(r); err != nil {
			return t.work(), err
		}
	}
	for _, c := range l.Clients {
		if _, err := t.Client(c); err != nil {
			return t.work(), err
		}
	}
	if system.Prepare != nil {
		if _, err := t.Prepare(); err != nil {
			return t.work(), err
		}
	}
	return t.work(), nil
}

// work returns how much work the templates of the trial's pods took: loop bodies, and bytes of
// text.
func (t *Trial) work() int { return t.ctx.budget.steps + t.ctx.budget.text/textPerStep }
