package timeline

// Kind is what an action does to its pod.
type Kind string

const (
	// Kill drops every packet of the pod (but see WithoutSilence), then kills its processes with
	// SIGKILL and keeps them down. Ended by Revive.
	Kill Kind = "Kill"
	// Revive lets packets pass again and starts the processes that a Kill ended.
	Revive Kind = "Revive"
	// Pause stops the pod's processes with SIGSTOP. Ended by Resume.
	Pause Kind = "Pause"
	// Resume lets the processes that a Pause stopped go on.
	Resume Kind = "Resume"
	// Cut loses the packets to Out and from In. Ended by Heal.
	Cut Kind = "Cut"
	// Heal ends a Cut.
	Heal Kind = "Heal"
	// Degrade makes links worse, as Links say. Ended by Restore.
	Degrade Kind = "Degrade"
	// Restore ends a Degrade.
	Restore Kind = "Restore"
	// Reset resets the machine that the pod runs on. It ends by itself: the machine comes back.
	Reset Kind = "Reset"
	// Inject lets Chaos Mesh do what Object says to the pod. The manager sees to it, not the pod's
	// agent. Ended by Recover, unless it is over at once.
	Inject Kind = "Inject"
	// Recover lets Chaos Mesh undo it.
	Recover Kind = "Recover"
	// Execute runs the action's Command in the pod. It ends by itself.
	Execute Kind = "Execute"
	// Sample has the action's Profiler sample the pod's processes. It ends by itself.
	Sample Kind = "Sample"
)

// Actor is who carries an action out, and tells what became of it.
type Actor int

const (
	// PodAgent is the agent of the action's pod.
	PodAgent Actor = iota
	// MachineAgent is an agent on the machine of the action's pod.
	MachineAgent
	// Manager sees to what Chaos Mesh does.
	Manager
)

// traits are what others than the actor must know of a kind.
type traits struct {
	// end is the kind that ends such an action. Empty: it ends itself, or is an end.
	end Kind
	// by is who carries it out.
	by Actor
	// dueWhenBegun: its beginning must be punctual, and not its confirmation, which takes its time.
	dueWhenBegun bool
	// takesTime: what is done takes effect from its beginning on, and is confirmed when it is over.
	takesTime bool
	// silences: the pod may not answer while it lasts.
	silences bool
	// onLinks: it touches the links to some peers, and nothing else of the pod.
	onLinks bool
	// filters: the agent needs the packet filter, and so NET_ADMIN.
	filters bool
}

// kinds of actions. A new one is a line here, and what carries it out (node/agent/actions.go).
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

// End is the kind that ends actions of this one, if any does.
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

// By is who carries such an action out.
func (k Kind) By() Actor { return kinds[k].by }

// ByChaosMesh reports whether Chaos Mesh carries out such an action, which the manager sees to.
func (k Kind) ByChaosMesh() bool { return kinds[k].by == Manager }

// ConfirmedLate reports whether such an action is confirmed long after it took effect. A machine
// that is reset confirms it when it is back. Chaos Mesh does up to some seconds after, a command
// when it has exited. The effect then counts from the beginning.
func (k Kind) ConfirmedLate() bool { return kinds[k].by != PodAgent || kinds[k].takesTime }

// DueWhenBegun reports whether the beginning of such an action must be punctual, and not its
// confirmation. A revived replica needs its time to start, a link to be changed, a machine to come
// back.
func (k Kind) DueWhenBegun() bool { return kinds[k].dueWhenBegun || k.Ends() }

// Silences reports whether the pod may not answer while such an action lasts.
func (k Kind) Silences() bool { return kinds[k].silences }

// OnLinks reports whether such an action touches the links to its peers, and nothing else of the
// pod.
func (k Kind) OnLinks() bool { return kinds[k].onLinks }

// Filters reports whether the agent needs the packet filter for such an action.
func (k Kind) Filters() bool { return kinds[k].filters }
