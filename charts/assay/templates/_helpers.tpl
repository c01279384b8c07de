{{/*
Names are fixed, not derived from the release: agents find the coordinator by
name. The cluster's own objects carry the release's namespace in their names
when Assay runs for some namespaces only, since a cluster may have several of
such installations, but one for the whole cluster.
*/}}
{{- define "assay.labels" -}}
app.kubernetes.io/name: assay
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "assay.selector" -}}
app.kubernetes.io/name: assay
app.kubernetes.io/component: manager
{{- end -}}

{{/* assay.clusterName: of the objects that belong to no namespace. */}}
{{- define "assay.clusterName" -}}
assay{{ if .Values.namespaces }}-{{ .Release.Namespace }}{{ end }}
{{- end -}}

{{/* assay.image: the full name of one image; called with (dict "root" $ "image" .Values.images.x). */}}
{{- define "assay.image" -}}
{{- with .root.Values.images.registry }}{{ . }}/{{ end -}}
{{ .image.repository }}{{ with .image.digest }}@{{ . }}{{ else }}:{{ default .root.Values.images.tag .image.tag }}{{ end }}
{{- end -}}

{{/*
assay.podSecurity and assay.containerSecurity: what the Pod Security level restricted asks for. With
users: Namespace the cluster fills in users and groups, as OpenShift's restricted-v2 wants it.
*/}}
{{- define "assay.podSecurity" -}}
runAsNonRoot: true
{{- if ne (.Values.users | default "Assay") "Namespace" }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* assay.trialPods: what managers are told of the pods of trials besides labels and annotations, as YAML. */}}
{{- define "assay.trialPods" -}}
{{- $p := .Values.trialPods | default dict -}}
{{- $told := dict -}}
{{- with $p.tolerations }}{{ $_ := set $told "tolerations" . }}{{ end -}}
{{- with $p.priorityClassName }}{{ $_ := set $told "priorityClassName" . }}{{ end -}}
{{- with $p.runtimeClassName }}{{ $_ := set $told "runtimeClassName" . }}{{ end -}}
{{- with $p.pullSecrets }}{{ $_ := set $told "imagePullSecrets" . }}{{ end -}}
{{- $key := dig "topologySpread" "key" "kubernetes.io/hostname" $p -}}
{{- if ne $key "kubernetes.io/hostname" }}{{ $_ := set $told "topologyKey" $key }}{{ end -}}
{{- if eq (.Values.users | default "Assay") "Namespace" }}{{ $_ := set $told "users" "Namespace" }}{{ end -}}
{{- if $told }}{{ toJson $told }}{{ end -}}
{{- end -}}

{{/* assay.trusted: where an authority of the owner's comes from, as a projected source; empty: there is none. */}}
{{- define "assay.trusted" -}}
{{- $ca := .Values.trustedCA | default dict -}}
{{- $items := list (dict "key" ($ca.key | default "ca.crt") "path" "ca.crt") -}}
{{- if and $ca.configMap $ca.secret }}{{ fail "trustedCA has a configMap and a secret: leave one out" }}{{ end -}}
{{- if $ca.configMap }}{{ toJson (dict "configMap" (dict "name" $ca.configMap "items" $items)) }}{{ end -}}
{{- if $ca.secret }}{{ toJson (dict "secret" (dict "name" $ca.secret "items" $items)) }}{{ end -}}
{{- end -}}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* assay.secret: where the certificate is. The two have different types, which cannot be changed, hence different names. */}}
{{- define "assay.secret" -}}
{{ ternary "assay-tls" "assay-certificates" .Values.certificates.certManager.enabled }}
{{- end -}}

{{/* assay.scrape: how Prometheus reads metrics. The certificate has the names of the Services of webhooks and coordinator. */}}
{{- define "assay.scrape" -}}
scheme: https
authorization:
  credentials: {name: assay-metrics, key: token}
tlsConfig:
  serverName: assay-coordinator.{{ .Release.Namespace }}.svc
  ca:
    secret: {name: {{ include "assay.secret" . }}, key: ca.crt}
{{- end -}}

{{/* assay.needs: refuses what the cluster has no kinds for; called with (dict "root" $ "value" ... "api" ... "kind" ... "what" ...). */}}
{{- define "assay.needs" -}}
{{- $full := printf "%s/%s" .api .kind -}}
{{- if not (.root.Capabilities.APIVersions.Has $full) -}}
{{- fail (printf "%s is set, and the cluster has no %s (%s): install %s first, or leave it unset. For helm template say --api-versions=%s" .value .kind .api .what $full) -}}
{{- end -}}
{{- end -}}

{{/*
assay.rules: the manager's rights, made from the markers in operator/internal/manager/controller,
and those on Chaos Mesh, which only an owner who wants it grants, as YAML with the lists "cluster" (what belongs to no namespace) and "namespaced".
*/}}
{{- define "assay.rules" -}}
{{- $outside := list "nodes" "tokenreviews" "subjectaccessreviews" "namespaces" "persistentvolumes" "storageclasses" "priorityclasses" "customresourcedefinitions" -}}
{{- $cluster := list -}}
{{- $namespaced := list -}}
{{- range get (.Files.Get "files/role.yaml" | fromYaml) "rules" -}}
{{- $in := list -}}
{{- $out := list -}}
{{- range .resources -}}
{{- if has . $outside }}{{ $out = append $out . }}{{ else }}{{ $in = append $in . }}{{ end -}}
{{- end -}}
{{- if $in }}{{ $namespaced = append $namespaced (dict "apiGroups" .apiGroups "resources" $in "verbs" .verbs) }}{{ end -}}
{{- if $out }}{{ $cluster = append $cluster (dict "apiGroups" .apiGroups "resources" $out "verbs" .verbs) }}{{ end -}}
{{- end -}}
{{- if (.Values.chaosMesh | default dict).enabled -}}
{{- $kinds := list "podchaos" "networkchaos" "stresschaos" "timechaos" "iochaos" "httpchaos" "dnschaos" "jvmchaos" -}}
{{- $namespaced = append $namespaced (dict "apiGroups" (list "chaos-mesh.org") "resources" $kinds "verbs" (list "get" "list" "create" "delete" "patch")) -}}
{{- end -}}
{{- toYaml (dict "cluster" $cluster "namespaced" $namespaced) -}}
{{- end -}}

{{/* The list of stores as the manager reads it: all but where keys and CA come from. */}}
{{- define "assay.stores" -}}
{{- $stores := list }}
{{- range .Values.results.stores }}{{ $stores = append $stores (omit . "credentialsSecret" "ca") }}{{ end }}
{{- dict "default" .Values.results.defaultStore "stores" $stores | toYaml }}
{{- end }}
