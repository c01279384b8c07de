package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
)

// validRegion is the pattern of the names of regions, as in the schema.
var validRegion = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// resolveNetwork places the clients and writes every directed link into the trial. The path leads
// to the network's profile.
func (e *expansion) resolveNetwork(path *field.Path, trial *v1alpha1.TrialSpec) {
	if len(trial.Clients.Regions) == 0 {
		trial.Clients.Regions = placement.Regions(trial.Topology)
	}
	regions := placement.ServerRegions(trial.Topology)
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
		e.add(e.networkError(path, trial.Network, err))
		return
	}
	for d, link := range links {
		link.Rate = link.RateOrDefault()
		if err := link.Validate(); err != nil {
			e.add(field.Invalid(e.origin.network().Child("links"), d.From+" to "+d.To, err.Error()))
		}
	}
	trial.Network.Links = links.Links()
	e.checkUnshaped(path, trial)
}

// checkUnshaped refuses a network that needs shaping if Assay may not change the pods' network. The
// path leads to the network's profile. Faults have their own checks.
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

// loudKills warns of kills that do not first drop the pod's packets.
func (e *fieldChecker) loudKills() []string {
	if e.spec.Network.Shaping != v1alpha1.ShapingNone {
		return nil
	}
	var warnings []string
	for i := range e.spec.Faults {
		if fault.KillsPods(&e.spec.Faults[i]) {
			warnings = append(warnings, fmt.Sprintf("%s: with network.shaping: None the processes are killed and the network is not silenced before: "+
				"peers are told by FIN or RST, as of a process that crashes and not as of a machine without power", e.faultPath(i).Child("nodeKill")))
		}
	}
	return warnings
}

// networkError puts an error at the path where the wrong value was written. It reports an error in
// a profile where the profile was chosen.
func (e *draft) networkError(path *field.Path, n v1alpha1.Network, err error) *field.Error {
	located := (*network.Error)(nil)
	if errors.As(err, &located) && located.Link >= 0 {
		at := e.origin.network()
		// The links of the point follow the network's own links.
		if own := len(e.spec.Network.Links); located.Link >= own {
			at, located.Link = path, located.Link-own
		}
		return network.At(at, err)
	}
	if path.String() == e.origin.network().String() {
		path = path.Child("profile")
	}
	return field.Invalid(path, string(n.Profile), err.Error())
}
