// Package fetch is "kubectl assay fetch". It reads the results of an experiment or a trial from a
// result store, checks them, and writes them into a directory. It needs no cluster, unless the user
// names an Experiment.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
)

// Options of the verb.
type Options struct {
	Location  string
	Output    string
	Endpoint  string
	Region    string
	CA        string
	PathStyle bool
	Keys      s3.Credentials
}

// Command is the verb. getenv reads the environment.
func Command(s *session.Session, getenv func(string) string) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "fetch EXPERIMENT|s3://BUCKET/... [--output-dir DIRECTORY]",
		Short: "Read results from a result store and check them",
		Long: "Read what is stored of an experiment, or of one trial, compare every object with its checksum, and write it into a directory.\n" +
			"Name an Experiment of the cluster, whose status.archive has the location, or give the location. The condition ResultsStored of a Trial has that of the trial. The keys are\n" +
			"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment. Without --output-dir, fetch reads and checks everything and writes nothing.",
		Example: "  kubectl assay fetch failure-fp --endpoint https://s3.example.org --output-dir failure-fp\n" +
			"  kubectl assay fetch s3://results/v1/papers/failure-fp/0b3c6b1c-.../ --endpoint https://s3.example.org --output-dir failure-fp\n" +
			"  kubectl assay report --file failure-fp/bundle.tar.gz",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Location = args[0]
			o.Keys = s3.Credentials{AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: getenv("AWS_SESSION_TOKEN")}
			o.Endpoint = cmp.Or(o.Endpoint, getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
			o.Region = cmp.Or(o.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
			return Run(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Output, "output-dir", "", "the directory to write to; it is made, and what is in it already is replaced")
	f.StringVar(&o.Endpoint, "endpoint", "", "URL of the server; default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL of the environment, else AWS")
	f.StringVar(&o.Region, "region", "", "region of the bucket; default: AWS_REGION or AWS_DEFAULT_REGION of the environment, else us-east-1")
	f.StringVar(&o.CA, "ca", "", "file with the server's own CA, in PEM")
	f.BoolVar(&o.PathStyle, "path-style", true, "the bucket is in the path of URLs and not in the host name; not with AWS")
	return cmd
}

// place is the pattern of a location: the bucket, the store's prefix and the folder.
var place = regexp.MustCompile(`^s3://([^/]+)/(?:(.+)/)?(v1/[^/]+/[^/]+/[^/]+/(?:trials/[^/]+/)?)(?:manifest\.json)?$`)

// Run reads, checks and writes.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if !strings.Contains(o.Location, "://") {
		var err error
		if o.Location, err = locate(ctx, s, o.Location); err != nil {
			return err
		}
	}
	location := o.Location
	if !strings.HasSuffix(location, "/") && !strings.HasSuffix(location, "/"+store.ManifestName) {
		location += "/"
	}
	parts := place.FindStringSubmatch(location)
	if parts == nil {
		return fmt.Errorf("%s is not where an experiment or a trial is stored: want s3://BUCKET/[PREFIX/]v1/NAMESPACE/EXPERIMENT/UID/ or, below it, trials/TRIAL/", o.Location)
	}
	if o.Keys.AccessKeyID == "" || o.Keys.SecretAccessKey == "" {
		return errors.New("AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is empty; set both")
	}
	var ca []byte
	if o.CA != "" {
		var err error
		if ca, err = os.ReadFile(o.CA); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
	}
	bucket, err := s3.NewWith(s3.Config{
		Settings: store.Settings{Name: "given"}, Endpoint: o.Endpoint, Region: o.Region, Bucket: parts[1], Prefix: parts[2], PathStyle: o.PathStyle && o.Endpoint != "",
	}, o.Keys, ca)
	if err != nil {
		return err
	}
	g := getter{bucket: bucket, folder: store.Folder(parts[3]), output: o.Output}
	if err := g.get(ctx, g.folder, nil); err != nil {
		return fmt.Errorf("fetch %s: %w", o.Location, err)
	}
	what := "read, and right"
	if o.Output != "" {
		what = "written to " + o.Output
	}
	fmt.Fprintf(s.Err, "%d objects, %d bytes: %s\n", g.objects, g.bytes, what)
	for _, m := range g.missing {
		fmt.Fprintf(s.Err, "Not stored: %s\n", m)
	}
	return nil
}

// locate returns the location in the store of the results of an Experiment in the cluster.
func locate(ctx context.Context, s *session.Session, name string) (string, error) {
	cluster, err := s.Connect()
	if err != nil {
		return "", err
	}
	var e v1alpha1.Experiment
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &e); err != nil {
		return "", fmt.Errorf("get Experiment %s in %s: %w", name, cluster.Place(), session.Explain(err))
	}
	if e.Status.Archive == nil || e.Status.Archive.Location == "" {
		return "", fmt.Errorf("experiment %s has no results in a store; its condition ResultsStored says why, and kubectl assay bundle %s makes a bundle of what is in the cluster", name, name)
	}
	return e.Status.Archive.Location, nil
}

// getter reads a folder, and the folders that its manifest names.
type getter struct {
	bucket  *s3.Bucket
	folder  store.Folder
	output  string
	objects int
	bytes   int64
	missing []string
}

// get reads the objects that the manifest of a folder lists. listed is the entry of this manifest
// in the manifest of the experiment, or nil.
func (g *getter) get(ctx context.Context, folder store.Folder, listed *store.Object) error {
	m, o, err := store.ReadManifest(ctx, g.bucket, folder)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s: nothing is stored there, or not everything yet", folder.Key(store.ManifestName))
	}
	if err != nil {
		return err
	}
	if listed != nil && o != *listed {
		return fmt.Errorf("%s: stored are %d bytes with SHA-256 %s, the experiment's manifest lists %d with %s", o.Key, o.Size, o.SHA256, listed.Size, listed.SHA256)
	}
	for _, name := range m.Missing {
		g.missing = append(g.missing, m.Name+": "+name)
	}
	if err := g.object(ctx, o); err != nil {
		return err
	}
	for _, want := range m.Objects {
		if sub, ok := strings.CutSuffix(want.Key, store.ManifestName); ok {
			if err := g.get(ctx, store.Folder(sub), &want); err != nil {
				return err
			}
			continue
		}
		if err := g.object(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

// object reads one object and writes it under its key in the folder. A manifest comes from a
// server: its keys must not lead out of the directory.
func (g *getter) object(ctx context.Context, want store.Object) error {
	name := strings.TrimPrefix(want.Key, string(g.folder))
	if name == want.Key || !filepath.IsLocal(name) {
		return fmt.Errorf("the manifest lists %q, which is not in its folder", want.Key)
	}
	got, content, err := g.bucket.Get(ctx, want.Key)
	if err != nil {
		return err
	}
	defer content.Close()
	if got != want {
		return fmt.Errorf("%s: stored are %d bytes with SHA-256 %s, the manifest lists %d with %s", want.Key, got.Size, got.SHA256, want.Size, want.SHA256)
	}
	g.objects++
	g.bytes += got.Size
	if g.output == "" {
		_, err = io.Copy(io.Discard, content)
		return err
	}
	path := filepath.Join(g.output, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- results are for others to read
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the name is gone once the file is renamed
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil { // #nosec G302 -- as above
		return err
	}
	return os.Rename(file.Name(), path)
}
