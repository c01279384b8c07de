package render

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/internal/experiment/placement"
)

// If containers have no control group, all launchers get a flag that says so. Otherwise none gets
// it.
func TestLaunchersWithoutControlGroups(t *testing.T) {
	for _, without := range []bool{false, true} {
		spec, system := kvTrial(), kvSystem()
		o, err := NewObjects(placement.NewLayout("ns", "exp", spec, system), spec, system, Environment{WithoutControlGroups: without})
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, template := range o.Templates() {
			for _, c := range template.Spec.Containers {
				if is := slices.Contains(c.Command, "--no-control-group"); is != without {
					t.Errorf("container %s of a %s begins with %q", c.Name, template.What, c.Command)
				}
				told++
			}
		}
		if told == 0 {
			t.Error("there are no containers")
		}
	}
}
