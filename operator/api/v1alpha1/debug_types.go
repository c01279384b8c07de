package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Debug is what helps to find out why trials fail.
type Debug struct {
	// keepFailed is how long the pods of a trial that is Invalid or Failed stay for inspection,
	// from when the trial is judged. Their processes are not ended, and links stay shaped. The
	// trial holds its pools meanwhile, and no other trial of the experiment starts. A lower value
	// ends the wait early. From 0s (they go at once) to 24h. Default: 0s.
	// +optional
	KeepFailed Duration `json:"keepFailed,omitempty"`

	// keepLogs is how much of each container's output is kept with the results of every later
	// trial, also of a valid one. It is the last part of each stream. From 1Ki to 16Mi. Logs and
	// collected files of a trial share 900 KiB, packed: files that find no room are left out, and
	// listed. With a store, complete logs are in the store anyway, and keepLogs has no effect.
	// Default: 64Ki for trials that are Invalid or Failed, nothing for others.
	// +optional
	KeepLogs *resource.Quantity `json:"keepLogs,omitempty"`
}

// KeepFailed returns debug.keepFailed, or its default.
func (s *ExperimentSpec) KeepFailed() time.Duration {
	if s.Debug == nil {
		return 0
	}
	return s.Debug.KeepFailed.OrZero()
}

// KeepLogs returns debug.keepLogs; nil means the default.
func (s *ExperimentSpec) KeepLogs() *resource.Quantity {
	if s.Debug == nil {
		return nil
	}
	return s.Debug.KeepLogs
}
