{{/*
Names are fixed, not derived from the release: agents find the coordinator by
name, and the kinds and webhooks are the cluster's, so there is one installation.
*/}}
{{- define "assay.labels" -}}
app.kubernetes.io/name: assay
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "assay.selector" -}}
app.kubernetes.io/name: assay
app.kubernetes.io/component: manager
{{- end -}}

{{/* assay.image: the full name of one image; called with (dict "root" $ "image" .Values.images.x). */}}
{{- define "assay.image" -}}
{{- with .root.Values.images.registry }}{{ . }}/{{ end -}}
{{ .image.repository }}:{{ default .root.Values.images.tag .image.tag }}
{{- end -}}

{{/*
assay.tls: the certificate that agents and the API server trust, as the data of a
Secret. What the cluster has is kept, since running agents hold its CA; to renew it,
delete the Secret and upgrade. Made once for each rendering: the Secret, the webhook
and the pods' checksum must agree.
*/}}
{{- define "assay.tls" -}}
{{- if not (hasKey .Values "_tls") -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace "assay-tls" -}}
{{- if and $secret $secret.data (hasKey $secret.data "ca.crt") (hasKey $secret.data "tls.crt") (hasKey $secret.data "tls.key") -}}
{{- $_ := set .Values "_tls" (pick $secret.data "ca.crt" "tls.crt" "tls.key") -}}
{{- else -}}
{{- $names := list -}}
{{- range list "assay-webhook" "assay-coordinator" -}}
{{- $names = concat $names (list (printf "%s.%s.svc" . $.Release.Namespace) (printf "%s.%s.svc.cluster.local" . $.Release.Namespace)) -}}
{{- end -}}
{{- $ca := genCA "assay" 3650 -}}
{{- $cert := genSignedCert (first $names) nil $names 3650 $ca -}}
{{- $_ := set .Values "_tls" (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key)) -}}
{{- end -}}
{{- end -}}
{{- toYaml .Values._tls -}}
{{- end -}}
