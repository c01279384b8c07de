package plan

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/network"
)

// validRegion is what a region may be called, as in the schema.
var validRegion = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// anyPeer stands for the other end of a link that is checked by itself.
var anyPeer = netip.MustParseAddr("192.0.2.1")

// resolveNetwork places the clients and writes every directed link into the trial. The path is where the network's profile was chosen.
func (e *expansion) resolveNetwork(path *field.Path, trial *v1alpha1.TrialSpec) {
	regions := populated(trial.Topology)
	if len(trial.Clients.Regions) == 0 {
		trial.Clients.Regions = slices.Clone(regions)
	}
	for i, region := range trial.Clients.Regions {
		if !validRegion.MatchString(region) || len(region) > 14 {
			e.add(field.Invalid(field.NewPath("spec", "clients", "regions").Index(i), region,
				"must be 1 to 14 lower-case letters, digits and dashes, starting with a letter"))
			return
		}
		if !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
	}
	links, err := network.Resolve(trial.Network, regions)
	if err != nil {
		e.add(e.networkError(path, trial.Network, err.Error()))
		return
	}
	for d, link := range links {
		link.Rate = link.RateOrDefault()
		if err := (netem.Table{{Address: anyPeer, Out: link}}).Validate(); err != nil {
			_, why, _ := strings.Cut(err.Error(), "out: ")
			e.add(field.Invalid(e.origin.network().Child("links"), d.From+" to "+d.To, why))
		}
	}
	trial.Network.Links = links.Links()
	e.checkUnshaped(path, trial)
}

// checkUnshaped refuses what cannot be had where Assay may not touch the pods' network. The path is where the network's profile was chosen. Faults are checked
// where they are.
func (e *expansion) checkUnshaped(path *field.Path, trial *v1alpha1.TrialSpec) {
	n := trial.Network
	if n.Shaping != v1alpha1.ShapingNone {
		return
	}
	if n.Backend != v1alpha1.ShapingAuto {
		e.add(field.Invalid(e.origin.network().Child("backend"), string(n.Backend), "nothing is shaped with shaping: None; remove it, or set shaping: Auto"))
	}
	if len(n.Links) == 0 {
		return
	}
	why := "delays, losses and rates need the capability NET_ADMIN, which network.shaping: None does without; choose lan and no links, or shaping: Auto"
	if path.String() != e.origin.network().String() {
		e.add(field.Forbidden(path, fmt.Sprintf("network %s: %s", n.Profile, why)))
		return
	}
	e.add(field.Forbidden(e.origin.network().Child("shaping"), why))
}

// checkUnshapedFault refuses a fault of the network where Assay may not touch it.
func (e *expansion) checkUnshapedFault(path *field.Path, trial *v1alpha1.TrialSpec, f *v1alpha1.Fault) {
	if trial.Network.Shaping != v1alpha1.ShapingNone {
		return
	}
	const why = "needs the capability NET_ADMIN, which network.shaping: None does without; nodeKill, pause and clientBehavior do not; or set shaping: Auto"
	switch {
	case f.Partition != nil:
		e.add(field.Forbidden(path.Child("partition"), why))
	case f.Degrade != nil:
		e.add(field.Forbidden(path.Child("degrade"), why))
	}
}

// loudKills warns of kills that are not silent.
func (e *expansion) loudKills() []string {
	if e.spec.Network.Shaping != v1alpha1.ShapingNone {
		return nil
	}
	var warnings []string
	for i := range e.spec.Faults {
		if k := e.spec.Faults[i].NodeKill; k != nil && k.Mode == v1alpha1.KillPods {
			warnings = append(warnings, fmt.Sprintf("%s: with network.shaping: None the processes are killed and the network is not silenced before: "+
				"peers are told by FIN or RST, as of a process that crashes and not as of a machine without power", e.faultPath(i).Child("nodeKill")))
		}
	}
	return warnings
}

// networkError gives an error of package network the field that it begins with: "profile" or "links[3]: rtt: ...".
func (e *expansion) networkError(path *field.Path, n v1alpha1.Network, text string) *field.Error {
	if !strings.HasPrefix(text, "links[") {
		if path.String() == e.origin.network().String() {
			path = path.Child("profile")
		}
		return field.Invalid(path, string(n.Profile), text)
	}
	head, rest, _ := strings.Cut(text, ": ")
	full := e.origin.network().String() + "." + head
	for _, part := range []string{"rtt", "delay", "jitter", "loss", "rate"} {
		if detail, found := strings.CutPrefix(rest, part+": "); found {
			full, rest = full+"."+part, detail
			break
		}
	}
	value, detail, _ := strings.Cut(rest, ": ")
	return &field.Error{Type: field.ErrorTypeInvalid, Field: full, BadValue: strings.Trim(value, `"`), Detail: detail}
}

// populated lists the regions that hold replicas.
func populated(t v1alpha1.Topology) []string {
	var names []string
	for _, r := range t.Regions {
		if r.Replicas > 0 {
			names = append(names, r.Name)
		}
	}
	return names
}
