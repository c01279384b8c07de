// Package version is "kubectl assay version". It prints the version of the program, and the images
// that the managers of the cluster run.
package version

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// Options of the verb.
type Options struct {
	// Build is the version of this program.
	Build      string
	ClientOnly bool
	// Output is empty for lines, or json or yaml.
	Output string
}

// defaultNamespace is the namespace of an installation. The verb looks there if it may not list all
// namespaces.
const defaultNamespace = "assay-system"

// Client is this program.
type Client struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Installation is one Deployment of managers.
type Installation struct {
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"`
	// Manager and Agent are images. Every pod of a trial has the image of the agent.
	Manager string `json:"manager,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Ready   string `json:"ready"`
}

// Versions are the known versions.
type Versions struct {
	Client        Client         `json:"client"`
	Installations []Installation `json:"installations,omitempty"`
	// Unknown says why installations are not listed.
	Unknown string `json:"unknown,omitempty"`
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	o := Options{Build: buildinfo.Version()}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this program and of Assay in the cluster",
		Long: "Show the version of this program, and the images of each installation of Assay in the cluster. To see them you must be allowed to list Deployments, at least in namespace\n" +
			defaultNamespace + "; otherwise version says so and ends with exit code 0.",
		Example: "  kubectl assay version\n  kubectl assay version --client -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, o) },
	}
	cmd.Flags().BoolVar(&o.ClientOnly, "client", false, "do not ask the cluster")
	session.BindForm(cmd, &o.Output, "lines", session.PrintForms...)
	return cmd
}

// Run prints the known versions.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if err := session.CheckForm(o.Output, "lines", session.PrintForms...); err != nil {
		return err
	}
	v := Versions{Client: Client{Version: o.Build, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}}
	if !o.ClientOnly {
		v.Installations, v.Unknown = installations(ctx, s)
	}
	if o.Output != "" {
		return session.Print(s.Out, o.Output, v)
	}
	fmt.Fprintf(s.Out, "Client: %s, %s, %s\n", v.Client.Version, v.Client.Go, v.Client.Platform)
	for _, i := range v.Installations {
		fmt.Fprintf(s.Out, "Installation in namespace %s: version %s, %s managers ready\n  manager  %s\n  agent    %s\n", i.Namespace, i.Version, i.Ready, i.Manager, i.Agent)
	}
	if v.Unknown != "" {
		fmt.Fprintln(s.Out, v.Unknown)
	}
	return nil
}

// installations returns the installations in the cluster, or why they are not known.
func installations(ctx context.Context, s *session.Session) (found []Installation, unknown string) {
	cluster, err := s.Connect()
	if err != nil {
		return nil, "The cluster cannot be asked: " + err.Error()
	}
	labels := client.MatchingLabels{"app.kubernetes.io/name": "assay"} // the chart's
	var list appsv1.DeploymentList
	err = cluster.Client.List(ctx, &list, labels)
	where := "any namespace"
	if apierrors.IsForbidden(err) {
		err = cluster.Client.List(ctx, &list, labels, client.InNamespace(defaultNamespace))
		where = "namespace " + defaultNamespace + ", the only one that you may look into"
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, "You may not list Deployments, so that the managers' version is not known. Their owner can tell: kubectl assay version."
	case err != nil:
		return nil, "The cluster cannot be asked: " + err.Error()
	case len(list.Items) == 0:
		return nil, "There are no managers in " + where + "."
	}
	for i := range list.Items {
		found = append(found, describe(&list.Items[i]))
	}
	return found, ""
}

func describe(d *appsv1.Deployment) Installation {
	i := Installation{Namespace: d.Namespace, Version: d.Labels["app.kubernetes.io/version"], Ready: fmt.Sprintf("%d of %d", d.Status.ReadyReplicas, d.Status.Replicas)}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			if image, ok := strings.CutPrefix(arg, "--agent-image="); ok {
				i.Manager, i.Agent = c.Image, image
			}
		}
	}
	return i
}
