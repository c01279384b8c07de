package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// wanted are the kernel modules for the tests of package netem, of the packages below it, and of
// package agent. Their dependencies are loaded, too.
var wanted = []string{
	"veth", "bridge", "dummy",
	"sch_fq", "sch_netem", "sch_htb", "sch_ingress", "sch_tbf", "sch_prio",
	"cls_bpf", "cls_u32", "cls_matchall", "act_bpf", "act_gact", "act_mirred", "act_police",
	"nf_tables", "nft_queue", "nft_compat", "nft_ct", "nft_limit", "nft_numgen", "nft_reject_inet", "nfnetlink_queue", "xt_NFQUEUE",
	"tcp_diag", "udp_diag",
}

// modulesInOrder returns the files of the named modules and of all their dependencies, in an order
// in which they can be loaded.
//
// modules.dep has the dependencies, but it is written where a kernel is installed, and ours is not.
// The modules themselves name their dependencies.
func modulesInOrder(dir string, names []string) ([]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, is := strings.CutSuffix(filepath.Base(path), ".ko"); is {
			files[moduleName(name)] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var order []string
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		path := files[name]
		if path == "" {
			return fmt.Errorf("the kernel has no module %s", name)
		}
		needs, err := dependencies(path)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, need := range needs {
			if err := visit(need); err != nil {
				return fmt.Errorf("module %s: %w", name, err)
			}
		}
		order = append(order, path)
		return nil
	}
	for _, name := range names {
		if err := visit(moduleName(name)); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is the kernel's spelling: files may be named with hyphens.
func moduleName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// dependencies reads the dependencies from the section .modinfo, a sequence of key=value strings.
// "depends" lists the modules whose symbols it uses. "softdep" lists modules that are useful for it
// ("pre: NAME..."). dependencies ignores these: name such a module yourself.
func dependencies(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s: no section .modinfo", path)
	}
	content, err := section.Data()
	if err != nil {
		return nil, err
	}
	var names []string
	for entry := range bytes.SplitSeq(content, []byte{0}) {
		if list, is := strings.CutPrefix(string(entry), "depends="); is && list != "" {
			for name := range strings.SplitSeq(list, ",") {
				names = append(names, moduleName(name))
			}
		}
	}
	return names, nil
}
