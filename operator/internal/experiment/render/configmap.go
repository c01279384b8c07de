package render

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// FitConfigMap removes the largest entries until a ConfigMap can hold the rest.
func FitConfigMap(data map[string]string) map[string]string {
	keys := make([]string, 0, len(data))
	size := 0
	for k, v := range data {
		keys = append(keys, k)
		size += len(k) + len(v)
	}
	sort.Slice(keys, func(i, j int) bool {
		if len(data[keys[i]]) != len(data[keys[j]]) {
			return len(data[keys[i]]) > len(data[keys[j]])
		}
		return keys[i] < keys[j]
	})
	for _, k := range keys {
		if size <= ConfigMapLimit {
			break
		}
		size -= len(data[k])
		data[k] = "left out: too large for a ConfigMap"
	}
	return data
}

// ConfigMapLimit bounds the bytes of each ConfigMap that Assay makes. The API server refuses 1 MiB.
const ConfigMapLimit = 1000 << 10

// ShownFiles is the ConfigMap with the rendered files of the pods, by name, for people to read. It
// leaves out the output of the prepare step, which may hold keys.
func (t *Trial) ShownFiles(pods map[string]*Pod) *corev1.ConfigMap {
	data := t.shownFiles(pods)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: t.Layout.FilesConfigMap(), Namespace: t.Layout.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: t.Layout.Trial, v1alpha1.LabelExperiment: t.spec.Experiment},
	}, Data: FitConfigMap(data)}
}

// CommandsFile lists the commands of a pod's containers beside its rendered files.
const CommandsFile = "commands.json"

// Given returns the rendered files and the commands of all pods, by the names that ShownFiles uses.
func (t *Trial) Given(pods map[string]*Pod) (map[string][]byte, error) {
	given := map[string][]byte{}
	for name, content := range t.shownFiles(pods) {
		given[name] = []byte(content)
	}
	commands := map[string][]protocol.File{}
	for name, p := range pods {
		list, err := json.MarshalIndent(p.Directive.Containers, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("write the commands of %s: %w", name, err)
		}
		commands[name] = []protocol.File{{Path: CommandsFile, Content: append(list, '\n')}}
	}
	for name, content := range t.FilesByName(commands, partsOf(pods)) {
		given[name] = []byte(content)
	}
	return given, nil
}

// partsOf returns the part of each pod: replica, client, or the name of its component.
func partsOf(pods map[string]*Pod) map[string]string {
	part := map[string]string{}
	for name, p := range pods {
		part[name] = p.Part
	}
	return part
}

// shownFiles returns the rendered files of the pods, by names that a ConfigMap may have.
func (t *Trial) shownFiles(pods map[string]*Pod) map[string]string {
	files := map[string][]protocol.File{}
	prefix := ""
	if t.system.Prepare != nil {
		prefix = t.system.Prepare.OutputPath + "/"
	}
	for name, p := range pods {
		for _, f := range p.Files {
			if prefix == "" || !strings.HasPrefix(f.Path, prefix) {
				files[name] = append(files[name], f)
			}
		}
	}
	return t.FilesByName(files, partsOf(pods))
}
