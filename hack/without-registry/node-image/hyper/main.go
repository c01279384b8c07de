// Command hyper holds the programs of a Kubernetes node in one binary and
// becomes the one it is called as: kubeadm, kubelet, kubectl, kube-apiserver,
// kube-controller-manager, kube-scheduler, kube-proxy, kindnetd, coredns or
// storage.
//
// One binary, because they share nearly all their code: 156 MB together instead
// of some 600 MB, one link step instead of seven, and one image layer for all
// control-plane images (see ../preload).
//
// go.mod pins every staging module (k8s.io/api, ...) by a replace directive:
// k8s.io/kubernetes requires them at v0.0.0.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	run := func(c *cobra.Command) { os.Exit(cli.Run(c)) }
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(controllers.NewControllerManagerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kube-proxy":
		run(proxy.NewProxyCommand())
	case "kubelet":
		run(kubelet.NewKubeletCommand(context.Background()))
	case "kubeadm":
		if kubeadm.Run() != nil { // it has printed the error
			os.Exit(1)
		}
	case "kubectl":
		// As kubectl's own main: CheckErr prints hints and chooses the exit code.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	case "kindnetd":
		runKindnetd()
	case "coredns":
		runCoreDNS()
	case "storage":
		runStorage()
	default:
		fmt.Fprintf(os.Stderr, "hyper: no program %q: call me as kubeadm, kubelet, kubectl, kube-apiserver, "+
			"kube-controller-manager, kube-scheduler, kube-proxy, kindnetd, coredns or storage\n", name)
		os.Exit(2)
	}
}
