package v1alpha1

// Cause says what a trial that does not count was spoiled by.
type Cause string

const (
	// CausedBySystem: the system under test did it, or its client. That is an outcome of the
	// experiment: another attempt would replace a finding by a hope.
	CausedBySystem Cause = "System"
	// CausedByEnvironment: the cluster, the network or Assay itself did it. Another attempt
	// measures what this one was to measure.
	CausedByEnvironment Cause = "Environment"
)

// causes of every reason that the condition Valid of a Trial may have while it is False.
var causes = map[string]Cause{
	ReasonRenderFailed:      CausedBySystem,
	ReasonPrepareFailed:     CausedBySystem,
	ReasonReplicaExited:     CausedBySystem,
	ReasonOutOfMemory:       CausedBySystem,
	ReasonStepFailed:        CausedBySystem,
	ReasonClientFailed:      CausedBySystem,
	ReasonLoadEndedEarly:    CausedBySystem,
	ReasonClientSilent:      CausedBySystem,
	ReasonNothingMeasured:   CausedBySystem,
	ReasonHistogramOverflow: CausedBySystem,
	ReasonResultsUnreadable: CausedBySystem,
	ReasonCPUThrottled:      CausedBySystem, // by the limit that its own author gave it
	ReasonNotMeasuring:      CausedBySystem, // its author asked for a profiler
	ReasonRoleNotFound:      CausedBySystem,
	ReasonRoleAmbiguous:     CausedBySystem,
	ReasonMarkMissing:       CausedBySystem,

	ReasonDeadlineExceeded:     CausedByEnvironment,
	ReasonDatasetDiffers:       CausedByEnvironment,
	ReasonNoShapingBackend:     CausedByEnvironment,
	ReasonNetworkWrong:         CausedByEnvironment,
	ReasonNetworkLost:          CausedByEnvironment,
	ReasonNetworkLate:          CausedByEnvironment,
	ReasonPacketsLost:          CausedByEnvironment,
	ReasonNetworkNotConfirmed:  CausedByEnvironment,
	ReasonPodsForbidden:        CausedByEnvironment,
	ReasonMachineRefused:       CausedByEnvironment,
	ReasonChaosMeshMissing:     CausedByEnvironment,
	ReasonFailed:               CausedByEnvironment, // an agent that cannot go on
	ReasonRunLost:              CausedByEnvironment,
	ReasonInterrupted:          CausedByEnvironment,
	ReasonEvicted:              CausedByEnvironment,
	ReasonClientLost:           CausedByEnvironment,
	ReasonPodRestarted:         CausedByEnvironment,
	ReasonFaultLate:            CausedByEnvironment,
	ReasonFaultNotConfirmed:    CausedByEnvironment,
	ReasonFaultNotEnded:        CausedByEnvironment,
	ReasonStartSpread:          CausedByEnvironment,
	ReasonStartLate:            CausedByEnvironment,
	ReasonCPUStolen:            CausedByEnvironment,
	ReasonProcessorContended:   CausedByEnvironment,
	ReasonResourcesNotMeasured: CausedByEnvironment,
	ReasonGeneratorLate:        CausedByEnvironment,
	ReasonClockUncertain:       CausedByEnvironment,
	ReasonClocksApart:          CausedByEnvironment,
	ReasonClockStepped:         CausedByEnvironment,
	ReasonClientsMiscounted:    CausedByEnvironment,
	ReasonNotMeasured:          CausedByEnvironment,
	ReasonResultsNotStored:     CausedByEnvironment,
}

// CausedBy says who spoiled a trial whose condition Valid is False with this reason. A reason that
// is not known, of another version say, is the environment's: it is tried again.
func CausedBy(reason string) Cause {
	if cause, known := causes[reason]; known {
		return cause
	}
	return CausedByEnvironment
}
