package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Container is one container of a pod. Its command is explicit because the launcher, not the
// image's entrypoint, is the container's first process and runs the command when the plan says so.
// +kubebuilder:validation:XValidation:rule="!has(self.capabilities) || size(self.capabilities) == 0 || (has(self.runAsUser) && self.runAsUser == 0)",message="capabilities reach processes of root only: set runAsUser: 0, or remove them"
type Container struct {
	// name of the container, unique in its pod. "agent" is taken.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'agent'",message="the name agent is taken by Assay's own container"
	Name string `json:"name"`

	// image to run, best with a digest. Template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// imagePullPolicy as in a Pod. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// command to run, with all arguments. Each element is a template; an element that renders to
	// nothing is left out.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Command []string `json:"command"`

	// env sets environment variables. Values are templates.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// workingDir the command starts in. Default: the image's.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WorkingDir string `json:"workingDir,omitempty"`

	// processors is how many processors the command may run on. That is also how many it sees:
	// nproc, Java, Go and C++'s hardware_concurrency count these. Template that renders to a whole
	// number from 0 to 4096, or to nothing. The launcher binds the command to this many of the
	// container's processors. Containers of a trial on one node get different processors, as long
	// as there are enough. A trial fails if the container has fewer. A program that binds its own
	// threads undoes this. Not for recipes of data sets. Default: 0, all processors of the
	// container.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Processors string `json:"processors,omitempty"`

	// resources asked for and limited, as in a Pod.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// runAsUser is the numeric user that the command runs as. Default: 65532. 0 (root) needs a
	// namespace that allows it.
	// +optional
	// +kubebuilder:default=65532
	// +kubebuilder:validation:Minimum=0
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// capabilities of the kernel that the command has, such as IPC_LOCK to lock memory for RDMA.
	// The owner of the installation must allow each one, and the namespace must admit it. They
	// need runAsUser: 0. Recipes of data sets can have none. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Z0-9_]*$`
	Capabilities []string `json:"capabilities,omitempty"`
}

// EnvVar is one environment variable.
type EnvVar struct {
	// name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// value of the variable. Template.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// FileSet is a directory of rendered configuration files. It is written before the container's
// command starts and after every pod of the trial has its address, so a template may use literal
// IPs. The command may change the files.
type FileSet struct {
	// mountPath is the directory in every container of the pod, absolute.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	MountPath string `json:"mountPath"`

	// files in the directory.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Files []File `json:"files"`
}

// File is one rendered file.
type File struct {
	// name of the file in its directory.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	Name string `json:"name"`

	// template is the Go template of the content. At most 64 KiB.
	// +kubebuilder:validation:MaxLength=65536
	Template string `json:"template"`
}

// VolumeMedium is where a volume lives. Memory: tmpfs, which counts as the pod's memory. Disk: the
// node's disk, gone with the pod. HugePages: hugetlbfs, of the pages that the containers' limits
// name (hugepages-2Mi or hugepages-1Gi), gone with the pod. PersistentVolumeClaim: a volume of a
// storage class, gone with the trial.
// +kubebuilder:validation:Enum=Memory;Disk;HugePages;PersistentVolumeClaim
type VolumeMedium string

// The media of a volume.
const (
	VolumeMemory                VolumeMedium = "Memory"
	VolumeDisk                  VolumeMedium = "Disk"
	VolumeHugePages             VolumeMedium = "HugePages"
	VolumePersistentVolumeClaim VolumeMedium = "PersistentVolumeClaim"
)

// Volume is a writable directory of a replica.
// +kubebuilder:validation:XValidation:rule="!has(self.storageClass) || self.medium == 'PersistentVolumeClaim'",message="storageClass is for medium PersistentVolumeClaim only: remove it, or change the medium"
type Volume struct {
	// name of the volume, unique in the system.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// mountPath in every container of the pod, absolute.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	MountPath string `json:"mountPath"`

	// medium the volume lives on.
	Medium VolumeMedium `json:"medium"`

	// size is the most that the volume may hold; for a PersistentVolumeClaim, the size that it
	// requests. HugePages: not used, since the containers' limits bound the pages.
	Size resource.Quantity `json:"size"`

	// storageClass of a PersistentVolumeClaim, such as one of the nodes' local disks. A class whose
	// volumes are bound to a node must have volumeBindingMode: WaitForFirstConsumer. Default: the
	// cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	StorageClass string `json:"storageClass,omitempty"`
}

// Port is a port that a replica listens on, the same number in every replica (each has a network
// namespace of its own).
type Port struct {
	// name of the port: templates find it as .Ports.<name>.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Name string `json:"name"`

	// port number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
