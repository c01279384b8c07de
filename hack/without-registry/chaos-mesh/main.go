// Command chaos-mesh writes the image assay/chaos-mesh, in the form that hack/images/load.sh loads:
// Chaos Mesh's controller and daemon in one image, above the programs of Debian that the daemon
// calls. It is for tests on the cluster and is not among the project's images.
//
//	chaos-mesh -programs DIR -tools tools.tar -out DIR
//
// DIR gets assay-chaos-mesh.tar and index.tsv (name, tag, manifest digest, archive; tab-separated).
// Nothing is written when the image is there already. Programs are where Chaos Mesh looks for them:
// /usr/local/bin, some of them by that path.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"assay.dev/assay/hack/images/imagetar"
)

const (
	name    = "assay/chaos-mesh"
	archive = "assay-chaos-mesh.tar"
)

// programs of programs.sh, the largest and least changed first: a layer each.
var programs = []string{"chaos-controller-manager", "chaos-daemon", "cdh", "nsexec", "pause"}

func main() {
	dir := flag.String("programs", "", "directory with what programs.sh built")
	tools := flag.String("tools", "", "what tools.sh fetched")
	out := flag.String("out", "", "output directory")
	flag.Parse()
	if err := run(*dir, *tools, *out); err != nil {
		fmt.Fprintln(os.Stderr, "chaos-mesh:", err)
		os.Exit(1)
	}
}

func run(dir, tools, out string) error {
	im, err := image(dir, tools)
	if err != nil {
		return err
	}
	digest, err := im.Digest()
	if err != nil {
		return err
	}
	tag := strings.TrimPrefix(digest, "sha256:")[:12]
	im.Names = []string{"docker.io/" + name + ":" + tag, "docker.io/" + name + ":dev"}
	index, row := filepath.Join(out, "index.tsv"), fmt.Sprintf("%s\t%s\t%s\t%s\n", name, tag, digest, archive)
	if old, err := os.ReadFile(index); err == nil && string(old) == row {
		return nil
	}
	if err := imagetar.WriteFile(filepath.Join(out, archive), im); err != nil {
		return err
	}
	return os.WriteFile(index, []byte(row), 0o644)
}

func image(dir, tools string) (imagetar.Image, error) {
	im := imagetar.Image{Arch: runtime.GOARCH, Config: imagetar.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}}
	l, err := imagetar.TarLayer(tools)
	if err != nil {
		return im, err
	}
	im.Layers = append(im.Layers, l)
	for _, p := range programs {
		l, err := imagetar.NewLayer().File("/usr/local/bin/"+p, filepath.Join(dir, p), 0o755).Layer()
		if err != nil {
			return im, err
		}
		im.Layers = append(im.Layers, l)
	}
	return im, nil
}
