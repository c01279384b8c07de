package cloudlab_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli/cloudlab"
)

// site makes a manifest of one machine.
func site(name, authority string) string {
	return `<?xml version="1.0"?>
<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">
 <node client_id="` + name + `" component_manager_id="urn:publicid:IDN+` + authority + `+authority+cm" sliver_id="urn:publicid:IDN+` + authority + `+sliver+7">
  <sliver_type name="raw-pc"/>
  <services><login hostname="` + name + `.` + authority + `" port="22" username="ada"/></services>
 </node>
</rspec>
`
}

// An experiment at two sites has two manifests. Read once lost the second one without an error.
func TestReadsManifestsOneAfterTheOther(t *testing.T) {
	m, err := cloudlab.Read(strings.NewReader(site("a-0", "utah.cloudlab.us") + site("b-0", "wisc.cloudlab.us")))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Machines) != 2 || m.Machines[0].Site != "utah" || m.Machines[1].Name != "b-0" || m.Machines[1].Site != "wisc" {
		t.Errorf("got %+v", m.Machines)
	}
}

func TestRefusesWhatFollowsAManifest(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"cut off":      {site("a-0", "utah.cloudlab.us") + site("b-0", "wisc.cloudlab.us")[:200], "the text after manifest 1 is no manifest"},
		"another file": {site("a-0", "utah.cloudlab.us") + "<html></html>", "the text after manifest 1 is no manifest"},
		"not ready":    {site("a-0", "utah.cloudlab.us") + strings.Replace(site("b-0", "wisc.cloudlab.us"), "sliver_id", "x", 1), "manifest 2: node b-0: it has no sliver_id"},
	} {
		if _, err := cloudlab.Read(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want: %s", name, err, tc.want)
		}
	}
}
