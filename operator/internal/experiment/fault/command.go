package fault

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// command runs a command in pods. It breaks nothing by itself, and ends by itself.
type command struct {
	always
	c *v1alpha1.Command
}

func init() {
	add("command", func(f *v1alpha1.Fault) kind {
		if f.RunCommand == nil {
			return nil
		}
		return command{c: f.RunCommand}
	})
}

func (k command) targets() []*v1alpha1.Target { return []*v1alpha1.Target{&k.c.Target} }

// begin leaves the command itself out, since package render renders it for each pod.
func (k command) begin(salt string, cast Cast) ([]timeline.Action, error) {
	return each(cast.Choose(k.c.Target, salt, nil), timeline.Action{Kind: timeline.Execute, Role: k.c.Target.Role}), nil
}

func (k command) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	path = path.Child("command")
	if d, err := k.c.Timeout.Parse(); err != nil || d < time.Millisecond || d > time.Hour {
		e.add(field.Invalid(path.Child("timeout"), string(k.c.Timeout), "must be a duration from 1ms to 1h, such as 30s"))
	}
	c.path, c.roles = path.Child("target"), true
	e.checkTarget(c, k.c.Target)
	return nil
}

func (k command) role() bool { return k.c.Target.Role != "" }

// Commands calls use for each fault that runs a command.
func Commands(faults []v1alpha1.Fault, use func(name string, c *v1alpha1.Command) error) error {
	for i := range faults {
		if k, ok := of(&faults[i]).(command); ok {
			if err := use(faults[i].Name, k.c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k command) setDefaults() {
	if k.c.Timeout == "" {
		k.c.Timeout = "60s"
	}
}
