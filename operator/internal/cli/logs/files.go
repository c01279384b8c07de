package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// mostUnpacked is how many bytes the files of a pod may have.
const mostUnpacked = 256 << 20

// collected are the files of a trial's pods, by pod and path.
type collected map[string]map[string][]byte

// collectedOf reads the files that the manager has kept of the pods of a trial.
func collectedOf(ctx context.Context, cluster session.Cluster, trial string) (collected, error) {
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsFiles, v1alpha1.LabelTrial: trial}
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return nil, fmt.Errorf("look for the files of trial %s in %s: %w", trial, cluster.Place(), session.Explain(err))
	}
	c := collected{}
	for i := range list.Items {
		for key, packed := range list.Items[i].BinaryData {
			files, err := results.UnpackTree(packed, mostUnpacked)
			if err != nil {
				return nil, fmt.Errorf("files in ConfigMap %s: %w", list.Items[i].Name, err)
			}
			c[strings.TrimSuffix(key, ".tar.gz")] = files
		}
	}
	return c, nil
}

// longer replaces the kept end of each log by the collected file, which is longer. Collected files
// exist for each stream of a container.
func (c collected) longer(logs map[string]string) {
	for pod, files := range c {
		for name, text := range files {
			stream, isLog := strings.CutPrefix(name, protocol.LogsFolder)
			if !isLog || len(text) == 0 {
				continue
			}
			if container, ok := strings.CutSuffix(stream, ".stderr"); ok {
				logs[pod+"/"+container+":stderr"] = string(text)
				if _, both := files[protocol.LogsFolder+container+".stdout"]; !both {
					delete(logs, pod+"/"+container)
				}
			} else {
				logs[pod+"/"+strings.TrimSuffix(stream, ".stdout")] = string(text)
			}
		}
	}
}

// names returns the names of the files that are no logs.
func (c collected) names() (all []string) {
	for _, pod := range slices.Sorted(maps.Keys(c)) {
		for _, name := range slices.Sorted(maps.Keys(c[pod])) {
			if !strings.HasPrefix(name, protocol.LogsFolder) {
				all = append(all, pod+"/"+name)
			}
		}
	}
	return all
}

// tell prints the names of the files, and the command that writes them.
func (c collected) tell(s *session.Session, cluster session.Cluster, trial string) {
	if names := c.names(); len(names) > 0 {
		fmt.Fprintf(s.Err, "%d files of its pods are kept: %s. Write them out with kubectl assay logs %s %s --files DIRECTORY.\n",
			len(names), strings.Join(names, ", "), trial, cluster.Flag())
	}
}

// writeFiles writes all collected files into a directory, in a folder for each pod.
func writeFiles(ctx context.Context, s *session.Session, cluster session.Cluster, o Options) error {
	c, err := collectedOf(ctx, cluster, o.Trial)
	if err != nil {
		return err
	}
	switch {
	case len(c) == 0:
		return fmt.Errorf("of trial %s no file is kept: files are collected when its processes have ended, if its System asks for them (collect), or if it is not valid", o.Trial)
	case o.Pod != "" && c[o.Pod] == nil:
		return fmt.Errorf("no file of pod %s is kept; there are files of %s", o.Pod, strings.Join(slices.Sorted(maps.Keys(c)), ", "))
	}
	if err := os.MkdirAll(o.Files, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	root, err := os.OpenRoot(o.Files)
	if err != nil {
		return fmt.Errorf("open the directory: %w", err)
	}
	defer root.Close()
	n := 0
	for _, pod := range slices.Sorted(maps.Keys(c)) {
		if o.Pod != "" && o.Pod != pod {
			continue
		}
		for name, content := range c[pod] {
			path := filepath.Join(pod, filepath.FromSlash(name))
			if err := errors.Join(root.MkdirAll(filepath.Dir(path), 0o755), root.WriteFile(path, content, 0o644)); err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			n++
		}
	}
	fmt.Fprintf(s.Err, "%d files written to %s\n", n, o.Files)
	return nil
}
