package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// DatasetsLegend says how to read the table.
const DatasetsLegend = "Data sets: made once on each node, then copied for each pod before its trial starts. \"prepared\" is recipe, hash and keeping on the slowest node, " +
	"once; \"copy\" is a copy with its check. Every copy was compared with the digest: by sizes, or by the content of all files. " +
	"If each node has bytes of its own, a copy was compared with the digest of its node, and MiB and files are those of the node with most. " +
	"MiB and files are always those of the whole data set, also where each pod copies one directory of it."

// maxDigests is how many nodes' digests a table shows of one data set.
const maxDigests = 3

// setKey tells data sets apart.
type setKey struct{ name, digest string }

// keyOf a data set has the digests of all nodes, if each node has bytes of its own.
func keyOf(d results.Dataset) setKey {
	k := setKey{d.Name, d.Digest}
	for _, on := range d.Digests {
		k.digest += on.Node + " " + on.Digest + "\n"
	}
	return k
}

// setUse sums up the use of one data set by all trials of an experiment.
type setUse struct {
	first            results.Dataset
	trials           int
	copies           int32
	methods, checks  []string
	fastest, slowest float64
}

// datasetsTable has a row for each data set that trials began with.
func datasetsTable(e results.Experiment) Table {
	t := Table{Columns: []Column{
		{"data set", false}, {"digest", false}, {"MiB", true}, {"files", true}, {"prepared s", true}, {"nodes", true},
		{"trials", true}, {"copies", true}, {"method", false}, {"check", false}, {"fastest copy s", true}, {"slowest copy s", true},
	}}
	uses := map[setKey]*setUse{}
	var order []setKey
	for _, l := range e.Trials {
		for _, d := range l.Datasets {
			k := keyOf(d)
			if uses[k] == nil {
				uses[k] = &setUse{first: d, fastest: d.FastestSeconds}
				order = append(order, k)
			}
			uses[k].add(d)
		}
	}
	slices.SortFunc(order, func(a, b setKey) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.digest, b.digest)) })
	for _, k := range order {
		u := uses[k]
		t.Rows = append(t.Rows, []string{
			k.name, digestText(u.first), number(float64(u.first.Bytes)/(1<<20), 1), strconv.FormatInt(u.first.Files, 10),
			number(u.first.PrepareSeconds, 1), strconv.Itoa(int(u.first.PreparedNodes)), strconv.Itoa(u.trials), strconv.Itoa(int(u.copies)),
			strings.Join(u.methods, ", "), strings.Join(u.checks, ", "), number(u.fastest, 2), number(u.slowest, 2),
		})
	}
	return t
}

func (u *setUse) add(d results.Dataset) {
	u.trials++
	if d.Copies == 0 {
		return
	}
	u.first.PreparedNodes, u.first.PrepareSeconds = max(u.first.PreparedNodes, d.PreparedNodes), max(u.first.PrepareSeconds, d.PrepareSeconds)
	if u.copies == 0 {
		u.fastest = d.FastestSeconds
	}
	u.copies, u.fastest, u.slowest = u.copies+d.Copies, min(u.fastest, d.FastestSeconds), max(u.slowest, d.SlowestSeconds)
	for _, one := range []struct {
		list *[]string
		said string
	}{{&u.methods, d.Method}, {&u.checks, d.Check}} {
		if !slices.Contains(*one.list, one.said) {
			*one.list = append(*one.list, one.said)
			slices.Sort(*one.list)
		}
	}
}

// digestText is the digest of a data set, or the digests of its nodes.
func digestText(d results.Dataset) string {
	if len(d.Digests) == 0 {
		return shortDigest(d.Digest)
	}
	if len(d.Digests) > maxDigests {
		return fmt.Sprintf("differs on %d nodes", len(d.Digests))
	}
	var each []string
	for _, on := range d.Digests {
		each = append(each, on.Node+" "+shortDigest(on.Digest))
	}
	return strings.Join(each, ", ")
}

// shortDigest is as much of a digest as tells two apart.
func shortDigest(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(12, len(hex))]
}

func number(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
