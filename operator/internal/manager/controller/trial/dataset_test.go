package trial

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A trial with damaged data once held its pools until the deadline, some five minutes.
func TestACopyThatIsRefusedEndsTheTrial(t *testing.T) {
	const said = "data set rows-0a1b: rows/7.sst has been changed on this node since it was prepared; delete the Dataset, and it is prepared again"
	for name, tc := range map[string]struct {
		code int32
		ends bool
	}{"refused": {3, true}, "failed for now": {1, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, func(s *v1alpha1.SystemSpec) {
				s.Datasets = []v1alpha1.DatasetSource{{Name: "rows", Container: s.Replicas.Containers[0], OutputPath: "/made", MountPath: "/rows", Size: resource.MustParse("1Mi"), UsedBy: v1alpha1.DatasetForReplicas}}
			})
			p.discard(p.key)
			p.changeTrial = func(s *v1alpha1.TrialSpec) {
				s.Datasets = []v1alpha1.TrialDataset{{Name: "rows", Dataset: "rows-0a1b", Digest: "sha256:aa"}}
			}
			p.key = p.newTrial("trial-1")
			p.deployed()
			name := p.layout().ServerPods()[1]
			pod := &corev1.Pod{}
			if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: name}, pod); err != nil {
				t.Fatal(err)
			}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "dataset-rows", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: tc.code, Message: "agent: " + said + "\n",
			}}}}
			if err := p.env.Client.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			delete(p.agents.reports, name) // its agent has not begun
			p.settle(false)
			if c := p.condition(v1alpha1.TrialValid); !tc.ends {
				if c.Reason != "" {
					t.Errorf("the trial ended with %s: %s", c.Reason, c.Message)
				}
				p.agents.reports[name] = &protocol.Report{Incarnation: "1"}
				p.settle(true)
				return
			}
			p.clock.Step(time.Minute)
			p.settle(false)
			p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonDatasetDiffers)
			if c := p.condition(v1alpha1.TrialValid); !strings.HasPrefix(c.Message, "Pod "+name+" on node ") || !strings.HasSuffix(c.Message, said) {
				t.Errorf("the message is %q", c.Message)
			}
		})
	}
}
