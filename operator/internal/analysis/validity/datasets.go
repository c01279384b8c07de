package validity

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Datasets that the pods of a trial began with, as results have them. A trial that was given up
// before its pods had their copies has no numbers of copies.
func Datasets(t *v1alpha1.Trial) (all []results.Dataset) {
	for _, set := range t.Spec.Datasets {
		out := results.Dataset{
			Name: set.Name, Object: set.Dataset, Digest: set.Digest, Bytes: set.Bytes, Files: set.Files,
			PreparedNodes: set.PreparedNodes, PrepareSeconds: float64(set.PrepareMilliseconds) / 1000,
		}
		for _, on := range set.Digests {
			out.Digests = append(out.Digests, results.NodeDigest(on))
		}
		for _, c := range t.Status.Datasets {
			if c.Name == set.Name {
				out.Copies, out.Method, out.Check = c.Copies, c.Method, string(c.Check)
				out.FastestSeconds, out.SlowestSeconds = float64(c.FastestMilliseconds)/1000, float64(c.SlowestMilliseconds)/1000
			}
		}
		all = append(all, out)
	}
	return all
}
