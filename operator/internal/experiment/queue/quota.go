package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Quota reports whether the quotas of a namespace allow all pods. It ignores quotas with scopes:
// only the API server knows which pods they are about.
//
// It knows of pods, and of the requests and limits of their containers. A quota on other objects
// stops a trial when it creates one too many.
func Quota(pods []Pod, quotas []corev1.ResourceQuota) Room {
	asked := quotaDemand(pods)
	for i := range quotas {
		q := &quotas[i]
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
			counted, known := quotaNames[name]
			if !known || asked[counted] == 0 {
				continue
			}
			hard, used := q.Status.Hard[name], q.Status.Used[name]
			limit, in := amountOf(counted, hard), amountOf(counted, used)
			detail := fmt.Sprintf("ResourceQuota %s allows %s %s, of which %s is in use, and the trial needs %s", q.Name, name,
				hard.String(), used.String(), text(resourceOf(counted), asked[counted]))
			switch {
			case asked[counted] > limit:
				return Room{State: QuotaExceeded, Missing: "It can never start under the namespace's quota: " + detail + "."}
			case asked[counted] > limit-in:
				return Room{State: QuotaExceeded, Missing: "Waiting for the namespace's quota: " + detail + "."}
			}
		}
	}
	return Room{State: Start}
}

// quotaNames maps the names in a quota to what they count: "pods", or requests or limits of a
// resource.
var quotaNames = map[corev1.ResourceName]corev1.ResourceName{
	corev1.ResourcePods: corev1.ResourcePods, "count/pods": corev1.ResourcePods,
	corev1.ResourceCPU: corev1.ResourceRequestsCPU, corev1.ResourceRequestsCPU: corev1.ResourceRequestsCPU,
	corev1.ResourceMemory: corev1.ResourceRequestsMemory, corev1.ResourceRequestsMemory: corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU: corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory: corev1.ResourceLimitsMemory,
}

func quotaDemand(pods []Pod) amounts {
	total := amounts{}
	for _, p := range pods {
		pod := defaulted(p.Spec)
		total[corev1.ResourcePods]++
		for prefix, list := range map[string]corev1.ResourceList{
			"requests.": resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}),
			"limits.":   resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}),
		} {
			for name, q := range amountsOf(list) {
				total[corev1.ResourceName(prefix)+name] += q
			}
		}
	}
	return total
}

// resourceOf returns the resource that a quota's name is about.
func resourceOf(name corev1.ResourceName) corev1.ResourceName {
	_, after, found := strings.Cut(string(name), ".")
	if !found {
		return name
	}
	return corev1.ResourceName(after)
}

func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if resourceOf(name) == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
