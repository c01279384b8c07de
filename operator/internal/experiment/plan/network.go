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

// validRegion is what a region may be called, as in the schema.
var validRegion = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// resolveNetwork places the clients and writes every directed link into the trial. The path is
// where the network's profile was chosen.
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

// checkUnshaped refuses what cannot be had where Assay may not touch the pods' network. The path is
// where the network's profile was chosen. Faults are checked where they are.
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

// loudKills warns of kills that are not silent.
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

// networkError puts what is wrong where it was written. An error in a profile is reported where the
// profile was chosen.
func (e *draft) networkError(path *field.Path, n v1alpha1.Network, err error) *field.Error {
	located := (*network.Error)(nil)
	if errors.As(err, &located) && located.Link >= 0 {
		at := e.origin.network()
		// Behind the network's own links are those of the point that the path is of.
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
