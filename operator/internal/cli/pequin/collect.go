package pequin

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// settingValues are one setting's values at all points.
type settingValues struct {
	setting  string
	where    string // for the parameter's doc
	values   []any  // by point; missing where a series does not have it
	has      []bool
	varies   bool
	protocol bool
}

// collect turns every setting that a program takes into a parameter. It reports the other settings.
func (i *importer) collect() error {
	var tooling, wrapping, unused []string
	var all []*settingValues
	for _, name := range i.config.top.names {
		_, isMapped := mapped[name]
		switch {
		case isMapped:
		case slices.Contains(around, name):
			wrapping = append(wrapping, name)
		case !i.programs.takes(name, false) && !slices.Contains(structural, name):
			if ofScripts(name) {
				tooling = append(tooling, name)
			} else {
				unused = append(unused, name)
			}
		default:
			s, err := i.topLevel(name)
			if err != nil {
				return err
			}
			all = append(all, s)
		}
	}
	protocol, err := i.protocolSettings()
	if err != nil {
		return err
	}
	protocol = slices.DeleteFunc(protocol, func(s *settingValues) bool {
		switch {
		case s.setting == "key_path":
			tooling = append(tooling, s.setting) // the System's prepare step makes the keys
		case s.setting != signatureType && !i.programs.takes(s.setting, true):
			unused = append(unused, s.setting)
		default:
			return false
		}
		return true
	})
	i.drop("settings of the artifact's own scripts (directories, machines, building, plotting), which Assay does itself", tooling)
	i.drop("settings of what the artifact's scripts put around the programs (taskset, a debugger, tracing, limits)", wrapping)
	i.drop("settings that no program takes with this protocol and benchmark; the artifact's scripts do nothing with them, either", unused)
	kept := &parameters{used: map[string]bool{}}
	for _, s := range append(all, protocol...) {
		if err := i.keep(kept, s); err != nil {
			return err
		}
	}
	i.out.parameters = kept.list
	return nil
}

// structural settings are used in the System's commands beside flags.
var structural = []string{"client_threads_per_process", "server_load_time"}

// signatureType is the setting of the protocol that chooses the kind of keys.
const signatureType = "signature_type"

// drop lists settings that the import leaves out, with the reason.
func (i *importer) drop(why string, settings []string) {
	if len(settings) > 0 {
		slices.Sort(settings)
		i.out.Dropped = append(i.out.Dropped, why+": "+strings.Join(settings, ", "))
	}
}

// topLevel collects a setting of the top level.
func (i *importer) topLevel(name string) (*settingValues, error) {
	s := &settingValues{setting: name, where: nameInDoc(name) + " of the artifact's configuration."}
	for _, p := range i.points {
		v, inStep := p.step[name]
		if !inStep {
			var err error
			if v, err = i.loops.outer(i.config.top, name, p.series); err != nil {
				return nil, err
			}
		}
		s.values, s.has = append(s.values, v), append(s.has, true)
	}
	s.varies = slices.Contains(i.loops.names[len(i.loops.names)-1], name)
	return s, nil
}

// protocolSettings collects the members of replication_protocol_settings.
func (i *importer) protocolSettings() ([]*settingValues, error) {
	const name = "replication_protocol_settings"
	var all []*settingValues
	for k, p := range i.points {
		v, inStep := p.step[name]
		if !inStep {
			var err error
			if v, err = i.loops.outer(i.config.top, name, p.series); err != nil {
				return nil, err
			}
		}
		if v == nil {
			continue
		}
		settings, ok := single(v, 0).(*object)
		if !ok {
			return nil, wrong(name, "%s is %s; it must be an object for each series", name, short(text(v)))
		}
		for _, member := range settings.names {
			at := slices.IndexFunc(all, func(s *settingValues) bool { return s.setting == member })
			if at < 0 {
				at = len(all)
				all = append(all, &settingValues{setting: member, where: fmt.Sprintf("%s of the artifact's %s.", nameInDoc(member), name),
					protocol: true, values: make([]any, len(i.points)), has: make([]bool, len(i.points))})
			}
			all[at].values[k], all[at].has[k] = settings.values[member], true
		}
	}
	return all, nil
}

// keep makes a parameter of a setting. If its value changes between points, the points set it.
func (i *importer) keep(kept *parameters, s *settingValues) error {
	if at := slices.Index(s.has, false); at >= 0 {
		return fmt.Errorf("%s is set in some series and not in series %d; import each with --series", s.setting, i.points[at].series+1)
	}
	var kinds []v1alpha1.ParameterType
	for _, v := range s.values {
		_, kind, why := scalar(v)
		if why != "" {
			i.out.Dropped = append(i.out.Dropped, fmt.Sprintf("%s: %s", s.setting, why))
			return nil
		}
		kinds = append(kinds, kind)
		s.varies = s.varies || text(v) != text(s.values[0])
	}
	kept.keep(s.setting, s.where, s.values[0])
	p := &kept.list[len(kept.list)-1]
	p.protocol = s.protocol
	for _, kind := range kinds {
		p.Type = common(p.Type, kind)
	}
	if s.varies {
		p.varies = make([]v1alpha1.Value, len(s.values))
		for k, v := range s.values {
			p.varies[k], _, _ = scalar(v) // scalar found no problem above
		}
	}
	return nil
}

// common is a type that holds values of both types.
func common(a, b v1alpha1.ParameterType) v1alpha1.ParameterType {
	switch {
	case a == b:
		return a
	case a != v1alpha1.ParameterString && b != v1alpha1.ParameterString && a != v1alpha1.ParameterBoolean && b != v1alpha1.ParameterBoolean:
		return v1alpha1.ParameterDecimal
	}
	return v1alpha1.ParameterString
}
