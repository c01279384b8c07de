package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

func TestSoftware(t *testing.T) {
	own := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: "manager-1"},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ImageID: "registry/assay/manager@sha256:1"}}},
	}
	for name, tc := range map[string]struct {
		pods   []client.Object
		server error
		want   results.Software
	}{
		"all":               {pods: []client.Object{own}, want: results.Software{ManagerImage: "registry/assay/manager@sha256:1", Kubernetes: "v1.36.1"}},
		"not in a pod":      {want: results.Software{Kubernetes: "v1.36.1"}},
		"no answer of it":   {pods: []client.Object{own}, server: errors.New("refused"), want: results.Software{ManagerImage: "registry/assay/manager@sha256:1"}},
		"an image to come":  {pods: []client.Object{&corev1.Pod{ObjectMeta: own.ObjectMeta}}, want: results.Software{Kubernetes: "v1.36.1"}},
		"nothing but build": {server: errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &software{
				reader: fake.NewClientBuilder().WithObjects(tc.pods...).Build(), pod: client.ObjectKeyFromObject(own),
				server: func(context.Context) (string, error) {
					if tc.server != nil {
						return "", tc.server
					}
					return "v1.36.1", nil
				},
			}
			tc.want.Manager = buildinfo.Version()
			if diff := cmp.Diff(&tc.want, s.describe(t.Context())); diff != "" {
				t.Errorf("software differs (-want +got):\n%s", diff)
			}
		})
	}
}
