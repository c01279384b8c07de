package agent

import (
	"context"
	"os"
	"time"
)

// terminationLimit is how long an agent whose pod is deleted in the middle of a run still works:
// the kubelet gives a sidecar two seconds at least.
const terminationLimit = 1500 * time.Millisecond

// uploadOnTermination uploads the logs of a pod that is deleted in the middle of a run, whose
// processes are dead already. No part waits for it. It gives up at the first answer that says that
// the pod has no place in the trial any more. A pod that is deleted without grace is gone before
// its processes are, and its token with it. The pod that takes its place hands over files of its
// own; those of this one begin with a part of its UID, so that none is overwritten.
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
