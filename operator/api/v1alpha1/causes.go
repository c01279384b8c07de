package v1alpha1

// Cause says whether the system or its environment spoiled a trial that does not count.
type Cause string

const (
	// CausedBySystem: the system under test or its client spoiled the trial. Such a trial is an
	// outcome of the experiment: endless attempts would hide a finding.
	CausedBySystem Cause = "System"
	// CausedByEnvironment: the cluster, the network or Assay itself spoiled the trial. A further
	// attempt can still measure the point.
	CausedByEnvironment Cause = "Environment"
)

// causes has the cause for every reason of a Trial's condition Valid while it is False.
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
	ReasonCPUThrottled:      CausedBySystem, // its author sets the limit
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

// CausedBy returns the cause of a trial whose condition Valid is False with this reason. An unknown
// reason, for example one of another version, counts as the environment's: the trial is tried
// again.
func CausedBy(reason string) Cause {
	if cause, known := causes[reason]; known {
		return cause
	}
	return CausedByEnvironment
}
