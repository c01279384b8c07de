package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// watcher is this program on a node, beside the processes that it watches. It is not in /tmp: that
// is a mount, and docker cp would write below it.
const watcher = "/bench-faults"

// roundLabel is on the pods of one round.
const roundLabel = "round"

// From linux/pidfd.h.
const (
	pidfdInfoExit = 1 << 3                        // PIDFD_INFO_EXIT
	pidfdGetInfo  = 3<<30 | 64<<16 | 0xff<<8 | 11 // PIDFD_GET_INFO
)

// victims is how many pods are deleted at once: as many as a fault of the experiment has targets.
const victims = 3

// ask makes the victims of a round be deleted. It sets asked of each victim.
type ask func(ctx context.Context, round string, all []*victim) error

// measureDeletes deletes pods, three at once, and returns how long after the request their
// processes were dead. The process is Kubernetes' own pause image. Every node has it, and it ends
// at once when it gets SIGTERM. A process that takes longer to end would look worse.
func (b *bench) measureDeletes(ctx context.Context, name string, by ask) ([]shot, error) {
	nodes, err := b.workers(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := docker(ctx, "cp", self, n+":"+watcher); err != nil {
			return nil, err
		}
	}
	defer func() {
		for _, n := range nodes {
			_ = docker(context.WithoutCancel(ctx), "exec", n, "rm", "-f", watcher) // a failure only leaves the file behind
		}
	}()
	var shots []shot
	for round := range b.rounds {
		more, err := b.deleteOnce(ctx, fmt.Sprintf("%s-%d", name, round), nodes, by)
		if err != nil {
			return nil, err
		}
		shots = append(shots, more...)
	}
	return shots, nil
}

// workers are the nodes that pods may run on. It also sets the image of the pause container there.
func (b *bench) workers(ctx context.Context) ([]string, error) {
	list := &corev1.NodeList{}
	if err := b.cluster.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var names []string
	for _, n := range list.Items {
		if len(n.Spec.Taints) == 0 {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("every node has a taint")
	}
	return names, nil
}

// victim is one pod to be deleted and the watcher of its process.
type victim struct {
	pod   *corev1.Pod
	watch *exec.Cmd
	lines *bufio.Scanner
	asked int64 // when its deletion was requested, CLOCK_MONOTONIC
	err   error // of the request
}

// byRequests deletes each pod by a request of its own, all at once.
func (b *bench) byRequests(ctx context.Context, _ string, all []*victim) error {
	done := make(chan struct{})
	for _, v := range all {
		go func() {
			v.asked = monotonic()
			zero := int64(0)
			v.err = b.clientset.CoreV1().Pods(namespace).Delete(ctx, v.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
			done <- struct{}{}
		}()
	}
	for range all {
		<-done
	}
	for _, v := range all {
		if v.err != nil {
			return fmt.Errorf("delete %s: %w", v.pod.Name, v.err)
		}
	}
	return nil
}

func (b *bench) deleteOnce(ctx context.Context, round string, nodes []string, by ask) ([]shot, error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	var all []*victim
	for i := range victims {
		v, err := b.startVictim(ctx, round, fmt.Sprintf("%s-%d", round, i), nodes[i%len(nodes)])
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	for _, v := range all {
		if err := b.watchVictim(ctx, v); err != nil {
			return nil, err
		}
	}
	time.Sleep(500 * time.Millisecond) // waits until the noise of their start is over, as before a kill of the experiment
	if err := by(ctx, round, all); err != nil {
		return nil, err
	}
	var shots []shot
	for _, v := range all {
		if !v.lines.Scan() {
			return nil, fmt.Errorf("the watcher of %s ended without an answer: %w", v.pod.Name, errors.Join(v.watch.Wait(), ctx.Err()))
		}
		at, status, _ := strings.Cut(v.lines.Text(), " ")
		died, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, err
		}
		if err := v.watch.Wait(); err != nil {
			return nil, fmt.Errorf("the watcher of %s: %w", v.pod.Name, err)
		}
		shots = append(shots, shot{group: round, began: 0, confirmed: float64(died-v.asked) / 1e6, end: status})
	}
	return shots, nil
}

// startVictim runs a pod on the node and waits until it exists.
func (b *bench) startVictim(ctx context.Context, round, name, node string) (*victim, error) {
	image, err := output(ctx, "exec", node, "sh", "-c", "ctr -n k8s.io images ls -q | grep -m1 /pause:")
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelPodType: "victim", roundLabel: round}},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever}},
		},
	}
	if err := b.cluster.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	err = eventually(ctx, time.Minute, name+" runs", func(ctx context.Context) (bool, error) {
		err := b.cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	return &victim{pod: pod}, err
}

// watchVictim starts this program on the victim's node. It prints when it watches and when the
// process has ended.
func (b *bench) watchVictim(ctx context.Context, v *victim) error {
	_, id, _ := strings.Cut(v.pod.Status.ContainerStatuses[0].ContainerID, "://")
	node := v.pod.Spec.NodeName
	pid, err := output(ctx, "exec", node, "sh", "-c", "ctr -n k8s.io tasks ls | awk -v id="+id+" '$1 == id {print $2}'")
	if err != nil {
		return err
	}
	v.watch = exec.CommandContext(ctx, "docker", "exec", node, watcher, watchVerb, pid)
	v.watch.Stderr = os.Stderr
	out, err := v.watch.StdoutPipe()
	if err != nil {
		return err
	}
	if err := v.watch.Start(); err != nil {
		return err
	}
	v.lines = bufio.NewScanner(out)
	if !v.lines.Scan() || v.lines.Text() != "watching" {
		return fmt.Errorf("the watcher of %s on %s says %q, want that it watches", v.pod.Name, node, v.lines.Text())
	}
	return nil
}

// watch waits for the end of a process. It prints when and how the process ended. The time is on
// CLOCK_MONOTONIC, which all containers of a kernel share.
func watch(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	fmt.Println("watching")
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Minute.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("process %d did not end", pid)
		default:
			at := monotonic()
			fmt.Println(at, howEnded(fd))
			return nil
		}
	}
}

// howEnded is the exit status of a process that has ended, as "exit 0" or "signal 9". The parent
// must have reaped the process, which takes a moment, and the kernel must be 6.15 or later.
// Otherwise only the parent knows the status, and howEnded is "".
func howEnded(fd int) string {
	for range 100 {
		info := struct { // struct pidfd_info of linux/pidfd.h, its first version
			mask, cgroup uint64
			ids          [11]uint32
			status       int32
		}{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		switch status := unix.WaitStatus(info.status); {
		case errno != 0 && errno != unix.ESRCH:
			return ""
		case errno != 0 || info.mask&pidfdInfoExit == 0:
			time.Sleep(10 * time.Millisecond) // not reaped yet
		case status.Signaled():
			return fmt.Sprintf("signal %d", status.Signal())
		default:
			return fmt.Sprintf("exit %d", status.ExitStatus())
		}
	}
	return ""
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return ts.Nano()
}

func docker(ctx context.Context, args ...string) error {
	_, err := output(ctx, args...)
	return err
}

func output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
