package agent

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/results"
)

// Config of an agent.
type Config struct {
	// Coordinator is its host:port.
	Coordinator string
	// CAFile holds the authorities for the coordinator's certificate, and TokenFile the pod's
	// token. The agent reads both at every use, since they rotate.
	CAFile, TokenFile string
	// RunDir and OutDir are shared with the launchers.
	RunDir, OutDir string
	// PodUID is the UID of the pod.
	PodUID string
	// Durable: the files in RunDir must survive a reset of the machine, since the agent resets it.
	Durable bool
	// FileRoots are the directories under which files may be written.
	FileRoots []string
	// Backends that may shape the pod's links, best first. Without any, the agent only measures the
	// links.
	Backends []Backend
	// Wall reads the pod's wall clock.
	Wall func() time.Time
	// Parse reads a client's report.
	Parse func(format string, report io.Reader, about ReportFacts) (results.Client, error)
	// Random spreads the retries of a trial's many agents.
	Random *rand.Rand
	Log    *slog.Logger
}

// ReportFacts are what a parser must know about the client whose report it reads.
type ReportFacts struct {
	ZeroMonotonicNanos, ZeroUnixNanos int64
	// StartNanos is when the client's process was started, relative to t = 0.
	StartNanos                  int64
	Windows                     timeline.Windows
	Index, FirstClient, Clients int32
	Misbehaving                 int32
	Records                     *results.Records
	Histograms                  *results.Histograms
	Summary                     []results.SummaryNumber
	// Whole: the client ended by itself with exit code 0.
	Whole    bool
	Arrivals io.Reader
}

// shortUID is the first part of the pod's UID, or a replacement for it.
func (c Config) shortUID() string {
	const part = 8
	if len(c.PodUID) < part {
		return "unknown"
	}
	return c.PodUID[:part]
}

// Backend is a way of shaping the pod's links.
type Backend struct {
	Name shaping.Backend
	// Check proves that the backend works in this pod. Its error says what is missing. It leaves
	// nothing behind.
	Check func(context.Context) error
	// Open it for the device that the links leave by.
	Open func(device string) (netem.Shaper, error)
}
