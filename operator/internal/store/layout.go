package store

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// The keys of a store, below its prefix. They are stable: docs/reference/storage.md promises them.
//
//	v1/<namespace>/<experiment>/<uid>/                   one run of an experiment
//	    experiment.json results.json report.html bundle.tar.gz ... manifest.json
//	    trials/<trial>/
//	        trial.json timeline.csv latency.hdr.base64 faults.json
//	        pods/<pod>/<file>.gz                         what the pod's agent handed over
//	        manifest.json
const (
	layoutVersion = "v1"
	// ManifestName is the last part of a manifest's key.
	ManifestName = "manifest.json"
	podsFolder   = "pods/"
)

// Folder is the beginning of keys that belong together; it ends in a slash.
type Folder string

// ExperimentFolder of one run of an experiment: one that is deleted and applied again has another
// UID.
func ExperimentFolder(namespace, name, uid string) Folder {
	return Folder(fmt.Sprintf("%s/%s/%s/%s/", layoutVersion, namespace, name, uid))
}

// Trial is the folder of one of the experiment's trials.
func (f Folder) Trial(name string) Folder { return f + Folder("trials/"+name+"/") }

// TrialFolder is the folder of a Trial. It fails for one that no experiment made.
func TrialFolder(t *v1alpha1.Trial) (Folder, error) {
	owner := metav1.GetControllerOf(t)
	if owner == nil {
		return "", fmt.Errorf("trial %s/%s has no experiment that owns it, so that its results have no place in a store", t.Namespace, t.Name)
	}
	return ExperimentFolder(t.Namespace, t.Spec.Experiment, string(owner.UID)).Trial(t.Name), nil
}

// Key of a file in the folder.
func (f Folder) Key(file string) string { return string(f) + file }

// PodFile is the key of a file that a pod's agent handed over.
func (f Folder) PodFile(pod, file string) string { return f.Key(podsFolder + pod + "/" + file) }

// PodFiles is the common beginning of the keys of all pods' files.
func (f Folder) PodFiles() string { return f.Key(podsFolder) }

// Pod returns the pod whose file has this key in the folder. It is empty if no pod's file has it.
func (f Folder) Pod(key string) string {
	rest, ok := strings.CutPrefix(key, f.PodFiles())
	if !ok {
		return ""
	}
	pod, _, _ := strings.Cut(rest, "/")
	return pod
}

var fileName = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]{0,126}\.gz$`)

// CheckFileName refuses what is not the name of a file that a pod may hand over.
func CheckFileName(name string) error {
	if !fileName.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%q is not the name of a file that can be handed over", name)
	}
	return nil
}

// inTrial splits the key of a trial's object: what comes after the trial's folder, and for a pod's
// file after the folder of all pods.
var inTrial = regexp.MustCompile(`^` + layoutVersion + `(?:/[^/]+){3}/trials/[^/]+/(` + podsFolder + `)?(.*)$`)

var clientResult = regexp.MustCompile(`^[^/]+/` + regexp.QuoteMeta(protocol.ClientResultFile) + `$`)

// IsResult reports whether an object is a result: the trial's own, or a client's with its raw
// histogram. All other objects, mainly logs, may be lost.
func IsResult(o Object) bool {
	m := inTrial.FindStringSubmatch(o.Key)
	switch {
	case m == nil:
		return false
	case m[1] == "":
		return m[2] == "trial.json"
	}
	return clientResult.MatchString(m[2]) && o.Size <= protocol.ClientResultLimit
}
