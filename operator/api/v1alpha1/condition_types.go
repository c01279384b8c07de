package v1alpha1

// Conditions of an Experiment. All are set by the experiment controller.
const (
	// ExperimentAccepted is True when the spec and the Systems it names fit together and the plan is fixed; False when a user
	// must act: the message names the field.
	ExperimentAccepted = "Accepted"

	// ExperimentComplete is True when no further trial will run, False while trials are to run. Its message is the summary that users see.
	ExperimentComplete = "Complete"

	// ExperimentResultsStored is True when the results of all trials that are done are in the results ConfigMap.
	ExperimentResultsStored = "ResultsStored"
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
	// ReasonAllTrialsValid: every repetition of every point has a valid trial.
	ReasonAllTrialsValid = "AllTrialsValid"
	// ReasonRetriesExhausted: some repetition has no valid trial and may not be tried again.
	ReasonRetriesExhausted = "RetriesExhausted"
	// ReasonStored: written and read back.
	ReasonStored = "Stored"
	// ReasonPartlyStored: written, with something left out for its size; the message says what.
	ReasonPartlyStored = "PartlyStored"
	// ReasonStoreFailed: the results could not be written; it is tried again.
	ReasonStoreFailed = "StoreFailed"
)

// Conditions of a Trial, in the order of its life. All are set by the trial controller. Each is Unknown or absent before its phase,
// False with a reason while its phase works, True when the phase is done.
const (
	// TrialAdmitted: the trial may start; no other trial uses the machines.
	TrialAdmitted = "Admitted"
	// TrialDeployed: every pod runs, its agent has reported, its files are written and the names of its peers resolve.
	TrialDeployed = "Deployed"
	// TrialStarted: every replica is ready.
	TrialStarted = "Started"
	// TrialLoaded: the system's steps are done.
	TrialLoaded = "Loaded"
	// TrialRunning: t = 0 was agreed and the clients were released. Stays True when the run is over.
	TrialRunning = "Running"
	// TrialCollected: every client's results have arrived and are stored.
	TrialCollected = "Collected"
	// TrialValid: True when the results can be trusted, False with the reason when not.
	TrialValid = "Valid"
	// TrialCleanedUp: everything that the trial made is confirmed gone.
	TrialCleanedUp = "CleanedUp"
	// TrialComplete: True when nothing more happens; the reason is Succeeded, Invalid or Failed.
	TrialComplete = "Complete"
)

// Reasons of a Trial's conditions.
const (
	// ReasonQueued: another trial uses the machines.
	ReasonQueued = "Queued"
	// ReasonAdmitted: the machines are free.
	ReasonAdmitted = "Admitted"
	// ReasonPreparing: the system's prepare step runs.
	ReasonPreparing = "Preparing"
	// ReasonPodsPending: some pods do not run yet, or their agents have not reported.
	ReasonPodsPending = "PodsPending"
	// ReasonConfiguring: files are being written and names resolved.
	ReasonConfiguring = "Configuring"
	// ReasonReady: what the condition waits for is there.
	ReasonReady = "Ready"
	// ReasonReplicasStarting: some replicas are not ready yet.
	ReasonReplicasStarting = "ReplicasStarting"
	// ReasonStepsRunning: a step runs.
	ReasonStepsRunning = "StepsRunning"
	// ReasonClientsNotAtBarrier: some clients are not at the start barrier yet.
	ReasonClientsNotAtBarrier = "ClientsNotAtBarrier"
	// ReasonReleased: t = 0 is agreed.
	ReasonReleased = "Released"
	// ReasonRunInProgress: clients run, or their results are on the way.
	ReasonRunInProgress = "RunInProgress"
	// ReasonDeleting: objects of the trial still exist.
	ReasonDeleting = "Deleting"
	// ReasonGone: nothing of the trial exists any more.
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
	// ReasonReplicaExited: a replica's process ended though no fault killed it.
	ReasonReplicaExited = "ReplicaExited"
	// ReasonStepFailed: a step failed.
	ReasonStepFailed = "StepFailed"
	// ReasonClientFailed: a client failed before the run.
	ReasonClientFailed = "ClientFailed"
	// ReasonRunLost: the run was released and its pods are gone; it is not repeated silently.
	ReasonRunLost = "RunLost"
	// ReasonClientLost: the results of a client did not arrive.
	ReasonClientLost = "ClientLost"
	// ReasonPodRestarted: a container of the trial was restarted by the kubelet.
	ReasonPodRestarted = "PodRestarted"
	// ReasonFaultLate: a fault was confirmed too late.
	ReasonFaultLate = "FaultLate"
	// ReasonFaultNotConfirmed: a fault was not confirmed.
	ReasonFaultNotConfirmed = "FaultNotConfirmed"
	// ReasonStartSpread: the clients did not start together.
	ReasonStartSpread = "StartSpread"
	// ReasonNothingMeasured: no transaction was committed in the window.
	ReasonNothingMeasured = "NothingMeasured"
	// ReasonHistogramOverflow: latencies lay outside the histogram's range.
	ReasonHistogramOverflow = "HistogramOverflow"
	// ReasonResultsUnreadable: a client's report could not be read.
	ReasonResultsUnreadable = "ResultsUnreadable"
)
