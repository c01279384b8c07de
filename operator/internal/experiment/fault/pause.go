package fault

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// pause stops the processes of replicas for a time.
type pause struct {
	always
	p *v1alpha1.Pause
}

func init() {
	add("pause", func(f *v1alpha1.Fault) kind {
		if f.Pause == nil {
			return nil
		}
		return pause{p: f.Pause}
	})
}

func (k pause) targets() []*v1alpha1.Target { return []*v1alpha1.Target{&k.p.Target} }

func (k pause) begin(salt string, cast Cast) ([]timeline.Action, error) {
	return each(cast.Choose(k.p.Target, salt, nil), timeline.Action{Kind: timeline.Pause, Role: k.p.Target.Role}), nil
}

func (k pause) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	c.path, c.roles = path.Child("pause", "target"), true
	stopped, _ := e.checkTarget(c, k.p.Target)
	return stopped
}

func (k pause) role() bool { return k.p.Target.Role != "" }
