package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Anyone who may create pods in the namespace can give them the labels of a trial's client. The
// agent of such a pod does not speak for the trial, and the Job's own pod stays the client.
func TestAPodThatTheTrialHasNotMadeTakesNoPart(t *testing.T) {
	yes := true
	for name, owners := range map[string][]metav1.OwnerReference{
		"a pod that nobody has made":       nil,
		"a pod of a Job of the same name":  {{APIVersion: "batch/v1", Kind: "Job", UID: "another", Controller: &yes}},
		"a pod that the Job does not make": {{APIVersion: "batch/v1", Kind: "Job", UID: "", Controller: nil}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			p.deployed()
			l := p.layout()
			genuine := &corev1.Pod{}
			if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: l.Clients[0].Name + "-x"}, genuine); err != nil {
				t.Fatal(err)
			}
			for i := range owners {
				owners[i].Name = l.ClientSets[0].Name
				if owners[i].UID == "" {
					owners[i].UID = genuine.OwnerReferences[0].UID
				}
			}
			// Its name sorts last: once, the last pod of a list would have taken the client's
			// place.
			intruder := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: l.Clients[0].Name + "-z", Labels: genuine.Labels, OwnerReferences: owners},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64)},
			}
			replica := intruder.DeepCopy()
			replica.Name, replica.Labels = l.Servers[0].Name+"0", map[string]string{v1alpha1.LabelTrial: p.key.Name, v1alpha1.LabelPodType: v1alpha1.PodTypeReplica}
			for _, pod := range []*corev1.Pod{intruder, replica} {
				if err := p.env.Client.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			p.reconcile()
			if got := p.agents.registered[l.Clients[0].Name].UID; got != genuine.UID {
				t.Errorf("client 0 is the pod %q, want %q of the trial's Job", got, genuine.UID)
			}
			if got, ok := p.agents.registered[replica.Name]; ok {
				t.Errorf("the agent of %s may speak for the trial: %+v", replica.Name, got)
			}
		})
	}
}
