package v1alpha1

// Conditions of an Experiment. All are set by the experiment controller.
const (
	// ExperimentAccepted is True when the spec and the Systems it names fit together and the plan
	// is fixed; False when a user must act: the message names the field.
	ExperimentAccepted = "Accepted"

	// ExperimentComplete is True when no further trial will run, False while trials are to run. Its
	// message is the summary that users see.
	ExperimentComplete = "Complete"

	// ExperimentResultsStored is True when the results of all trials that are done are in the
	// results ConfigMap.
	ExperimentResultsStored = "ResultsStored"

	// ExperimentSupported is True when the trials support every claim that the profile judges, and
	// False when they refute one. It is Unknown while trials are to run, and afterwards when a
	// claim is undecided or none is judged. Its reason says which.
	ExperimentSupported = "Supported"

	// ExperimentDataReady is True when the data sets that the next trial needs are on the nodes,
	// False while they are prepared or when they cannot be. Absent: no System has data sets, or no
	// trial has needed one yet.
	ExperimentDataReady = "DataReady"

	// ExperimentImagesReady is True when the images of the next trial are on all nodes that its
	// pods may run on, False while nodes pull them or when one cannot. Absent: the experiment does
	// not ask for that (spec.prePull), or no trial has needed one yet.
	ExperimentImagesReady = "ImagesReady"

	// ExperimentWithinBudget is True while the next trial fits into spec.budget, False when it does
	// not, so that no further one starts. Absent: the experiment has no budget.
	ExperimentWithinBudget = "WithinBudget"

	// The conditions of kstatus, by which Flux, kpt and Helm wait for objects of any kind.
	// ExperimentReady is True when the experiment is complete and every repetition has a valid
	// trial, whatever its verdicts are.
	ExperimentReady = "Ready"
	// ExperimentReconciling is True while trials run or are to run.
	ExperimentReconciling = "Reconciling"
	// ExperimentStalled is True when the experiment waits for a user to act: the spec is not
	// accepted, or retries are used up.
	ExperimentStalled = "Stalled"
)

// Reasons of an Experiment's conditions.
const (
	// ReasonValid: the spec and its Systems fit together.
	ReasonValid = "Valid"
	// ReasonSystemNotFound: a System that the spec names does not exist.
	ReasonSystemNotFound = "SystemNotFound"
	// ReasonInvalidSpec: the spec and its Systems do not fit together.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonSnapshotFailed: a snapshot of a System could not be written; it is tried again.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonTrialsRunning: trials are to run.
	ReasonTrialsRunning = "TrialsRunning"
	// ReasonSuspended: spec.suspend holds further trials back.
	ReasonSuspended = "Suspended"
	// ReasonRecurs: the experiment makes runs at its due times, and has no trials of its own.
	ReasonRecurs = "Recurs"
	// ReasonAllTrialsValid: every repetition of every point has a valid trial.
	ReasonAllTrialsValid = "AllTrialsValid"
	// ReasonRetriesExhausted: some repetition has no valid trial and may not be tried again: its
	// retries or disturbances.retryFor are used up.
	ReasonRetriesExhausted = "RetriesExhausted"
	// ReasonBudgetExhausted: spec.budget does not pay for the trials that are missing. The
	// condition WithinBudget says which bound it is.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonWithinBudget: the next trial fits into spec.budget, or none is needed.
	ReasonWithinBudget = "WithinBudget"
	// ReasonNodeHoursExhausted: the next trial would take more than spec.budget.nodeHours has left.
	ReasonNodeHoursExhausted = "NodeHoursExhausted"
	// ReasonDeadlineReached: the next trial would not be over at spec.budget.until.
	ReasonDeadlineReached = "DeadlineReached"
	// ReasonPreparingData: data sets that the next trial needs are being prepared.
	ReasonPreparingData = "PreparingData"
	// ReasonDataFailed: a data set that the next trial needs cannot be prepared. The message says
	// why, with the last lines of its recipe. No further trial runs until its Dataset is deleted.
	ReasonDataFailed = "DataFailed"
	// ReasonPulled: the images of the next trial are on its nodes.
	ReasonPulled = "Pulled"
	// ReasonPullingImages: nodes pull the images of the next trial.
	ReasonPullingImages = "PullingImages"
	// ReasonImagesFailed: a node did not pull an image of the next trial in time, or cannot run it.
	// The message says which. No further trial runs until the Job of that node is deleted.
	ReasonImagesFailed = "ImagesFailed"
	// ReasonSupported: the trials support every claim that the profile judges.
	ReasonSupported = "Supported"
	// ReasonRefuted: the trials refute some claim.
	ReasonRefuted = "Refuted"
	// ReasonUndecided: no claim is refuted, and some is Inconclusive or NotEvaluated.
	ReasonUndecided = "Undecided"
	// ReasonNoClaims: the experiment has no claim, or its profile judges none.
	ReasonNoClaims = "NoClaims"
	// ReasonStored: the results were written and read back.
	ReasonStored = "Stored"
	// ReasonPartlyStored: the results were written without the parts that are too large; the
	// message names those parts.
	ReasonPartlyStored = "PartlyStored"
	// ReasonStoreFailed: the results could not be written to their ConfigMap; it is tried again.
	// The states of a store have reasons of their own.
	ReasonStoreFailed = "StoreFailed"
)

// Conditions of a Trial, in the order of its life. All are set by the trial controller. Each is
// Unknown or absent before its phase, False with a reason while its phase works, True when the
// phase is done.
const (
	// TrialAdmitted: the trial may start: its pools are its own, or shared with its consent, and
	// there is room for every pod. While it is True and Complete is not, the trial holds its pools.
	TrialAdmitted = "Admitted"
	// TrialDeployed: every pod runs, its agent has reported, its files are written and the names of
	// its peers resolve.
	TrialDeployed = "Deployed"
	// TrialNetworkVerified: the links between the pods are shaped, and the trial has measured that
	// every link is as asked.
	TrialNetworkVerified = "NetworkVerified"
	// TrialStarted: every replica is ready.
	TrialStarted = "Started"
	// TrialLoaded: the system's steps are done.
	TrialLoaded = "Loaded"
	// TrialRunning: t = 0 was agreed and the clients were released. Stays True when the run is
	// over.
	TrialRunning = "Running"
	// TrialCollected: every client's results have arrived and are stored.
	TrialCollected = "Collected"
	// TrialValid: True when the results can be trusted, False with the reason when not.
	TrialValid = "Valid"
	// TrialCleanedUp: everything that the trial made is deleted, and its containers have stopped.
	TrialCleanedUp = "CleanedUp"
	// TrialComplete: True when nothing more happens; the reason is Succeeded, Invalid or Failed.
	TrialComplete = "Complete"
)

// Reasons of a Trial's conditions.
const (
	// ReasonQueued: other trials use the pools, or come first.
	ReasonQueued = "Queued"
	// ReasonInsufficientResources: no trial uses the pools, but other pods there leave no room for
	// every pod of the trial. The trial waits; others go first.
	ReasonInsufficientResources = "InsufficientResources"
	// ReasonUnschedulable: the existing nodes have no room for every pod of the trial, even when no
	// other pod runs there. The trial waits for nodes; others go first.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQuotaExceeded: a ResourceQuota of the namespace does not allow every pod of the trial.
	// It waits; others go first.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonAdmitted: the machines are free.
	ReasonAdmitted = "Admitted"
	// ReasonPreparing: the system's prepare step runs.
	ReasonPreparing = "Preparing"
	// ReasonPodsPending: some pods do not run yet, or their agents have not reported.
	ReasonPodsPending = "PodsPending"
	// ReasonConfiguring: files are being written and names resolved.
	ReasonConfiguring = "Configuring"
	// ReasonReady: the condition waits for nothing more.
	ReasonReady = "Ready"
	// ReasonMeasuringPaths: the paths between the pods are measured before anything is shaped.
	ReasonMeasuringPaths = "MeasuringPaths"
	// ReasonVerifyingNetwork: the links are shaped and measured.
	ReasonVerifyingNetwork = "VerifyingNetwork"
	// ReasonReplicasStarting: some replicas are not ready yet.
	ReasonReplicasStarting = "ReplicasStarting"
	// ReasonStepsRunning: a step runs.
	ReasonStepsRunning = "StepsRunning"
	// ReasonClientsNotAtBarrier: some clients are not at the start barrier yet.
	ReasonClientsNotAtBarrier = "ClientsNotAtBarrier"
	// ReasonWaitingForIdle: everything is ready, but other programs disturb the machines.
	ReasonWaitingForIdle = "WaitingForIdle"
	// ReasonReleased: t = 0 is agreed.
	ReasonReleased = "Released"
	// ReasonRunInProgress: clients run, or their results are on the way.
	ReasonRunInProgress = "RunInProgress"
	// ReasonKept: the pods stay for inspection, as debug.keepFailed of the experiment asks.
	ReasonKept = "Kept"
	// ReasonDeleting: objects of the trial still exist.
	ReasonDeleting = "Deleting"
	// ReasonGone: nothing of the trial runs any more, and its objects are deleted. Kubernetes may
	// still remove pods that have ended.
	ReasonGone = "Gone"
	// ReasonSucceeded: the trial ran and its results can be trusted.
	ReasonSucceeded = "Succeeded"
	// ReasonInvalid: the trial ran and its results cannot be trusted.
	ReasonInvalid = "Invalid"
	// ReasonFailed: the trial could not be carried out.
	ReasonFailed = "Failed"
	// ReasonInProgress: the trial is not over.
	ReasonInProgress = "InProgress"

	// ReasonDeadlineExceeded: a wait took longer than its deadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonRenderFailed: a template of the System failed.
	ReasonRenderFailed = "RenderFailed"
	// ReasonPrepareFailed: the prepare step failed.
	ReasonPrepareFailed = "PrepareFailed"
	// ReasonDatasetDiffers: a pod's copy of a data set, or the set on its node, differs from the
	// prepared one, or the set lacks the pod's subPath.
	ReasonDatasetDiffers = "DatasetDiffers"
	// ReasonNoShapingBackend: no backend, or not the one that was asked for, can shape links in
	// every pod.
	ReasonNoShapingBackend = "NoShapingBackend"
	// ReasonNetworkWrong: a link was measured before t = 0 and is not as asked.
	ReasonNetworkWrong = "NetworkWrong"
	// ReasonNetworkLost: a link was as asked before, and is no longer as asked.
	ReasonNetworkLost = "NetworkLost"
	// ReasonNetworkLate: packets were later than tolerated while the trial ran.
	ReasonNetworkLate = "NetworkLate"
	// ReasonPacketsLost: the network lost packets while the trial ran, and the experiment had not
	// asked for that loss.
	ReasonPacketsLost = "PacketsLost"
	// ReasonNetworkNotConfirmed: the trial could not confirm that every link stayed as asked.
	ReasonNetworkNotConfirmed = "NetworkNotConfirmed"
	// ReasonPodsForbidden: the cluster refuses a pod of the trial (Pod Security, a quota, another
	// policy), or the machine of a run without a cluster cannot run it.
	ReasonPodsForbidden = "PodsForbidden"
	// ReasonMachinesPending: the pods that will reset machines do not run yet.
	ReasonMachinesPending = "MachinesPending"
	// ReasonMachineRefused: a fault would reset a node that does not allow it, or a node that also
	// runs other pods than the trial's replicas.
	ReasonMachineRefused = "MachineRefused"
	// ReasonChaosMeshMissing: a fault needs Chaos Mesh, which the cluster does not have or the
	// manager may not use.
	ReasonChaosMeshMissing = "ChaosMeshMissing"
	// ReasonReplicaExited: a replica's process ended though no fault killed it.
	ReasonReplicaExited = "ReplicaExited"
	// ReasonOutOfMemory: the kernel killed a container of the system since it exceeded its own
	// memory limit.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonStepFailed: a step failed.
	ReasonStepFailed = "StepFailed"
	// ReasonClientFailed: a client ended before the run, or failed while requests were sent.
	ReasonClientFailed = "ClientFailed"
	// ReasonLoadEndedEarly: a client ended before the measurement window did.
	ReasonLoadEndedEarly = "LoadEndedEarly"
	// ReasonClientSilent: a client reported no request at all, though others did.
	ReasonClientSilent = "ClientSilent"
	// ReasonRunLost: the run was released, and then its pods disappeared, or the fate of one is
	// unknown. The run is not repeated silently.
	ReasonRunLost = "RunLost"
	// ReasonInterrupted: the command that carried the trial out on one machine ended in its middle,
	// by Ctrl-C say. The trial is repeated, and no budget pays for that.
	ReasonInterrupted = "Interrupted"
	// ReasonEvicted: the cluster ended a pod of the trial: a node was drained, was lost, or ran out
	// of memory or disk, or the scheduler wanted its room.
	ReasonEvicted = "Evicted"
	// ReasonClientLost: the results of a client did not arrive, or were deleted before the trial
	// was judged.
	ReasonClientLost = "ClientLost"
	// ReasonPodRestarted: a container of the trial was restarted by the kubelet.
	ReasonPodRestarted = "PodRestarted"
	// ReasonMarkMissing: a fault counts from a mark, and no line of output matched that mark.
	ReasonMarkMissing = "MarkMissing"
	// ReasonFaultLate: a fault was confirmed too late.
	ReasonFaultLate = "FaultLate"
	// ReasonFaultNotConfirmed: a fault was not confirmed.
	ReasonFaultNotConfirmed = "FaultNotConfirmed"
	// ReasonFaultNotEnded: the end of a fault was not confirmed: it may have lasted longer than
	// planned.
	ReasonFaultNotEnded = "FaultNotEnded"
	// ReasonRoleNotFound: a fault targets the replica that has a role, and in some shard no replica
	// had it then.
	ReasonRoleNotFound = "RoleNotFound"
	// ReasonRoleAmbiguous: a fault targets the replica that has a role, and in some shard several
	// replicas had it then.
	ReasonRoleAmbiguous = "RoleAmbiguous"
	// ReasonStartSpread: the clients did not start together.
	ReasonStartSpread = "StartSpread"
	// ReasonStartLate: clients were released later than agreed, or only began within the window.
	ReasonStartLate = "StartLate"
	// ReasonNotMeasuring: profilers sampled the trial's pods, as a flameGraph asks.
	ReasonNotMeasuring = "NotMeasuring"
	// ReasonCPUThrottled: a container was held back by its CPU limit for longer than tolerated.
	ReasonCPUThrottled = "CPUThrottled"
	// ReasonCPUStolen: a node's hypervisor gave more of its processors to others than tolerated.
	ReasonCPUStolen = "CPUStolen"
	// ReasonProcessorContended: other programs on the trial's nodes had the processors that the
	// trial wanted, more often than tolerated.
	ReasonProcessorContended = "ProcessorContended"
	// ReasonResourcesNotMeasured: an agent did not report what its pod used, or reported it for too
	// little of the window.
	ReasonResourcesNotMeasured = "ResourcesNotMeasured"
	// ReasonGeneratorLate: a load generator did not keep its schedule, though clients were free.
	ReasonGeneratorLate = "GeneratorLate"
	// ReasonClockUncertain: a pod's clock is not known well enough.
	ReasonClockUncertain = "ClockUncertain"
	// ReasonClocksApart: the wall clocks of two pods are further apart than tolerated.
	ReasonClocksApart = "ClocksApart"
	// ReasonClockStepped: the manager's clock, which all instants are given in, changed while the
	// trial ran.
	ReasonClockStepped = "ClockStepped"
	// ReasonClientsMiscounted: the merged results do not come from exactly the clients that the
	// numbers must be about.
	ReasonClientsMiscounted = "ClientsMiscounted"
	// ReasonNothingMeasured: no transaction was committed in the window.
	ReasonNothingMeasured = "NothingMeasured"
	// ReasonHistogramOverflow: latencies lay outside the histogram's range.
	ReasonHistogramOverflow = "HistogramOverflow"
	// ReasonResultsUnreadable: a client's report is missing, damaged or too long.
	ReasonResultsUnreadable = "ResultsUnreadable"
	// ReasonResultsNotStored: the trial's results could not be written by the deadline.
	ReasonResultsNotStored = "ResultsNotStored"
)
