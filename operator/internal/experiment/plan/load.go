package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Settings of clients that say nothing: an experiment that leaves them out has them.
const (
	defaultTimeout    v1alpha1.Duration = "10s"
	defaultBackoff    v1alpha1.Duration = "2ms"
	defaultMaxBackoff v1alpha1.Duration = "300ms"
)

// checkLoad checks that what an experiment says of its load is carried out: by Assay's load
// generator, or by complete clients whose System says that they do.
func (e *expansion) checkLoad(s system, c v1alpha1.Clients) {
	if s.spec.Clients.Driver != nil {
		return
	}
	path := field.NewPath("spec", "clients")
	retries := c.Retry.Attempts != 0 || c.Retry.Backoff.OrZero() != defaultBackoff.OrZero() || c.Retry.MaxBackoff.OrZero() != defaultMaxBackoff.OrZero()
	for _, one := range []struct {
		setting v1alpha1.ClientSetting
		at      *field.Path
		value   string // empty: it says nothing
		load    string // in templates
	}{
		{v1alpha1.SettingRate, path.Child("rate"), said(c.Rate != nil, c.Rate), ".Load.Rate"},
		{v1alpha1.SettingArrivals, path.Child("arrivals"), said(c.Arrivals != nil && *c.Arrivals != v1alpha1.ArrivalsPoisson, c.Arrivals), ".Load.Arrivals"},
		{v1alpha1.SettingThinkTime, e.origin.thinkTime(), said(c.ThinkTime.OrZero() != 0, &c.ThinkTime), ".Load.ThinkTimeSeconds"},
		{v1alpha1.SettingTimeout, path.Child("timeout"), said(c.Timeout.OrZero() != defaultTimeout.OrZero(), &c.Timeout), ".Load.TimeoutSeconds"},
		{v1alpha1.SettingRetry, path.Child("retry"), said(retries, &c.Retry), ".Load.RetryAttempts"},
	} {
		if one.value == "" || slices.Contains(s.spec.Clients.Uses, one.setting) {
			continue
		}
		e.add(field.Invalid(one.at, one.value, fmt.Sprintf(
			"System %q has complete clients, which pace themselves and are not told of it: remove it, or have the System pass {{%s}} to its client and name %s in spec.clients.uses",
			s.name, one.load, one.setting)))
	}
}

// said is a setting as text, if it was set.
func said[T any](set bool, value *T) string {
	if !set {
		return ""
	}
	return strings.Trim(fmt.Sprint(*value), "{}")
}
