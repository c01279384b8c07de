package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The network of the pods is a bridge in a network namespace of its own. The machine's own
// namespace gets no address and no firewall rule.
//
//	 pod's namespace          hub
//	eth0 10.199.0.5/16 --- veth5 -- bridge 10.199.0.1 (the coordinator, names)
var (
	subnet  = netip.MustParsePrefix("10.199.0.0/16")
	gateway = netip.MustParseAddr("10.199.0.1")
)

const bridgeName = "assay0"

// network is the hub of the pods' network.
type network struct {
	dir    string // folder of the files that hold namespaces
	hub    netns.NsHandle
	handle *netlink.Handle
	bridge netlink.Link
}

// newNetwork makes the hub.
func newNetwork(dir string) (*network, error) {
	n := &network{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the pods' network: %w", err)
	}
	var err error
	if n.hub, err = n.newNamespace("hub"); err != nil {
		return nil, err
	}
	if n.handle, err = handleAt(n.hub); err != nil {
		return nil, fmt.Errorf("make the pods' network: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	if err := n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return nil, fmt.Errorf("make the pods' bridge: %w", err)
	}
	if n.bridge, err = n.handle.LinkByName(bridgeName); err != nil {
		return nil, fmt.Errorf("make the pods' bridge: %w", err)
	}
	if err := address(n.handle, n.bridge, gateway); err != nil {
		return nil, err
	}
	return n, up(n.handle, "lo")
}

// newNamespace makes a network namespace. A file with its name holds it.
func (n *network) newNamespace(name string) (netns.NsHandle, error) {
	path := filepath.Join(n.dir, name)
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in the namespace, and ends with the goroutine
		made <- func() error {
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o400)
			if err != nil {
				return err
			}
			if err := file.Close(); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			return unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
		}()
	}()
	if err := <-made; err != nil {
		return 0, fmt.Errorf("make the network namespace %s: %w", name, err)
	}
	handle, err := netns.GetFromPath(path)
	if err != nil {
		return 0, fmt.Errorf("open the network namespace %s: %w", name, err)
	}
	return handle, nil
}

// attach makes a pod's namespace with an address. It returns the file of the namespace.
func (n *network) attach(pod string, index int, ip netip.Addr) (path string, err error) {
	ns, err := n.newNamespace(pod)
	if err != nil {
		return "", err
	}
	defer ns.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = fmt.Sprintf("veth%d", index), n.bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns))}
	if err := n.handle.LinkAdd(veth); err != nil {
		return "", fmt.Errorf("connect pod %s: %w", pod, err)
	}
	if err := up(n.handle, attrs.Name); err != nil {
		return "", err
	}
	inside, err := handleAt(ns)
	if err != nil {
		return "", fmt.Errorf("connect pod %s: %w", pod, err)
	}
	defer inside.Close()
	link, err := inside.LinkByName("eth0")
	if err != nil {
		return "", fmt.Errorf("connect pod %s: %w", pod, err)
	}
	if err := address(inside, link, ip); err != nil {
		return "", err
	}
	if err := up(inside, "lo"); err != nil {
		return "", err
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()}
	if err := inside.RouteAdd(route); err != nil {
		return "", fmt.Errorf("connect pod %s: %w", pod, err)
	}
	return filepath.Join(n.dir, pod), nil
}

// detach removes a pod's namespace, and its cable with it.
func (n *network) detach(pod string) error {
	path := filepath.Join(n.dir, pod)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the network of pod %s: %w", pod, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the network of pod %s: %w", pod, err)
	}
	return nil
}

func (n *network) close() error {
	n.handle.Close()
	return errors.Join(n.hub.Close(), n.detach("hub"))
}

func up(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// address gives a link an address and sets it up.
func address(h *netlink.Handle, link netlink.Link, ip netip.Addr) error {
	addr, err := netlink.ParseAddr(netip.PrefixFrom(ip, subnet.Bits()).String())
	if err == nil {
		err = h.AddrAdd(link, addr)
	}
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, ip, err)
	}
	return nil
}

// within calls a function on a thread in a namespace. Sockets that the function opens stay in the
// namespace. The thread does not go back: root of a user namespace may not enter the machine's own
// network.
func within(ns netns.NsHandle, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see newNamespace
		if err := netns.Set(ns); err != nil {
			done <- fmt.Errorf("enter the pods' network: %w", err)
			return
		}
		done <- do()
	}()
	return <-done
}

// handleAt does the same as NewHandleAt of netlink, which would switch the thread back.
func handleAt(ns netns.NsHandle) (h *netlink.Handle, err error) {
	err = within(ns, func() (err error) {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	return h, err
}

// listen listens for pods at the gateway's address.
func (n *network) listen(ctx context.Context, port int) (l net.Listener, err error) {
	err = within(n.hub, func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(gateway, uint16(port)).String())
		return err
	})
	return l, err
}

func (n *network) listenPacket(ctx context.Context, port int) (c net.PacketConn, err error) {
	err = within(n.hub, func() (err error) {
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, "udp", netip.AddrPortFrom(gateway, uint16(port)).String())
		return err
	})
	return c, err
}
