// Command preload writes the archives of the node image.
//
//	preload images -bin DIR -rootfs DIR -o images.tar
//	    every image that a node must find without a registry: kubeadm's list,
//	    the pod network, the storage provisioner, and a busybox
//	preload node -tar rootfs.tar -name IMAGE -o node.tar
//	    the node itself, for docker load
//
// Versions come from the environment (versions.env). Prints the names.
//
// Images that hold the same program share its layer: hyper is stored once for
// seven of them. kube-proxy and kindnetd also need packet filter tools; these are
// copied from the node's own root file system with the libraries they load.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"

	"assay.dev/assay/hack/images/imagetar"
)

const (
	kubernetes = "registry.k8s.io/" // names that kubeadm writes into manifests
	local      = "localhost/"       // names of ../manifests; never pulled
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("want images or node"))
	}
	fs := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	out := fs.String("o", "", "archive to write")
	bin := fs.String("bin", "", "directory with the built programs")
	rootfs := fs.String("rootfs", "", "the node's root file system")
	tarFile := fs.String("tar", "", "root file system as a tar file")
	name := fs.String("name", "", "name of the node image")
	if err := fs.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	var ims []imagetar.Image
	var err error
	switch os.Args[1] {
	case "images":
		ims, err = (&source{bin: *bin, rootfs: *rootfs}).images()
	case "node":
		ims, err = node(*tarFile, *name)
	default:
		err = fmt.Errorf("no command %q", os.Args[1])
	}
	if err == nil {
		err = write(*out, ims)
	}
	if err != nil {
		fail(err)
	}
	for _, im := range ims {
		fmt.Println(strings.Join(im.Names, " "))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "preload:", err)
	os.Exit(1)
}

func write(file string, ims []imagetar.Image) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := imagetar.Write(f, ims...); err != nil {
		return err
	}
	return f.Close()
}

func node(tarFile, name string) ([]imagetar.Image, error) {
	l, err := imagetar.TarLayer(tarFile)
	if err != nil {
		return nil, err
	}
	return []imagetar.Image{{Names: []string{name}, Arch: runtime.GOARCH, Layers: []imagetar.Layer{l}, Config: imagetar.Config{
		Env:        []string{path, "container=docker"}, // systemd reads "container"
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		StopSignal: "SIGRTMIN+3", // systemd's orderly shutdown
	}}}, nil
}

const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// source makes layers; the first error is kept.
type source struct {
	bin, rootfs string
	err         error
}

func (s *source) layer(b *imagetar.LayerBuilder) imagetar.Layer {
	l, err := b.ZstdLayer()
	if s.err == nil {
		s.err = err
	}
	return l
}

func (s *source) program(name, dst string, links ...string) imagetar.Layer {
	b := imagetar.NewLayer().File(dst, filepath.Join(s.bin, name), 0o755)
	for _, l := range links {
		b.Link(filepath.Join(filepath.Dir(dst), l), name)
	}
	return s.layer(b)
}

func (s *source) images() ([]imagetar.Image, error) {
	v := os.Getenv
	base := s.layer(imagetar.NewLayer().
		Data("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", 0o644).
		Data("/etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644).
		File("/etc/ssl/certs/ca-certificates.crt", s.rootfs+"/etc/ssl/certs/ca-certificates.crt", 0o644).
		Dir("/tmp", 0o1777))
	hyper := s.program("hyper", "/usr/local/bin/hyper",
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kindnetd", "coredns", "storage")
	nettools := s.nettools()
	pause := s.program("pause", "/pause")

	var ims []imagetar.Image
	add := func(name, user, entrypoint string, layers ...imagetar.Layer) {
		ims = append(ims, imagetar.Image{Names: []string{name}, Arch: runtime.GOARCH, Layers: layers,
			Config: imagetar.Config{User: user, Env: []string{path}, Entrypoint: []string{entrypoint}}})
	}
	for _, c := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		add(kubernetes+c+":"+v("KUBERNETES_VERSION"), "", c, base, hyper)
	}
	add(kubernetes+"kube-proxy:"+v("KUBERNETES_VERSION"), "", "kube-proxy", base, hyper, nettools)
	add(kubernetes+"etcd:"+v("ETCD_TAG"), "", "etcd", base, s.program("etcd", "/usr/local/bin/etcd"))
	add(kubernetes+"coredns/coredns:"+v("COREDNS_VERSION"), "", "coredns", base, hyper)
	add(kubernetes+"pause:"+v("PAUSE_TAG"), "65535:65535", "/pause", pause)
	add(local+"kindnetd:"+v("KUBERNETES_VERSION"), "", "kindnetd", base, hyper, nettools)
	add(local+"storage:"+v("KUBERNETES_VERSION"), "", "storage", base, hyper)
	add(local+"busybox:"+v("DEBIAN_SUITE"), "", "/bin/sh", base, s.busybox())
	return ims, s.err
}

// busybox is an image with a shell for tests, and for people who look into a cluster.
func (s *source) busybox() imagetar.Layer {
	b := imagetar.NewLayer().File("/bin/busybox", s.rootfs+"/bin/busybox", 0o755)
	for _, tool := range strings.Fields("sh mkdir rm ls cat chmod sleep wget nslookup nc ping ip df du dd echo env hostname " +
		"id ps top vi grep sed awk head tail true false test touch date seq") {
		b.Link("/bin/"+tool, "busybox")
	}
	return s.layer(b)
}

// nettools has what kube-proxy (iptables and nftables mode) and kindnetd call.
func (s *source) nettools() imagetar.Layer {
	bins := []string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi", "/usr/sbin/nft", "/usr/sbin/ipset",
		"/usr/sbin/conntrack", "/usr/bin/ip"}
	modules, err := filepath.Glob(s.rootfs + "/usr/lib/*/xtables/*.so")
	if err != nil || len(modules) == 0 {
		s.err = fmt.Errorf("no xtables modules in %s: %v", s.rootfs, err)
		return imagetar.Layer{}
	}
	for _, m := range modules {
		bins = append(bins, strings.TrimPrefix(m, s.rootfs))
	}
	files := map[string]bool{}
	for _, f := range append(bins, s.libraries(bins)...) {
		files[usrMerged(f)] = true
	}
	sorted := make([]string, 0, len(files))
	for f := range files {
		sorted = append(sorted, f)
	}
	sort.Strings(sorted)

	b := imagetar.NewLayer()
	for _, d := range []string{"lib", "lib64", "bin", "sbin"} {
		b.Link("/"+d, "usr/"+d)
	}
	for _, f := range sorted {
		b.File(f, s.resolve(f), 0o755)
	}
	for _, ip := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			b.Link("/usr/sbin/"+ip+suffix, "xtables-nft-multi")
			b.Link("/usr/sbin/"+ip+"-nft"+suffix, "xtables-nft-multi")
			b.Link("/usr/sbin/"+ip+"-legacy"+suffix, "xtables-legacy-multi")
		}
	}
	b.File("/usr/bin/busybox", s.rootfs+"/bin/busybox", 0o755) // for kubectl exec
	for _, tool := range []string{"sh", "cat", "ls"} {
		b.Link("/usr/bin/"+tool, "busybox")
	}
	return s.layer(b)
}

var inLdd = regexp.MustCompile(`(/\S+) \(0x`)

// libraries asks the node's own dynamic loader, in a chroot, what the files load.
func (s *source) libraries(bins []string) []string {
	out, err := exec.Command("chroot", append([]string{s.rootfs, "ldd"}, bins...)...).Output()
	if err != nil {
		s.err = fmt.Errorf("chroot %s ldd: %w", s.rootfs, err)
	}
	var libs []string
	for _, m := range inLdd.FindAllStringSubmatch(string(out), -1) {
		libs = append(libs, m[1])
	}
	return libs
}

// usrMerged gives a path its real place: /lib and its like are links to /usr/lib.
func usrMerged(p string) string {
	p = filepath.Clean(p)
	for _, d := range []string{"/lib/", "/lib64/", "/bin/", "/sbin/"} {
		if strings.HasPrefix(p, d) {
			return "/usr" + p
		}
	}
	return p
}

// resolve follows links inside the root file system; absolute ones would
// otherwise lead to the host's files.
func (s *source) resolve(p string) string {
	for range 10 {
		target, err := os.Readlink(s.rootfs + p)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(p), target)
		}
		p = usrMerged(target)
	}
	return s.rootfs + p
}
