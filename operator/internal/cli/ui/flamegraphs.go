package ui

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/results/flame"
)

// flameRow is a profile of a pod, as in the report's table.
type flameRow struct {
	Point, Pod, Tool, From, To, Trial string
	Samples                           int64
	// Path of the picture. If it is empty, None says why there is no picture.
	Path, None string
}

// flames keeps the rows of trials that do not count. It reads a trial again only after the trial
// changed.
type flames struct {
	mu   sync.Mutex
	last map[string][]flameRow
}

// of returns the rows of an experiment's trials, in their order. If a trial cannot be read now, a
// later look reads it.
func (f *flames) of(ctx context.Context, s *Page, trials []v1alpha1.Trial) (all []flameRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pulseEvery)
	defer cancel()
	for i := range trials {
		t := &trials[i]
		if t.Spec.Measures() {
			continue
		}
		key := string(t.UID) + "/" + t.Name + "/" + t.ResourceVersion
		rows, known := f.last[key]
		if !known {
			read, _, err := from.FlameGraphs(ctx, s.Cluster, t)
			if err != nil {
				continue
			}
			for _, g := range read.FlameGraphs {
				row := flameRow{
					Point: watch.Point(t), Pod: g.Pod, Tool: g.Tool, Trial: g.Trial, Samples: g.Samples,
					From: fmt.Sprintf("%.3f", g.FromMillis/1000), To: fmt.Sprintf("%.3f", g.ToMillis/1000),
				}
				switch {
				case g.Error != "":
					row.None = g.Error
				case g.File == "":
					row.None = "its file is not here"
				default:
					row.Path = "/trials/" + t.Namespace + "/" + t.Name + "/flamegraphs/" + g.Pod + "/" + path.Base(g.File)
				}
				rows = append(rows, row)
			}
			if f.last == nil || len(f.last) >= mostDrawn {
				f.last = map[string][]flameRow{}
			}
			f.last[key] = rows
		}
		all = append(all, rows...)
	}
	return all
}

// picture serves a flame graph. A program of the trial may have written it, so the browser must not
// run its scripts or load anything for it.
func (s *Page) picture(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), slow)
	defer cancel()
	var t v1alpha1.Trial
	err := s.Copy.reader.Get(ctx, client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, &t)
	if client.IgnoreNotFound(err) != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var picture []byte
	if err == nil {
		_, pictures, err := from.FlameGraphs(ctx, s.Cluster, &t)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		picture = pictures[[2]string{r.PathValue("pod"), flame.Collected + r.PathValue("file")}]
	}
	if picture == nil {
		http.Error(w, "There is no flame graph of this name.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'")
	_, _ = w.Write(picture) // the browser is gone if it fails
}
