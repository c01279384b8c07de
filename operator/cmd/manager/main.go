// Command manager runs Assay's operator: the controllers, the admission webhooks and the
// coordinator that the agents of a trial's pods dial.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/retention"
)

// options of the manager; the chart sets them.
type options struct {
	agentImage         string
	agentPullPolicy    string
	agentResources     resourcesFlag
	podLabels          map[string]string
	podAnnotations     map[string]string
	pods               podSettingsFlag
	systemRegistry     string
	systemCapabilities []string
	coordinatorAddress string
	clusterDomain      string
	namespace          string
	namespaces         []string
	certificates       certificateOptions
	stores             storeOptions
	retention          retention.Policy
	datasetsKeep       time.Duration
	monitoring         monitoringOptions
	chaosMesh          bool
	leaderElect        bool
	withoutBPF         bool
	withoutSysNice     bool
	metricsAddress     string
	metricsOpen        bool
	probeAddress       string
	webhookPort        int
	coordinatorPort    int
	queriesPerSecond   float32
}

// garbagePercent is how much garbage the heap may hold, in percent of the live data, unless GOGC is
// set. Agents of a large trial report all at once: with Go's default of 100 the manager took twice
// the memory of its live data.
const garbagePercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{agentResources: resourcesFlag{render.DefaultAgentResources()}}
	cmd := &cobra.Command{
		Use: "manager", Short: "Run Assay's controllers, webhooks and coordinator",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return start(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agentImage, "agent-image", "", "image with the agent, the launcher and the load generator; required")
	f.StringVar(&o.agentPullPolicy, "agent-pull-policy", string(corev1.PullIfNotPresent), "when nodes ask the registry for that image: IfNotPresent, Always or Never")
	f.Var(&o.agentResources, "agent-resources", "requests and limits of the agent in each pod of a trial, as JSON; where both are given and equal for cpu and memory, pods can be Guaranteed")
	f.StringToStringVar(&o.podLabels, "trial-pod-labels", nil, "labels of the pods of trials besides Assay's own, as key=value")
	f.StringToStringVar(&o.podAnnotations, "trial-pod-annotations", nil, "annotations of the pods of trials besides Assay's own, as key=value")
	f.Var(&o.pods, "trial-pods", "what else is said of the pods of trials, as JSON: tolerations, priorityClassName, runtimeClassName, imagePullSecrets, topologyKey, users (Assay or Namespace). Default: nothing")
	f.StringVar(&o.systemRegistry, "system-image-registry", "", "registry, as HOST[:PORT][/PATH], of the images of Systems that name none. Default: as nodes resolve them")
	f.StringSliceVar(&o.systemCapabilities, "system-capabilities", nil, "capabilities of the kernel that containers of Systems may have, such as IPC_LOCK. Default: none")
	f.StringVar(&o.coordinatorAddress, "coordinator-address", "", "host:port that agents dial, best a Service; required")
	f.StringVar(&o.clusterDomain, "cluster-domain", placement.DefaultClusterDomain, "domain of the cluster's Services, in which the pods of trials have their names")
	f.StringVar(&o.namespace, "namespace", "", "namespace of the manager, with its lease and its certificates; required")
	f.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces whose experiments this manager runs; it does not look into others. Default: all")
	o.certificates.addFlags(f)
	o.stores.addFlags(f)
	f.DurationVar(&o.retention.Stored, "results-keep-stored", 0, "how long the results of a trial are kept in the cluster once those of its experiment are in a store. 0: for ever")
	f.DurationVar(&o.retention.Age, "results-keep-age", 0, "how long the results of a trial are kept in the cluster at most, unless they wait for a store. 0: for ever")
	f.IntVar(&o.retention.Count, "results-keep-count", 0, "trials of a namespace whose results are kept in the cluster at most: the newest, and those that wait for a store. 0: all")
	f.DurationVar(&o.datasetsKeep, "datasets-keep", 30*24*time.Hour, "how long a data set is kept on the nodes that no experiment uses. 0: until somebody deletes it")
	o.monitoring.addFlags(f)
	f.BoolVar(&o.chaosMesh, "chaos-mesh", false, "let experiments have faults that Chaos Mesh carries out; the manager needs rights on its kinds")
	f.BoolVar(&o.withoutBPF, "without-bpf", false, "do not ask for the capability BPF in trials that leave the shaping backend to Assay; for nodes that cannot grant it")
	f.BoolVar(&o.withoutSysNice, "without-sys-nice", false, "do not ask for the capability SYS_NICE in trials that may be shaped by NFQueue, which is then late when processors are busy")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "let only one of several managers work at a time")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	f.BoolVar(&o.metricsOpen, "metrics-open", false,
		"serve /metrics by HTTP to everybody who reaches the port. Default: by HTTPS, to bearer tokens whose owner may get the non-resource URL /metrics")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the admission webhooks, 1 to 65535; 0 turns them off")
	f.IntVar(&o.coordinatorPort, "coordinator-port", 7443, "port that the coordinator listens on, 1 to 65535")
	f.Float32Var(&o.queriesPerSecond, "kube-api-qps", 100, "requests to the API server per second at most; bursts may be twice as large")
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	f.AddGoFlag(fs.Lookup("v"))
	cmd.AddCommand(checkCommand(), removalCommand())
	return cmd
}

// capability matches the name of a capability.
var capability = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (o options) validate() error {
	switch {
	case o.agentImage == "":
		return fmt.Errorf("--agent-image is empty; name the image with the agent")
	case !slices.Contains([]corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullAlways, corev1.PullNever}, corev1.PullPolicy(o.agentPullPolicy)):
		return fmt.Errorf("--agent-pull-policy is %q; it must be IfNotPresent, Always or Never", o.agentPullPolicy)
	case o.systemRegistry != "" && imageref.CheckRegistry(o.systemRegistry) != nil:
		return fmt.Errorf("--system-image-registry: %w", imageref.CheckRegistry(o.systemRegistry))
	case slices.ContainsFunc(o.systemCapabilities, func(name string) bool { return name == "ALL" || !capability.MatchString(name) }):
		return fmt.Errorf("--system-capabilities is %q; name single capabilities as the kernel has them without CAP_, such as IPC_LOCK", o.systemCapabilities)
	case o.coordinatorAddress == "":
		return fmt.Errorf("--coordinator-address is empty; name the host:port that agents dial")
	case len(validation.IsDNS1123Subdomain(o.clusterDomain)) > 0:
		return fmt.Errorf("--cluster-domain is %q; give the domain of the cluster's Services as cluster.local, without a dot before or after it", o.clusterDomain)
	case o.namespace == "":
		return fmt.Errorf("--namespace is empty; name the namespace that the manager runs in")
	case o.retention.Stored < 0 || o.retention.Age < 0 || o.retention.Count < 0:
		return fmt.Errorf("--results-keep-stored is %v, --results-keep-age %v and --results-keep-count %d; none may be below 0", o.retention.Stored, o.retention.Age, o.retention.Count)
	case o.datasetsKeep < 0:
		return fmt.Errorf("--datasets-keep is %v; it may not be below 0", o.datasetsKeep)
	case o.queriesPerSecond <= 0:
		return fmt.Errorf("--kube-api-qps is %v; it must be above 0", o.queriesPerSecond)
	}
	return nil
}

func start(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	logger := klog.NewKlogr()
	log.SetLogger(logger)
	return run(ctx, o, logger)
}
