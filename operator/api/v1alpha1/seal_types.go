package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Seal records, before the first trial, what the verdicts of an experiment will be made from.
type Seal struct {
	// sha256 of the claims, the profile, the tolerances and all else that verdicts are made from,
	// in hexadecimal digits. The text is in a ControllerRevision of the experiment and in its
	// results.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`

	// time at which the seal was made.
	Time metav1.Time `json:"time"`

	// earlierRuns is how many earlier experiments of this name have results in the namespace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	EarlierRuns int32 `json:"earlierRuns,omitempty"`

	// earlierOtherClaims is how many of the earlier runs had another seal, or none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	EarlierOtherClaims int32 `json:"earlierOtherClaims,omitempty"`
}
