package results

import (
	"cmp"
	"slices"
)

// MachineUse is how the processors of one machine were shared in the window, between the trial and
// others. Shares are from 0 to 1.
//
//	late      = canaries that woke up and waited for a processor for more than a millisecond, less the share in which containers were throttled
//	others    = busy - interrupts - trial
//	contended = late x others / (busy - interrupts)
//
// While a canary waits, another thread has the processor. It is one of the trial's threads, if the
// system has more work than its machine can do, or a thread of another program. The kernel does not
// tell which. So the share of late canaries is divided between both by their processor time.
type MachineUse struct {
	// Machine is the ID of the boot, or the node's name where that is not known. Nodes are those of
	// its nodes that had pods of the trial.
	Machine string   `json:"machine"`
	Nodes   []string `json:"nodes"`
	CPUs    int      `json:"cpus"`
	// TrialCores is what the trial's containers used, its agents included; OthersCores what all
	// other processes did, the kubelet and the manager among them. Interrupts of devices count for
	// neither.
	TrialCores  float64 `json:"trialCores"`
	OthersCores float64 `json:"othersCores"`
	// WaitedShare: threads of the trial's containers waited in this share of the time in which they
	// wanted a processor. They mostly waited for each other. Nil: not known.
	WaitedShare *float64 `json:"waitedShare,omitempty"`
	// LateShare: canaries in the trial's containers waited for a processor for more than a
	// millisecond after this share of their wake-ups. ContendedShare is the part of LateShare that
	// other programs caused. Nil: not known.
	LateShare      *float64 `json:"lateShare,omitempty"`
	ContendedShare *float64 `json:"contendedShare,omitempty"`
}

// machineSums are in seconds of a processor.
type machineSums struct {
	MachineUse
	node   *NodeUse // of the pod that saw most of the window
	trial  float64
	used   float64 // by containers whose waits are known
	waited float64
	known  bool
	wakes  float64
	late   float64
}

// Machines sums up the pods by the machines that they were on, in the order of the machines' first
// nodes.
func Machines(pods []Pod) []MachineUse {
	sums := map[string]*machineSums{}
	var order []*machineSums
	for i := range pods {
		p := &pods[i]
		if p.Resources == nil {
			continue
		}
		key := cmp.Or(p.Resources.Node.Machine, p.Node)
		m := sums[key]
		if m == nil {
			m = &machineSums{MachineUse: MachineUse{Machine: key}}
			sums[key], order = m, append(order, m)
		}
		m.add(p)
	}
	out := make([]MachineUse, 0, len(order))
	for _, m := range order {
		out = append(out, m.use())
	}
	slices.SortStableFunc(out, func(a, b MachineUse) int { return slices.Compare(a.Nodes, b.Nodes) })
	return out
}

func (m *machineSums) add(p *Pod) {
	r := p.Resources
	if at, there := slices.BinarySearch(m.Nodes, p.Node); !there {
		m.Nodes = slices.Insert(m.Nodes, at, p.Node)
	}
	if m.node == nil || r.Node.Seconds > m.node.Seconds {
		m.node, m.CPUs = &r.Node, r.Node.CPUs
	}
	m.trial += r.AgentMeanCores * r.Node.Seconds
	for _, c := range r.Containers {
		used := c.CPUMeanCores * c.Seconds
		m.trial += used
		if c.WaitedSeconds != nil {
			m.used, m.known = m.used+used, true
			m.waited += max(0, *c.WaitedSeconds-c.ThrottledSeconds)
		}
		if c.LateShare != nil {
			m.wakes += float64(c.Wakes)
			m.late += max(0, *c.LateShare-c.ThrottledShare) * float64(c.Wakes)
		}
	}
}

func (m *machineSums) use() MachineUse {
	u := m.MachineUse
	if m.node.Seconds == 0 {
		return u
	}
	busy := (m.node.BusyShare - m.node.InterruptShare) * float64(m.CPUs)
	trial := m.trial / m.node.Seconds
	others := max(0, busy-trial)
	u.TrialCores, u.OthersCores = rounded(trial), rounded(others)
	if wanted := m.used + m.waited; m.known && wanted > 0 {
		waited := rounded(m.waited / wanted)
		u.WaitedShare = &waited
	}
	if m.wakes > 0 {
		late, contended := rounded(m.late/m.wakes), 0.0
		if both := others + trial; both > 0 {
			contended = rounded(m.late / m.wakes * others / both)
		}
		u.LateShare, u.ContendedShare = &late, &contended
	}
	return u
}
