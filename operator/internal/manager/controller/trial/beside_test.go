package trial

import (
	"encoding/json"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// wantBeside checks that the files and commands of the pods, and the reports of all clients, are
// stored beside the results. They must match their description in the results.
func (p *play) wantBeside(trial results.Trial) {
	p.t.Helper()
	m := &corev1.ConfigMap{}
	if err := p.env.Client.Get(p.t.Context(), client.ObjectKey{Namespace: p.ns, Name: p.trial().Status.ResultsConfigMap}, m); err != nil {
		p.t.Fatal(err)
	}
	unpack := func(key string, said *results.FileSet) map[string][]byte {
		files, err := results.UnpackFiles(m.BinaryData[key], 1<<20)
		if err != nil {
			p.t.Fatalf("%s: %v", key, err)
		}
		if diff := cmp.Diff(results.DescribeFiles(files), said); diff != "" {
			p.t.Errorf("%s is not what the results describe (-there +described):\n%s", key, diff)
		}
		return files
	}
	reports := unpack(results.ReportsPack, trial.Reports)
	for _, c := range p.layout().Clients {
		if _, err := results.UnpackClient(reports[c.Name+".json.gz"], 0); err != nil {
			p.t.Errorf("the report of %s: %v", c.Name, err)
		}
	}
	found := false
	for name, content := range unpack(results.RenderedPack, trial.Rendered) {
		var containers []protocol.Container
		if strings.HasSuffix(name, "replica."+render.CommandsFile) && json.Unmarshal(content, &containers) == nil && len(containers) > 0 && len(containers[0].Command) > 0 {
			found = true
		}
	}
	if !found {
		p.t.Error("no rendered file has the commands of replicas")
	}
}
