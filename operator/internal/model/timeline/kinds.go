package timeline

// Kind says what an action does to its pod.
type Kind string

const (
	// Kill drops every packet of the pod, unless WithoutSilence is set. Then it kills the pod's
	// processes with SIGKILL and keeps them down. Revive ends it.
	Kill Kind = "Kill"
	// Revive lets packets pass again and starts the processes that a Kill ended.
	Revive Kind = "Revive"
	// Pause stops the pod's processes with SIGSTOP. Resume ends it.
	Pause Kind = "Pause"
	// Resume continues the processes that a Pause stopped.
	Resume Kind = "Resume"
	// Cut loses the packets to Out and from In. Heal ends it.
	Cut Kind = "Cut"
	// Heal ends a Cut.
	Heal Kind = "Heal"
	// Degrade makes links worse, as Links say. Restore ends it.
	Degrade Kind = "Degrade"
	// Restore ends a Degrade.
	Restore Kind = "Restore"
	// Reset resets the machine that the pod runs on. It ends by itself: the machine comes back.
	Reset Kind = "Reset"
	// Inject makes Chaos Mesh apply Object to the pod. The manager does it, not the pod's agent.
	// Recover ends it, unless it is over at once.
	Inject Kind = "Inject"
	// Recover makes Chaos Mesh undo an Inject.
	Recover Kind = "Recover"
	// Execute runs the action's Command in the pod. It ends by itself.
	Execute Kind = "Execute"
	// Sample makes the action's Profiler sample the pod's processes. It ends by itself.
	Sample Kind = "Sample"
)

// Actor carries an action out and reports its outcome.
type Actor int

const (
	// PodAgent is the agent of the action's pod.
	PodAgent Actor = iota
	// MachineAgent is an agent on the machine of the action's pod.
	MachineAgent
	// Manager carries out the actions of Chaos Mesh.
	Manager
)

// traits are the facts about a kind that others than the actor need.
type traits struct {
	// end is the kind that ends such an action. Empty: the action ends by itself, or is an end.
	end Kind
	// by is the actor that carries it out.
	by Actor
	// dueWhenBegun: the action must begin on time, and may be confirmed later.
	dueWhenBegun bool
	// takesTime: the action takes effect when it begins, and is confirmed when it is over.
	takesTime bool
	// silences: the pod may not answer while it lasts.
	silences bool
	// onLinks: it only affects links to some peers, and nothing else of the pod.
	onLinks bool
	// filters: the agent needs the packet filter, and so NET_ADMIN.
	filters bool
}

// kinds of actions. A new kind needs a line here, and code that carries it out
// (node/agent/actions.go).
var kinds = map[Kind]traits{
	Kill:    {end: Revive, silences: true, filters: true},
	Revive:  {},
	Pause:   {end: Resume},
	Resume:  {},
	Cut:     {end: Heal, onLinks: true, filters: true},
	Heal:    {},
	Degrade: {end: Restore, onLinks: true},
	Restore: {},
	Reset:   {by: MachineAgent, silences: true, dueWhenBegun: true},
	Inject:  {end: Recover, by: Manager, silences: true},
	Recover: {by: Manager},
	Execute: {dueWhenBegun: true, takesTime: true},
	Sample:  {dueWhenBegun: true, takesTime: true},
}

// End returns the kind that ends actions of this kind, if there is one.
func (k Kind) End() (end Kind, ok bool) {
	end = kinds[k].end
	return end, end != ""
}

// Ends reports whether actions of this kind end another one.
func (k Kind) Ends() bool {
	for _, t := range kinds {
		if k == t.end {
			return true
		}
	}
	return false
}

// By returns the actor that carries such an action out.
func (k Kind) By() Actor { return kinds[k].by }

// ByChaosMesh reports whether Chaos Mesh carries such an action out, through the manager.
func (k Kind) ByChaosMesh() bool { return kinds[k].by == Manager }

// ConfirmedLate reports whether such an action is confirmed long after it took effect. A reset
// machine confirms it when it is back, and a command when it has exited. Chaos Mesh may take some
// seconds. The effect counts from the beginning of the action.
func (k Kind) ConfirmedLate() bool { return kinds[k].by != PodAgent || kinds[k].takesTime }

// DueWhenBegun reports whether such an action must begin on time, and may be confirmed later. A
// revived replica takes time to start, a link to change, a machine to come back.
func (k Kind) DueWhenBegun() bool { return kinds[k].dueWhenBegun || k.Ends() }

// Silences reports whether the pod may not answer while such an action lasts.
func (k Kind) Silences() bool { return kinds[k].silences }

// OnLinks reports whether such an action only affects links to its peers, and nothing else of the
// pod.
func (k Kind) OnLinks() bool { return kinds[k].onLinks }

// Filters reports whether the agent needs the packet filter for such an action.
func (k Kind) Filters() bool { return kinds[k].filters }
