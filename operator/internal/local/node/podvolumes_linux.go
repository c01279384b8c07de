package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// volumes makes the volumes of the pod.
func (p *pod) volumes() error {
	for _, v := range p.spec.Spec.Volumes {
		at := p.volume(v.Name)
		if claim := v.PersistentVolumeClaim; claim != nil {
			if at == "" {
				return fmt.Errorf("volume %s: one machine has no PersistentVolumeClaim %s", v.Name, claim.ClaimName)
			}
			continue // the folder outlives the pod
		}
		if err := os.MkdirAll(at, 0o755); err != nil { // #nosec G301 -- containers have users of their own
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
		var err error
		switch {
		case v.EmptyDir != nil:
			err = p.emptyDir(at, v.EmptyDir)
		case v.Projected != nil:
			err = p.project(at, v.Projected)
		default:
			err = errors.New("one machine has volumes of the kinds emptyDir, projected and persistentVolumeClaim only")
		}
		if err != nil {
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// volume returns the folder of a volume. Empty: it is a claim that this machine does not have.
func (p *pod) volume(name string) string {
	for i := range p.spec.Spec.Volumes {
		if claim := p.spec.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && p.spec.Spec.Volumes[i].Name == name {
			return p.m.Claims[claim.ClaimName]
		}
	}
	return filepath.Join(p.dir, "volumes", name)
}

// claimed reports whether a volume is a claim, which outlives the pod.
func (p *pod) claimed(name string) bool {
	return slices.ContainsFunc(p.spec.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name && v.PersistentVolumeClaim != nil })
}

// makeShared makes a directory of a claim to which pods with different users write, as a kubelet
// does. Several pods may call it at once.
func makeShared(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec G301 -- containers have users of their own
		return fmt.Errorf("make a directory of a claim: %w", err)
	}
	return os.Chmod(dir, 0o777) // #nosec G302 -- containers have users of their own
}

func (p *pod) emptyDir(at string, v *corev1.EmptyDirVolumeSource) error {
	kind, options := "", "mode=0777"
	switch v.Medium {
	case corev1.StorageMediumMemory:
		kind = "tmpfs"
		if v.SizeLimit != nil && v.SizeLimit.Value() > 0 {
			options += fmt.Sprintf(",size=%d", v.SizeLimit.Value())
		}
	case corev1.StorageMediumHugePages:
		kind = "hugetlbfs"
	}
	if kind != "" {
		if err := unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return err
		}
	}
	if group := p.spec.Spec.SecurityContext; group != nil && group.FSGroup != nil {
		if err := os.Chown(at, -1, int(*group.FSGroup)); err != nil {
			return err
		}
	}
	return os.Chmod(at, 0o777|os.ModeSetgid)
}

// project writes the agent's token, and the pod's fields.
func (p *pod) project(at string, v *corev1.ProjectedVolumeSource) error {
	write := func(path, content string) error {
		return os.WriteFile(filepath.Join(at, filepath.Base(path)), []byte(content), 0o644) // #nosec G306 -- for every user of the container that mounts it
	}
	for _, s := range v.Sources {
		switch {
		case s.ServiceAccountToken != nil:
			if err := write(s.ServiceAccountToken.Path, p.m.identities.issue(p.spec.UID)); err != nil {
				return err
			}
		case s.DownwardAPI != nil:
			for _, item := range s.DownwardAPI.Items {
				if item.FieldRef == nil {
					return fmt.Errorf("%s is not known here", item.Path)
				}
				if err := write(item.Path, p.field(item.FieldRef.FieldPath)); err != nil {
					return err
				}
			}
		default:
			return errors.New("one machine projects tokens and the pod's own fields only")
		}
	}
	return nil
}

// field returns a field of the pod, as the downward API does.
func (p *pod) field(path string) string {
	switch path {
	case "metadata.name":
		return p.spec.Name
	case "metadata.namespace":
		return p.spec.Namespace
	case "metadata.uid":
		return string(p.spec.UID)
	case "spec.nodeName":
		return p.spec.Spec.NodeName
	case "status.podIP":
		return p.ip.String()
	}
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return p.spec.Annotations[strings.TrimSuffix(key, "']")]
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return p.spec.Labels[strings.TrimSuffix(key, "']")]
	}
	return ""
}

// mounts returns the mounts of a container beside the standard mounts.
func (p *pod) mounts(c *corev1.Container) ([]specs.Mount, error) {
	var mounts []specs.Mount
	for _, name := range []string{"hosts", "hostname", "resolv.conf"} {
		mounts = append(mounts, specs.Mount{Destination: "/etc/" + name, Type: "bind", Source: filepath.Join(p.dir, name), Options: []string{"rbind", "rprivate", "rw"}})
	}
	for _, v := range c.VolumeMounts {
		options := []string{"rbind", "rprivate", "rw"}
		if v.ReadOnly {
			options[2] = "ro"
		}
		source := p.volume(v.Name)
		if v.SubPath != "" {
			source = filepath.Join(source, filepath.Clean("/"+v.SubPath))
		}
		if v.SubPath != "" && p.claimed(v.Name) {
			if err := makeShared(source); err != nil {
				return nil, err
			}
		}
		if !exists(source) {
			return nil, fmt.Errorf("container %s mounts %s, which is no volume of its pod", c.Name, v.Name)
		}
		mounts = append(mounts, specs.Mount{Destination: v.MountPath, Type: "bind", Source: source, Options: options})
	}
	return mounts, nil
}
