package agent

import (
	"context"
	"os"
	"time"
)

// terminationLimit is how long an agent still works when its pod is deleted in the middle of a run.
// The kubelet gives a sidecar two seconds at least.
const terminationLimit = 1500 * time.Millisecond

// uploadOnTermination uploads the logs of a pod that is deleted in the middle of a run. Its
// processes are dead already, and no part of the agent waits for the upload. The agent gives up at
// the first answer which says that the trial does not know the pod any more. When a pod is deleted
// without grace, its object and its token are gone before its processes. The pod that replaces it
// hands over its own files. The names of this pod's files begin with a part of its UID, so that no
// file is overwritten.
func (up *uploader) uploadOnTermination(ctx context.Context) {
	d := up.directive()
	if !d.HandOver || d.Run == nil || d.Finish {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminationLimit)
	defer cancel()
	up.coordinator.leaving.Store(true)
	if up.inOutDir(func(out *os.Root) error { return out.MkdirAll(uploadFolder, 0o700) }) != nil {
		return
	}
	up.config.Log.Info("The pod is deleted in the middle of the run; handing over its logs")
	t := &transfer{uploader: up, store: limited}
	for _, f := range up.uploadFiles() {
		if !f.log {
			continue
		}
		f.name = "ended-" + up.config.shortUID() + "." + f.name
		if t.send(limited, f) != nil {
			return
		}
	}
}
