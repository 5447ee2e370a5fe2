{{- define "gateway-ai.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gateway-ai.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway-ai.labels" -}}
{{ include "gateway-ai.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "gateway-ai.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gateway-ai.databaseVariable" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ .Values.secrets.database.name | quote }}, key: {{ .Values.secrets.database.key | quote }} }
{{- end -}}

{{/* Restricted by the Pod Security Standards. The image runs as user 1000. */}}
{{- define "gateway-ai.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "gateway-ai.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* With ALLOWED_HOSTS set, the gateway refuses the address that a probe calls. */}}
{{- define "gateway-ai.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- with .hosts }}
  httpHeaders: [{ name: Host, value: {{ first . | quote }} }]
  {{- end }}
{{- end -}}

{{- define "gateway-ai.check" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) (gt (int .Values.workers) 1) -}}
{{- if and $many (not .Values.secrets.redis.name) -}}
{{- fail "More than one replica or worker needs secrets.redis.name: without Redis each process counts limits for itself." -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas." -}}
{{- end -}}
{{- if gt (div (add (int .Values.drainNoticeMs) (int .Values.drainTimeoutMs)) 1000 | int) (sub (int .Values.terminationGracePeriodSeconds) 5 | int) -}}
{{- fail "terminationGracePeriodSeconds must be at least 5 s longer than drainNoticeMs and drainTimeoutMs together." -}}
{{- end -}}
{{- end -}}
