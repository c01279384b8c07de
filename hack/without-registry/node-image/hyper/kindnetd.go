package main

// kindnetd connects the pods of a kind cluster, in place of kind's daemon of the
// same name (whose module cannot be built by version). On each node it
//
//   - writes a CNI configuration (ptp + portmap) for the node's own podCIDR,
//   - keeps one route to every other node's podCIDR, via that node's InternalIP:
//     kind's nodes share one bridge, so no tunnel is needed,
//   - masquerades what leaves the pod network.
//
// IPv4 only, no NetworkPolicy. Its arguments are the environment variables that
// kind's own manifest sets: NODE_NAME, POD_SUBNET, CONTROL_PLANE_ENDPOINT.

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	cniConf = "/etc/cni/net.d/10-kindnet.conflist"
	// routeProtocol marks the routes that are ours to remove ("ip route ... proto 201").
	routeProtocol = 201
	// resyncEvery brings back routes that vanished with an interface.
	resyncEvery = 10 * time.Second
	retryAfter  = time.Second
)

func runKindnetd() {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	if err := kindnetd(os.Getenv("NODE_NAME"), os.Getenv("POD_SUBNET"), os.Getenv("CONTROL_PLANE_ENDPOINT")); err != nil {
		log.Fatal(err)
	}
}

func kindnetd(node, podSubnet, endpoint string) error {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	if endpoint != "" {
		cfg.Host = "https://" + endpoint // the Service address works only once kube-proxy does
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if err := masquerade(podSubnet); err != nil {
		return err
	}
	nodes, changed, err := watchNodes(client)
	if err != nil {
		return err
	}
	for {
		wait := resyncEvery
		if err := reconcile(node, nodes); err != nil {
			log.Print(err)
			wait = retryAfter
		}
		select {
		case <-changed:
		case <-time.After(wait):
		}
	}
}

// watchNodes returns a synced lister and a channel that holds one value when
// something that matters here may have changed.
func watchNodes(client kubernetes.Interface) (corelisters.NodeLister, <-chan struct{}, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		DeleteFunc: func(any) { notify() },
		UpdateFunc: func(before, after any) { // heartbeats are most of the updates
			a, b := before.(*corev1.Node), after.(*corev1.Node)
			if a.Spec.PodCIDR != b.Spec.PodCIDR || internalIP(a) != internalIP(b) {
				notify()
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	factory.Start(nil) // for the life of the process
	factory.WaitForCacheSync(nil)
	return nodes.Lister(), changed, nil
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && net.ParseIP(a.Address).To4() != nil {
			return a.Address
		}
	}
	return ""
}

func masquerade(podSubnet string) error {
	// add + delete + add: the table is ours alone, whatever ran here before
	rules := fmt.Sprintf(`
add table ip kindnet
delete table ip kindnet
table ip kindnet {
	chain postrouting {
		type nat hook postrouting priority 110; policy accept;
		ip saddr %[1]s ip daddr != %[1]s fib daddr type != local masquerade
	}
}
`, podSubnet)
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader(rules)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("masquerade the pod network: nft: %w: %s", err, out)
	}
	return nil
}

func reconcile(me string, lister corelisters.NodeLister) error {
	nodes, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	gateways := map[string]net.IP{} // podCIDR -> node
	for _, n := range nodes {
		switch cidr, ip := n.Spec.PodCIDR, internalIP(n); {
		case cidr == "":
		case n.Name == me:
			if err := writeCNI(cidr); err != nil {
				return fmt.Errorf("write %s: %w", cniConf, err)
			}
		case ip != "":
			gateways[cidr] = net.ParseIP(ip)
		}
	}
	return syncRoutes(gateways)
}

// syncRoutes makes our routes exactly these. A route that only changes its
// gateway is replaced, never absent in between.
func syncRoutes(gateways map[string]net.IP) error {
	have, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	right := map[string]bool{}
	for _, r := range have {
		dst := ""
		if r.Dst != nil {
			dst = r.Dst.String()
		}
		gw, wanted := gateways[dst]
		if wanted {
			right[dst] = gw.Equal(r.Gw)
			continue
		}
		log.Printf("remove route to %s", dst)
		if err := netlink.RouteDel(&r); err != nil {
			return fmt.Errorf("remove route to %s: %w", dst, err)
		}
	}
	for cidr, gw := range gateways {
		if right[cidr] {
			continue
		}
		_, dst, err := net.ParseCIDR(cidr)
		if err != nil {
			return err
		}
		log.Printf("route %s via %s", dst, gw)
		if err := netlink.RouteReplace(&netlink.Route{Dst: dst, Gw: gw, Protocol: routeProtocol}); err != nil {
			return fmt.Errorf("route %s via %s: %w", dst, gw, err)
		}
	}
	return nil
}

// writeCNI is atomic: containerd reads the directory whenever it changes, and
// the kubelet reports the node Ready once the file is there.
func writeCNI(podCIDR string) error {
	conf := fmt.Sprintf(`{"cniVersion":"0.3.1","name":"kindnet","plugins":[
{"type":"ptp","ipMasq":false,"mtu":1500,"ipam":{"type":"host-local","dataDir":"/run/cni-ipam-state",
"routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":"%s"}]]}},
{"type":"portmap","capabilities":{"portMappings":true}}]}
`, podCIDR)
	if b, err := os.ReadFile(cniConf); err == nil && string(b) == conf {
		return nil
	}
	tmp := filepath.Join(filepath.Dir(cniConf), ".tmp-kindnet")
	if err := os.WriteFile(tmp, []byte(conf), 0o644); err != nil {
		return err
	}
	log.Print("write ", cniConf)
	return os.Rename(tmp, cniConf)
}
